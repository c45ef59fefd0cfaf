package console

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"fairlane/control/monitor"
	"fairlane/policy"
	"fairlane/views"
	"fairlane/views/page"
)

// overview answers GET /.
func (r *Reading) overview(c *gin.Context) {
	topics := []monitor.Topic{monitor.TopicOverview, monitor.TopicLanes, monitor.TopicPools}
	show(c, http.StatusOK, page.OverviewPage(r.look(c, topics, page.OverviewPools, page.OverviewTenants)))
}

// wall answers GET /wall.
func (r *Reading) wall(c *gin.Context) {
	topics := []monitor.Topic{monitor.TopicOverview, monitor.TopicLanes, monitor.TopicPools}
	show(c, http.StatusOK, page.WallPage(page.Wall{
		Overview: r.look(c, topics, page.WallPools, page.WallTenants),
		Clock:    views.Of(c.Request.Context()).Now.Format(time.TimeOnly),
	}))
}

func (r *Reading) look(c *gin.Context, topics []monitor.Topic, pools, tenants int) page.Overview {
	s := r.state()
	o := s.Overview
	p := page.Overview{
		Capacity: o.Capacity, Used: o.Used, Free: o.Free, Over: o.Over, Own: o.Own, Common: o.Common, Unknown: o.Unknown,
		QueuedTasks: o.QueuedTasks, QueuedMilli: o.QueuedMilli, OldestAt: o.OldestAt, OldestLane: o.OldestLane,
		StartsPerMinute: o.StartsPerMinute, Running: o.Running, Succeeded: o.Succeeded, Failed: o.Failed, Canceled: o.Canceled,
		Lanes: laneLines(s),
	}
	for _, row := range s.Pools {
		if len(p.Pools) < pools && row.Kind != string(policy.PoolCapGroup) {
			p.Pools = append(p.Pools, poolLine(row))
		}
	}
	if p.ShowTenants = seesEveryTenant(c); p.ShowTenants {
		topics = append(topics, monitor.TopicTenants)
		for _, row := range s.Tenants[:min(len(s.Tenants), tenants)] {
			p.Tenants = append(p.Tenants, tenantLine(row))
		}
	}
	p.Live = live(s, topics...)
	return p
}

func laneLines(s *monitor.State) []page.LaneLine {
	out := make([]page.LaneLine, len(s.Lanes))
	for i, l := range s.Lanes {
		out[i] = page.LaneLine{Lane: l.Lane, Weight: l.Weight, Own: l.Own, Common: l.Common, Borrowed: l.Borrowed, Lent: l.Lent,
			Headroom: l.Headroom, Reserved: l.Reserved, Used: l.Used, Free: l.Free, Over: l.Over, QueuedTasks: l.QueuedTasks,
			QueuedMilli: l.QueuedMilli, Running: l.Running, TargetSeconds: l.TargetSeconds, OldestAt: l.OldestAt, Paused: l.Paused, Open: l.AdmissionOpen,
			Stopped: l.Stopped, StoppedSince: l.StoppedSince}
	}
	return out
}

func poolLine(p monitor.PoolRow) page.PoolLine {
	return page.PoolLine{Key: p.Key, Title: p.Title, Parents: p.Parents, Capacity: p.Capacity, Used: p.Used,
		Free: p.Free, Over: p.Over, Unknown: p.Unknown, UnknownUnits: p.UnknownUnits, Paused: p.Paused, Removed: p.Removed,
		IsCapGroup: p.Kind == string(policy.PoolCapGroup), Limit: p.Limit, OpenUntil: p.OpenUntil, Earmarked: p.Earmarked}
}

func tenantLine(t monitor.TenantRow) page.TenantLine {
	return page.TenantLine{ID: t.ID.String(), Code: t.Code, Name: t.Name, Lane: t.Lane, Weight: t.Weight, Running: t.Running,
		RunningUnits: t.RunningUnits, QueuedTasks: t.QueuedTasks, QueuedMilli: t.QueuedMilli, OldestAt: t.OldestAt, Share: t.Share, Entitled: t.Entitled}
}

// lanes answers GET /lanes.
func (r *Reading) lanes(c *gin.Context) {
	s := r.state()
	p := page.Lanes{Live: live(s, monitor.TopicLanes), Lanes: laneLines(s)}
	for _, a := range s.Accounts {
		p.Accounts = append(p.Accounts, page.AccountLine{Key: a.Key(), Lane: a.Lane, Group: a.Group, Own: a.Own, Common: a.Common,
			Borrowed: a.Borrowed, Lent: a.Lent, Reserved: a.Reserved, CommonUsed: a.CommonUsed, CommonUnits: a.CommonUnits})
	}
	show(c, http.StatusOK, page.LanesPage(p))
}

// pools answers GET /pools.
func (r *Reading) pools(c *gin.Context) {
	s := r.state()
	p := page.Pools{Live: live(s, monitor.TopicPools)}
	for _, row := range s.Pools {
		if line := poolLine(row); line.IsCapGroup {
			p.Groups = append(p.Groups, line)
		} else {
			p.Leaves = append(p.Leaves, line)
		}
	}
	show(c, http.StatusOK, page.PoolsPage(p))
}

// health answers GET /health.
func (r *Reading) health(c *gin.Context) {
	s := r.state()
	p := page.Health{Live: live(s, monitor.TopicOverview, monitor.TopicHealth), PolicyWanted: s.Overview.PolicyWanted, PolicyActive: s.Overview.PolicyActive}
	lists := map[string]*[]page.HealthLine{"store": &p.Stores, "replica": &p.Replicas, "lease": &p.Leases, "outbox": &p.Outbox, "reconciler": &p.Reconcilers, "starvation": &p.Starvation}
	for _, h := range s.Health {
		if list := lists[h.Kind]; list != nil {
			*list = append(*list, page.HealthLine{Kind: h.Kind, Name: h.Name, Code: h.Code, Text: h.Text, Number: h.Number, Since: h.Since, Until: h.Until, Bound: h.Bound})
		}
	}
	var err error
	if p.Starved, err = r.starvedPart(c, s); err != nil {
		_ = c.Error(err)
		return
	}
	show(c, http.StatusOK, page.HealthPage(p))
}
