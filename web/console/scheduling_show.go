package console

import (
	"github.com/gin-gonic/gin"

	"fairlane/policy/access"
)

func (s *Console) schedulingShow(c *gin.Context) { s.showObject(c, access.PolicyRead, scheduling) }
