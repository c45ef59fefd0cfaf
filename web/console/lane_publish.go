package console

import "github.com/gin-gonic/gin"

func (s *Console) lanePublish(c *gin.Context) { s.publishObject(c, s.lane(c)) }
