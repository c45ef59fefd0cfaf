package console

import "github.com/gin-gonic/gin"

func (s *Console) tenantPreview(c *gin.Context) { s.previewObject(c, s.tenant(c)) }
