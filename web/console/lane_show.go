package console

import (
	"github.com/gin-gonic/gin"

	"fairlane/policy/access"
)

func (s *Console) laneShow(c *gin.Context) { s.showObject(c, access.LaneRead, s.lane(c), s.laneNow) }
