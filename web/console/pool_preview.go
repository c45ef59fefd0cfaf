package console

import "github.com/gin-gonic/gin"

func (s *Console) poolPreview(c *gin.Context) { s.previewObject(c, s.pool(c)) }
