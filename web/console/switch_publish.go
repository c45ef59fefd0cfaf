package console

import "github.com/gin-gonic/gin"

func (s *Console) switchPublish(c *gin.Context) { s.publishObject(c, switches) }
