package page

import (
	"context"
	"strconv"
	"strings"
	"time"

	"fairlane/views"
	"fairlane/views/part"
)

// Live frames a page whose parts are kept fresh by js/live.js: which topics they are of, and when the
// facts that were rendered were read.
type Live struct {
	Topics []string
	AsOf   time.Time
}

func (l Live) topics() string { return strings.Join(l.Topics, " ") }

// LaneLine is a lane as it is shown. Slot units; Milli: fairness milli-units.
type LaneLine struct {
	Lane                                             string
	Weight                                           int64
	Own, Common, Borrowed, Lent, Headroom, Reserved  int64
	Used, Free, Over                                 int64
	QueuedTasks, QueuedMilli, Running, TargetSeconds int64
	OldestAt                                         time.Time
	Paused, Open                                     bool
	Stopped                                          bool // it lends nothing for now
	StoppedSince                                     time.Time
}

// AccountLine is a lane's account in a pool group.
type AccountLine struct {
	Key, Lane, Group                               string
	Own, Common, Reserved, CommonUsed, CommonUnits int64
	Borrowed, Lent                                 int64
}

// PoolLine is a pool or a cap group.
type PoolLine struct {
	Key, Title                  string
	Parents                     []string
	Capacity, Used, Free, Over  int64
	Unknown, UnknownUnits       int64
	Paused, Removed, IsCapGroup bool
	Limit                       int64     // adaptive limit; -1: none
	OpenUntil                   time.Time // its breaker is open until then; zero: it is closed
	Earmarked                   int64     // units kept for a task that was passed over too often
}

// TenantLine is a tenant with its use and, in 1/100 %, its share of the home lane (-1: none).
type TenantLine struct {
	ID, Code, Name, Plan, Lane    string
	Suspended                     bool
	Weight, Running, RunningUnits int64
	QueuedTasks, QueuedMilli      int64
	OldestAt                      time.Time
	Share, Entitled               int64
}

// Units writes fairness milli-units as whole units.
func Units(milli int64) string { return views.Int((milli + 500) / 1000) }

// BasisPoints writes parts in 1/100 %; -1 is a dash.
func BasisPoints(bp int64) string {
	if bp < 0 {
		return "—"
	}
	return views.Percent(float64(bp) / 10_000)
}

// Since writes how long something has lasted for the reader; a dash when it has not begun.
func Since(ctx context.Context, at time.Time) string {
	if at.IsZero() {
		return "—"
	}
	return views.Duration(ctx, max(views.Of(ctx).Now.Sub(at), 0).Truncate(time.Second))
}

// waitLevel is the level of a wait against its target: over it, past two thirds of it, within it; "free"
// without a target, "none" when nothing waits. js/rows.js has the same rule.
func waitLevel(ctx context.Context, at time.Time, target int64) string {
	if at.IsZero() {
		return "none"
	}
	if target <= 0 {
		return "free"
	}
	switch wait := max(views.Of(ctx).Now.Sub(at), 0); {
	case wait > time.Duration(target)*time.Second:
		return "bad"
	case wait > time.Duration(target)*667*time.Millisecond:
		return "warn"
	}
	return "good"
}

var waitMarks = map[string]string{"good": "✓ ", "warn": "▲ ", "bad": "✕ "}

func waitText(ctx context.Context, at time.Time, target int64, short bool) string {
	text := Since(ctx, at)
	if short && !at.IsZero() {
		text = clockText(max(views.Of(ctx).Now.Sub(at), 0))
	}
	return waitMarks[waitLevel(ctx, at, target)] + text
}

// clockText is the wall's short form: 6:12, 1:06:12.
func clockText(d time.Duration) string {
	s := int64(d / time.Second)
	two := func(n int64) string {
		if n < 10 {
			return "0" + strconv.FormatInt(n, 10)
		}
		return strconv.FormatInt(n, 10)
	}
	if s < 3600 {
		return strconv.FormatInt(s/60, 10) + ":" + two(s%60)
	}
	return strconv.FormatInt(s/3600, 10) + ":" + two(s/60%60) + ":" + two(s%60)
}

// fill puts values into the {} places of a text that scripts fill too.
func fill(text string, values ...string) string {
	for _, v := range values {
		text = strings.Replace(text, "{}", v, 1)
	}
	return text
}

func (l LaneLine) bar(ctx context.Context) part.Capacity {
	return part.Capacity{Total: l.Reserved, Own: l.Own, Common: l.Common, Borrowed: l.Borrowed, Lent: l.Lent, Headroom: l.Headroom,
		Label: fill(views.T(ctx, "lanes.bar"), views.Int(l.Own), views.Int(l.Common), views.Int(l.Reserved))}
}

func (p PoolLine) slots(ctx context.Context) part.Slots {
	unknown := min(p.UnknownUnits, p.Used)
	return part.Slots{Own: p.Used - unknown, Unknown: unknown, Free: p.Free,
		Label: fill(views.T(ctx, "pools.grid"), views.Int(p.Used), views.Int(p.Capacity))}
}

func (p PoolLine) bar(ctx context.Context) part.Capacity {
	return part.Capacity{Total: p.Capacity, Own: p.Used, Label: fill(views.T(ctx, "pools.grid"), views.Int(p.Used), views.Int(p.Capacity))}
}

func (t TenantLine) bar(ctx context.Context) part.Share {
	return part.Share{Has: float64(max(t.Share, 0)) / 10_000, Entitled: float64(max(t.Entitled, 0)) / 10_000,
		Label: fill(views.T(ctx, "tenants.share_bar"), BasisPoints(t.Share), BasisPoints(t.Entitled))}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

var cellLimit = strconv.Itoa(part.MaxCells)

func anchor(key string) string { return "lane-" + key }
