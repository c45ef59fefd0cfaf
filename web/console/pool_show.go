package console

import (
	"github.com/gin-gonic/gin"

	"fairlane/policy/access"
)

func (s *Console) poolShow(c *gin.Context) { s.showObject(c, access.PoolRead, s.pool(c), s.poolLive) }
