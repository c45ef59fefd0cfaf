package page

import (
	"context"
	"math"
	"time"

	"fairlane/views"
	"fairlane/views/part"
)

// Span is a choice of how far back a chart looks.
type Span struct {
	Name  string // of the address; the word of the family "span"
	Href  string
	Shown bool
}

// Past is a chart with the table of its values, and the choice of its span.
type Past struct {
	Address string // that answers it anew
	Sampled int64  // newest sample in it, Unix milliseconds
	Spans   []Span
	Chart   part.Chart
	Second  *part.Chart
	Rows    [][]string // of the table, in the order of its columns, the newest first
}

// TableRows is the most rows of the table beside a chart.
const TableRows = 12

// every is how many bins lie between two rows of the table.
func every(bins int) int { return max(1, (bins+TableRows-1)/TableRows) }

// axis writes the labels of a chart: three of the values, four of the time.
func axis(ctx context.Context, c *part.Chart, from, to time.Time, top float64, say func(float64) string) {
	c.Y = []string{say(top), say(top / 2), say(0)}
	for i := range 4 {
		c.X = append(c.X, ClockOf(ctx, from.Add(to.Sub(from)*time.Duration(i)/3), to.Sub(from)))
	}
}

// ClockOf writes an instant of a span in the reader's zone, else in UTC: the shorter the span the finer.
func ClockOf(ctx context.Context, t time.Time, span time.Duration) string {
	if zone := views.Of(ctx).Zone; zone != nil {
		t = t.In(zone)
	} else {
		t = t.UTC()
	}
	switch {
	case span <= time.Hour:
		return t.Format("15:04:05")
	case span <= 12*time.Hour:
		return t.Format("15:04")
	}
	return t.Format("01-02 15:04")
}

// Amount writes a mean of slot units or tasks with at most one place.
func Amount(x float64) string { return views.Float(math.Round(x*10) / 10) }

// SecondsOf writes a length of time in seconds; below 0 is a dash.
func SecondsOf(ctx context.Context, s float64) string {
	if s < 0 {
		return "—"
	}
	d := time.Duration(s * float64(time.Second))
	if d < 10*time.Second {
		return views.Duration(ctx, d.Truncate(100*time.Millisecond))
	}
	return views.Duration(ctx, d.Truncate(time.Second))
}

// LanePoint is a bin of a lane's past, in slot units; Oldest in seconds.
type LanePoint struct {
	At                                                      time.Time
	Reserved, Headroom, Own, Common, Borrowed, Lent, Queued float64
	Oldest                                                  float64
}

// DrawLane draws what a lane held: own, common, borrowed and lent on each other, the reserve as a line and
// the headroom as the part below it that is never lent.
func DrawLane(ctx context.Context, points []LanePoint, from, to time.Time, bin time.Duration) (part.Chart, [][]string) {
	highest := 0.0
	for _, p := range points {
		highest = max(highest, p.Reserved, p.Own+p.Common+p.Borrowed+p.Lent)
	}
	top := part.Top(highest)
	c := part.NewChart(from, to, top, bin*5/2)
	axis(ctx, &c, from, to, top, Amount)
	stack := make([][5]float64, len(points))
	bands := func(low, high func(i int) float64) []part.Band {
		out := make([]part.Band, len(points))
		for i, p := range points {
			out[i] = part.Band{At: p.At, Low: low(i), High: high(i)}
		}
		return out
	}
	for i, p := range points {
		for k, v := range []float64{p.Own, p.Common, p.Borrowed, p.Lent} {
			stack[i][k+1] = stack[i][k] + v
		}
	}
	for k, look := range [][2]string{{"own", ""}, {"common", "url(#p-common)"}, {"borrowed", "url(#p-borrowed)"}, {"lent", "url(#p-lent)"}} {
		c.Area(look[0], look[1], bands(func(i int) float64 { return stack[i][k] }, func(i int) float64 { return stack[i][k+1] }))
	}
	c.Area("headroom", "url(#p-headroom)", bands(
		func(i int) float64 { return max(points[i].Reserved-points[i].Headroom, 0) }, func(i int) float64 { return points[i].Reserved }))
	c.Line("line-reserved", bands(func(int) float64 { return 0 }, func(i int) float64 { return points[i].Reserved }))
	c.Label = views.T(ctx, "past.lane_label", "From", ClockOf(ctx, from, to.Sub(from)), "To", ClockOf(ctx, to, to.Sub(from)))
	var rows [][]string
	step := every(len(points))
	for i := len(points) - 1; i >= 0; i -= step {
		p := points[i]
		rows = append(rows, []string{ClockOf(ctx, p.At, to.Sub(from)), Amount(p.Own), Amount(p.Common), Amount(p.Borrowed), Amount(p.Lent),
			Amount(p.Headroom), Amount(p.Reserved), Amount(p.Queued), SecondsOf(ctx, p.Oldest)})
	}
	return c, rows
}

// TenantPoint is a bin of a tenant's past in its home lane. Shares in 1/100 % and waits in seconds are -1
// where there is none; Served and Debt are fairness milli-units.
type TenantPoint struct {
	At              time.Time
	Share, Entitled int64
	P50, P95        float64
	Served, Debt    int64
	Starts          int64
}

// DrawTenant draws the share against the entitlement, and the waits.
func DrawTenant(ctx context.Context, points []TenantPoint, from, to time.Time, bin time.Duration) (shares, waits part.Chart, rows [][]string) {
	highest, longest := int64(0), 0.0
	for _, p := range points {
		highest, longest = max(highest, p.Share, p.Entitled), max(longest, p.P95)
	}
	top := min(part.Top(float64(highest)/100), 100)
	shares = part.NewChart(from, to, top, bin*5/2)
	axis(ctx, &shares, from, to, top, func(x float64) string { return views.Percent(x / 100) })
	high := part.Top(longest)
	waits = part.NewChart(from, to, high, bin*5/2)
	axis(ctx, &waits, from, to, high, func(x float64) string { return SecondsOf(ctx, x) })
	bands := func(value func(p TenantPoint) float64) []part.Band {
		out := make([]part.Band, len(points))
		for i, p := range points {
			out[i] = part.Band{At: p.At, High: value(p)}
		}
		return out
	}
	shares.Area("own", "", bands(func(p TenantPoint) float64 { return max(float64(p.Share)/100, 0) }))
	shares.Line("line-entitled", bands(func(p TenantPoint) float64 { return float64(p.Entitled) / 100 }))
	waits.Line("line-p95", bands(func(p TenantPoint) float64 { return p.P95 }))
	waits.Line("line-p50", bands(func(p TenantPoint) float64 { return p.P50 }))
	first, last := ClockOf(ctx, from, to.Sub(from)), ClockOf(ctx, to, to.Sub(from))
	shares.Label = views.T(ctx, "past.share_label", "From", first, "To", last)
	waits.Label = views.T(ctx, "past.wait_label", "From", first, "To", last)
	step := every(len(points))
	for i := len(points) - 1; i >= 0; i -= step {
		p := points[i]
		rows = append(rows, []string{ClockOf(ctx, p.At, to.Sub(from)), BasisPoints(p.Share), BasisPoints(p.Entitled), views.Milli(p.Served), views.Int(p.Starts),
			SecondsOf(ctx, p.P50), SecondsOf(ctx, p.P95), views.Milli(p.Debt)})
	}
	return shares, waits, rows
}
