package console

import "github.com/gin-gonic/gin"

func (s *Console) schedulingPublish(c *gin.Context) { s.publishObject(c, scheduling) }
