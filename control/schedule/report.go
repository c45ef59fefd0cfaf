package schedule

import (
	"context"
	"time"
)

const (
	reportEvery   = 2 * time.Second
	reportTenants = 2_000
)

// report keeps the planner's status now and then while there is work, and once when there is none left.
// Nothing depends on it, so that a failure is only logged.
func (t *turn) report(ctx context.Context) {
	quiet := t.index.Len() == 0
	if t.cfg.Statuses == nil || t.planner == nil || quiet && t.quiet || t.cfg.Now().Sub(t.reported) < reportEvery && quiet == t.quiet {
		return
	}
	status := t.planner.Status(reportTenants)
	if quiet { // what was canceled after the last cycle is in it still
		status.Tenants, status.Earmarks = nil, nil
	}
	t.reported, t.quiet = t.cfg.Now(), quiet
	if err := t.cfg.Statuses.PutStatus(ctx, t.cfg.Group, t.term, status); err != nil && ctx.Err() == nil {
		t.cfg.Log.Warn("scheduler status not kept", "group", t.cfg.Group, "error", err)
	}
}
