package console

import "github.com/gin-gonic/gin"

func (s *Console) poolPublish(c *gin.Context) { s.publishObject(c, s.pool(c)) }
