package console

import "github.com/gin-gonic/gin"

func (s *Console) tenantPublish(c *gin.Context) { s.publishObject(c, s.tenant(c)) }
