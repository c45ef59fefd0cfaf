package console

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/policy"
	"fairlane/views"
	"fairlane/views/page"
)

// laneNow makes the live part of a lane's page.
func (s *Console) laneNow(c *gin.Context, o object) (templ.Component, error) {
	state := s.state()
	p := page.LaneNow{Live: live(state, monitor.TopicLanes), Lane: page.LaneLine{Lane: o.title, Open: true}}
	for _, l := range laneLines(state) {
		if l.Lane == o.title {
			p.Lane = l
		}
	}
	var err error
	p.Past, err = s.lanePastOf(c, state, o.title)
	return page.LaneNowPart(p), err
}

// lanePast answers GET /lanes/:lane/past.
func (s *Console) lanePast(c *gin.Context) {
	doc, _ := s.cfg.Active()
	l := laneOf(doc, c.Param("lane"))
	if l == nil {
		_ = c.Error(control.Errorf(control.CodeNotFound, "there is no such lane"))
		return
	}
	p, err := s.lanePastOf(c, s.state(), l.Code)
	fragment(c, page.LanePastPart(p), err)
}

func (s *Console) lanePastOf(c *gin.Context, state *monitor.State, lane string) (page.LanePast, error) {
	ctx := c.Request.Context()
	now := views.Of(ctx).Now
	at := "/lanes/" + url.PathEscape(lane)
	span := spanOf(c, laneSpans)
	p := page.LanePast{Past: span.past(at, at+"/past", laneSpans, state.SampledAt), Lane: lane}
	from := span.from(now)
	points, err := s.cfg.Past.LanePast(ctx, lane, from, span.bin)
	if err != nil {
		return p, err
	}
	list := make([]page.LanePoint, len(points))
	for i, x := range points {
		list[i] = page.LanePoint{At: x.At, Reserved: x.Reserved, Headroom: x.Headroom, Own: x.Own, Common: x.Common,
			Borrowed: x.Borrowed, Lent: x.Lent, Queued: x.Queued, Oldest: x.Oldest}
	}
	p.Chart, p.Rows = page.DrawLane(ctx, list, from, now, span.bin)
	if err := s.lending(c, state, &p); err != nil {
		return p, err
	}
	p.Starving, p.Hidden, err = starved(c, s.cfg.Present, state, lane)
	return p, err
}

// lending says what the lane lends, to whom, and how it came back.
func (s *Console) lending(c *gin.Context, state *monitor.State, p *page.LanePast) error {
	ctx := c.Request.Context()
	doc, _ := s.cfg.Active()
	if l := laneOf(doc, p.Lane); l != nil {
		p.Lends = lendLines(ctx, l, state)
	}
	promise, err := s.cfg.Past.Promise(ctx, p.Lane)
	if err != nil {
		return err
	}
	p.Hour, p.Day = promiseLine(promise.Hour), promiseLine(promise.Day)
	for _, m := range promise.Misses {
		p.Misses = append(p.Misses, missLine(c, m))
	}
	if len(p.Misses) > 0 && len(p.Lends) == 0 { // it has stopped to lend by policy, and has not got everything back in time
		p.Lends = []page.LendLine{{Group: promise.Misses[0].Group, Lendable: "0", Lent: "—", LendsTo: "—", Within: "—", Cooldown: "—"}}
	}
	out, err := s.cfg.Past.Loans(ctx, p.Lane, "")
	if err != nil {
		return err
	}
	p.Borrows = loanLines(c, out, false)
	in, err := s.cfg.Past.Loans(ctx, "", p.Lane)
	if err != nil {
		return err
	}
	p.Lenders = loanLines(c, in, true)
	return nil
}

func lendLines(ctx context.Context, l *policy.Lane, state *monitor.State) []page.LendLine {
	var out []page.LendLine
	for _, a := range l.Accounts {
		if a.LendableUnits == 0 && len(a.LendsTo) == 0 {
			continue
		}
		line := page.LendLine{Group: a.PoolGroup, Lendable: views.Int(a.LendableUnits), Lent: "0", LendsTo: strings.Join(a.LendsTo, ", "),
			Within: views.Seconds(ctx, a.BorrowTimeout), Cooldown: views.Seconds(ctx, a.Cooldown)}
		for _, row := range state.Accounts {
			if row.Lane != l.Code || row.Group != a.PoolGroup {
				continue
			}
			line.Lent = views.Int(row.Lent)
			if row.Stopped {
				line.Stopped = views.Time(row.StoppedSince)
			}
		}
		out = append(out, line)
	}
	return out
}

func promiseLine(k monitor.PromiseKept) page.PromiseLine {
	line := page.PromiseLine{Part: "—", Kept: views.Int(k.Kept), Loans: views.Int(k.Loans)}
	if part := k.Part(); part >= 0 {
		line.Part, line.Level = views.Percent(part), "bad"
		if part >= monitor.PromiseTarget {
			line.Level = "good"
		}
	}
	return line
}

func missLine(c *gin.Context, m monitor.MissedLoan) page.MissLine {
	ctx := c.Request.Context()
	line := page.MissLine{Lane: m.Lane, Units: views.Int(m.Units), Due: views.Time(m.DueAt), Unknown: m.Unknown, Out: m.ReturnedAt.IsZero()}
	end := m.ReturnedAt
	if line.Out {
		end = views.Of(ctx).Now
	}
	line.Late = ago(ctx, end, m.DueAt)
	if seesTenant(c, m.HomeLane, m.TenantID) {
		line.Tenant, line.Task, line.TaskHref = m.TenantCode, m.TaskID.String(), "/tasks/"+m.TaskID.String()
	}
	return line
}

// loanLines shows loans by tenant where the operator may see the tenant, and the others in one sum for
// each lane and group (I13). lenders: the rows are told apart by the lender.
func loanLines(c *gin.Context, loans []monitor.Loan, lenders bool) []page.LoanLine {
	type sum struct {
		lane, group  string
		loans, units int64
		due          time.Time
	}
	var out []page.LoanLine
	var others []*sum
	for _, l := range loans {
		lane := l.Lane
		if lenders {
			lane = l.Lender
		}
		if seesTenant(c, l.HomeLane, l.TenantID) {
			out = append(out, page.LoanLine{Lane: lane, Tenant: l.Tenant, TenantHref: "/tenants/" + url.PathEscape(l.TenantCode), Group: l.Group,
				Loans: views.Int(l.Loans), Units: views.Int(l.Units), Due: views.Time(l.NextDueAt)})
			continue
		}
		var s *sum
		for _, o := range others {
			if o.lane == lane && o.group == l.Group {
				s = o
			}
		}
		if s == nil {
			s = &sum{lane: lane, group: l.Group, due: l.NextDueAt}
			others = append(others, s)
		}
		s.loans, s.units = s.loans+l.Loans, s.units+l.Units
		if l.NextDueAt.Before(s.due) {
			s.due = l.NextDueAt
		}
	}
	for _, o := range others {
		out = append(out, page.LoanLine{Lane: o.lane, Group: o.group, Loans: views.Int(o.loans), Units: views.Int(o.units), Due: views.Time(o.due), Others: true})
	}
	return out
}
