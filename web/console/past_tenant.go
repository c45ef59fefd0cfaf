package console

import (
	"context"
	"net/url"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

	"fairlane/control/monitor"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
)

// tenantNow makes the live part of a tenant's page.
func (s *Console) tenantNow(c *gin.Context, o object) (templ.Component, error) {
	card, err := s.cfg.Cards.TenantCard(c.Request.Context(), o.scope.Tenant.String())
	if err != nil {
		return nil, err
	}
	state := s.state()
	topic := monitor.Topic(monitor.TenantPrefix + card.ID.String())
	p := page.TenantNow{Live: live(state, topic), Topic: string(topic), Tenant: page.TenantLine{ID: card.ID.String(), Running: card.Running,
		RunningUnits: card.RunningUnits, QueuedTasks: card.QueuedTasks, QueuedMilli: card.QueuedMilli, Share: -1, Entitled: -1}}
	if row, ok := state.Tenant(card.ID); ok {
		p.Tenant.OldestAt, p.Tenant.Share, p.Tenant.Entitled = row.OldestAt, row.Share, row.Entitled
	}
	p.Past, err = s.tenantPastOf(c, state, card)
	return page.TenantNowPart(p), err
}

// tenantPast answers GET /tenants/:tenant/past.
func (s *Console) tenantPast(c *gin.Context) {
	ctx := c.Request.Context()
	card, err := s.cfg.Cards.TenantCard(ctx, c.Param("tenant"))
	if err == nil {
		err = access.Require(ctx, access.TenantRead, access.Object{Lane: card.Lane, Tenant: card.ID})
	}
	if err != nil {
		_ = c.Error(err)
		return
	}
	p, err := s.tenantPastOf(c, s.state(), card)
	fragment(c, page.TenantPastPart(p), err)
}

func (s *Console) tenantPastOf(c *gin.Context, state *monitor.State, card monitor.TenantCard) (page.TenantPast, error) {
	ctx := c.Request.Context()
	now := views.Of(ctx).Now
	at := "/tenants/" + url.PathEscape(card.Code)
	span := spanOf(c, tenantSpans)
	p := page.TenantPast{Past: span.past(at, at+"/past", tenantSpans, state.SampledAt), Lane: card.Lane}
	from := span.from(now)
	points, err := s.cfg.Past.TenantPast(ctx, card.ID, card.Lane, from, span.bin)
	if err != nil {
		return p, err
	}
	list := make([]page.TenantPoint, len(points))
	for i, x := range points {
		list[i] = page.TenantPoint{At: x.At, Share: x.Share(), Entitled: x.Entitlement(), P50: x.Waits.Quantile(.5), P95: x.Waits.Quantile(.95),
			Served: x.Served, Debt: x.Debt, Starts: x.Starts}
	}
	shares, waits, rows := page.DrawTenant(ctx, list, from, now, span.bin)
	p.Chart, p.Second, p.Rows = shares, &waits, rows
	if p.Waits, err = s.waitLines(ctx, card, now); err != nil {
		return p, err
	}
	if p.Places, err = s.placeLines(ctx, card); err != nil {
		return p, err
	}
	list2, err := s.cfg.Present.Starved(ctx, monitor.StarvedQuery{Tenant: card.ID, Reach: access.Reach{All: true}}) // the tenant itself is within reach
	p.Starving = starvedLines(ctx, list2)
	return p, err
}

// minutesReach is how far back minutes are surely kept.
const minutesReach = 5 * time.Hour

// waitLines sums the last hour and the last day up; of the day whole hours where they have been made, and
// minutes since.
func (s *Console) waitLines(ctx context.Context, card monitor.TenantCard, now time.Time) ([]page.WaitLine, error) {
	hour, err := s.cfg.Past.TenantPast(ctx, card.ID, card.Lane, now.Add(-time.Hour), time.Minute)
	if err != nil {
		return nil, err
	}
	day, err := s.cfg.Past.TenantPast(ctx, card.ID, card.Lane, now.Add(-24*time.Hour), time.Hour)
	if err != nil {
		return nil, err
	}
	since := now.Add(-minutesReach)
	if n := len(day); n > 0 && day[n-1].At.Add(time.Hour).After(since) {
		since = day[n-1].At.Add(time.Hour)
	}
	rest, err := s.cfg.Past.TenantPast(ctx, card.ID, card.Lane, since, time.Minute)
	if err != nil {
		return nil, err
	}
	return []page.WaitLine{waitLine(ctx, "promise.hour", hour), waitLine(ctx, "promise.day", append(day, rest...))}, nil
}

func waitLine(ctx context.Context, label views.Key, points []monitor.TenantPoint) page.WaitLine {
	var sum monitor.TenantPoint
	for _, p := range points {
		sum.Served, sum.Lane, sum.Entitled, sum.Starts = sum.Served+p.Served, sum.Lane+p.Lane, sum.Entitled+p.Entitled, sum.Starts+p.Starts
		sum.Waits = sum.Waits.Add(p.Waits)
	}
	return page.WaitLine{Span: views.T(ctx, label), Starts: views.Int(sum.Starts), P50: page.SecondsOf(ctx, sum.Waits.Quantile(.5)),
		P95: page.SecondsOf(ctx, sum.Waits.Quantile(.95)), Share: page.BasisPoints(sum.Share()), Entitled: page.BasisPoints(sum.Entitlement())}
}

// placeLines joins what the tenant owes, which the database knows, with its place, which the scheduler does.
func (s *Console) placeLines(ctx context.Context, card monitor.TenantCard) ([]page.PlaceLine, error) {
	debts, err := s.cfg.Present.Debts(ctx, card.ID)
	if err != nil {
		return nil, err
	}
	places, err := s.cfg.Present.Places(ctx, card.ID)
	if err != nil {
		return nil, err
	}
	var out []page.PlaceLine
	for _, d := range debts {
		line := page.PlaceLine{Lane: d.Lane, Deficit: "—", Debt: views.Milli(d.DebtMilli), Owes: d.DebtMilli > 0, Credit: d.DebtMilli < 0}
		told := false
		for _, place := range places {
			if place.Lane != d.Lane {
				continue
			}
			at := line
			at.Deficit, at.At = views.Milli(place.DeficitMilli), views.Time(place.At)
			out, told = append(out, at), true
		}
		if !told {
			out = append(out, line)
		}
	}
	return out, nil
}
