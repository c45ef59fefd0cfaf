package console

import (
	"github.com/gin-gonic/gin"

	"fairlane/policy/access"
)

func (s *Console) tenantShow(c *gin.Context) {
	s.showObject(c, access.TenantRead, s.tenant(c), s.tenantNow)
}
