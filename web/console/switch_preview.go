package console

import "github.com/gin-gonic/gin"

func (s *Console) switchPreview(c *gin.Context) { s.previewObject(c, switches) }
