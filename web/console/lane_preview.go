package console

import "github.com/gin-gonic/gin"

func (s *Console) lanePreview(c *gin.Context) { s.previewObject(c, s.lane(c)) }
