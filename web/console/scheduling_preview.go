package console

import "github.com/gin-gonic/gin"

func (s *Console) schedulingPreview(c *gin.Context) { s.previewObject(c, scheduling) }
