package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
)

func TestCallerWhoHangsUpIsNoFailure(t *testing.T) {
	t.Parallel()
	ctx, hangUp := context.WithCancel(t.Context())
	r := newRig(t, func(_ *Config, h map[string]gin.HandlerFunc) {
		h["lane.list"] = func(c *gin.Context) {
			hangUp()
			_ = c.Error(c.Request.Context().Err())
		}
	})
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/lanes", nil)
	req.Header.Set("X-Role", "viewer")
	r.handler.ServeHTTP(httptest.NewRecorder(), req)
	if log := r.logs.String(); !strings.Contains(log, `"status":499`) || strings.Contains(log, `"level":"ERROR"`) {
		t.Error(log)
	}
}
