package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control/monitor"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
)

// Past reads what is kept of what was.
type Past interface {
	LanePast(ctx context.Context, lane string, from time.Time, bin time.Duration) ([]monitor.AccountPoint, error)
	TenantPast(ctx context.Context, tenant uuid.UUID, lane string, from time.Time, bin time.Duration) ([]monitor.TenantPoint, error)
	Promise(ctx context.Context, lender string) (monitor.Promise, error)
	// Loans reads open loans of a lender, of a borrower, or of both; "" is any.
	Loans(ctx context.Context, lender, borrower string) ([]monitor.Loan, error)
}

// Present reads what pages of single objects show beside the monitor's state.
type Present interface {
	Starved(ctx context.Context, q monitor.StarvedQuery) ([]monitor.Starved, error)
	Places(ctx context.Context, tenant uuid.UUID) ([]monitor.PlaceRow, error)
	Debts(ctx context.Context, tenant uuid.UUID) ([]monitor.PlaceRow, error)
	Shards(ctx context.Context, pool string) ([]monitor.Shard, error)
	PoolLanes(ctx context.Context, pool string) ([]monitor.PoolLane, error)
}

// span is how far back a chart looks, and how long its bins are.
type reachBack struct {
	name        string
	length, bin time.Duration
}

var (
	laneSpans = []reachBack{
		{"30m", 30 * time.Minute, 10 * time.Second}, {"3h", 3 * time.Hour, time.Minute},
		{"2d", 48 * time.Hour, 20 * time.Minute}, {"30d", 30 * 24 * time.Hour, 6 * time.Hour},
	}
	tenantSpans = []reachBack{
		{"1h", time.Hour, time.Minute}, {"6h", 6 * time.Hour, 5 * time.Minute},
		{"2d", 48 * time.Hour, time.Hour}, {"30d", 30 * 24 * time.Hour, 6 * time.Hour},
	}
)

// spanOf is the one that the address asks for, else the first; from begins on a bin.
func spanOf(c *gin.Context, choices []reachBack) reachBack {
	for _, s := range choices {
		if s.name == c.Query("span") {
			return s
		}
	}
	return choices[0]
}

func (s reachBack) from(now time.Time) time.Time { return now.Add(-s.length).Truncate(s.bin) }

// past prepares the choice of spans of an object's page.
func (s reachBack) past(address, fragment string, choices []reachBack, sampled time.Time) page.Past {
	p := page.Past{Address: withSpan(fragment, s.name)}
	if !sampled.IsZero() {
		p.Sampled = sampled.UnixMilli()
	}
	for _, choice := range choices {
		p.Spans = append(p.Spans, page.Span{Name: choice.name, Href: withSpan(address, choice.name), Shown: choice.name == s.name})
	}
	return p
}

func withSpan(path, name string) string { return path + "?span=" + url.QueryEscape(name) }

// nowPart makes the live part of an object's page.
type nowPart func(c *gin.Context, o object) (templ.Component, error)

// state is what the monitor has folded last, kept fresh for the socket that is about to open.
func (s *Console) state() *monitor.State {
	s.cfg.Shown.Look()
	return s.cfg.Shown.State()
}

// seesTenant decides about a row of a single tenant beside sums (I13).
func seesTenant(c *gin.Context, homeLane string, tenant uuid.UUID) bool {
	return may(c, access.TenantRead, access.Object{Lane: homeLane, Tenant: tenant})
}

// fragment answers a part of a page that is fetched again.
func fragment(c *gin.Context, part templ.Component, err error) {
	if err != nil {
		_ = c.Error(err)
		return
	}
	c.Header("Cache-Control", "no-store")
	show(c, http.StatusOK, part)
}

// starvedLines makes rows of who waits too long.
func starvedLines(ctx context.Context, list []monitor.Starved) []page.StarvedLine {
	now := views.Of(ctx).Now
	var out []page.StarvedLine
	for _, s := range list {
		line := page.StarvedLine{Tenant: s.Name, TenantHref: "/tenants/" + url.PathEscape(s.Code), Lane: s.Lane, Task: s.TaskID.String(),
			Wait: ago(ctx, now, s.OldestAt), Bound: views.Seconds(ctx, s.BoundSeconds), Over: ago(ctx, now, s.Since), Turns: "—", Capped: s.Capped}
		if s.Turns > 0 {
			line.Turns = views.Int(s.Turns)
		}
		out = append(out, line)
	}
	return out
}

func ago(ctx context.Context, now, at time.Time) string {
	return views.Duration(ctx, max(now.Sub(at), 0).Truncate(time.Second))
}

// starved lists who of a lane ("" for all) waits too long, and how many the operator may not see.
func starved(c *gin.Context, present Present, s *monitor.State, lane string) ([]page.StarvedLine, int64, error) {
	list, err := present.Starved(c.Request.Context(), monitor.StarvedQuery{Lane: lane, Reach: reach(c, access.TenantRead)})
	if err != nil {
		return nil, 0, err
	}
	var all, seen int64
	for _, l := range s.Starvation {
		if lane == "" || l.Lane == lane {
			all += l.Tenants
		}
	}
	for _, t := range list {
		if !t.Capped {
			seen++
		}
	}
	return starvedLines(c.Request.Context(), list), max(all-seen, 0), nil
}

// laneOf finds a lane of the policy in force.
func laneOf(doc *policy.Document, code string) *policy.Lane {
	if doc == nil {
		return nil
	}
	l, _ := doc.Lane(code)
	return l
}
