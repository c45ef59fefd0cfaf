package run

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

func livez(c *gin.Context) { c.String(http.StatusOK, "ok\n") }

// readyz tells whether this process can take work: the database answers and a policy is in force.
// Providers and Redis play no part. With ?verbose it lists the parts and the degraded modes.
func (a *app) readyz(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), 2*time.Second)
	defer cancel()
	database := a.api.Ping(ctx) == nil
	_, version := a.inForce()
	ready := database && version > 0
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	if _, verbose := c.GetQuery("verbose"); !verbose {
		c.JSON(status, gin.H{"ready": ready})
		return
	}
	modes := make([]gin.H, 0)
	for _, m := range a.monitor.State().Overview.Degraded {
		modes = append(modes, gin.H{"mode": m.Code, "since": m.Since})
	}
	c.JSON(status, gin.H{
		"ready": ready, "database": database, "redis": a.redis.Ping(ctx) == nil,
		"policy_active": version, "policy_wanted": a.active.Wanted(), "degraded": modes, "queues": a.monitor.Queues(), "replica": a.replica,
	})
}
