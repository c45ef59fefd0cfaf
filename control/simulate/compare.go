package simulate

import (
	"slices"
	"strings"
)

// Figures are the names of what a report says, in its order. Times in seconds, shares parts of one.
var (
	OverallFigures = []string{
		"tasks", "started", "rejected", "expired", "never_start", "wait_p50", "wait_p95", "wait_p99", "wait_max", "utilisation", "jain",
	}
	LaneFigures = []string{
		"started", "expired", "never_start", "starved", "wait_p50", "wait_p95", "wait_p99", "wait_max", "share", "busy", "borrowed",
		"lent", "back_p50", "back_p95", "back_max", "back_kept", "back_late", "lender_waited_p95", "lender_waited_max",
	}
	TenantFigures = []string{
		"weight", "arrivals", "started", "rejected", "expired", "never_start", "wait_p50", "wait_p95", "wait_p99", "wait_max",
		"busy", "share", "entitled", "error", "backlogged", "longest_hours", "longest_error", "borrowed",
	}
)

// Range is a figure over several seeds; all unknown when it was never known.
type Range struct {
	Min    Number `json:"min"`
	Median Number `json:"median"`
	Max    Number `json:"max"`
}

// Row is the figures of a lane, or of a tenant in a lane, by name.
type Row struct {
	Lane    string           `json:"lane,omitempty"`
	Tenant  string           `json:"tenant,omitempty"`
	Figures map[string]Range `json:"figures"`
}

// Report is what one policy came to over its seeds.
type Report struct {
	Overall Row   `json:"overall"`
	Lanes   []Row `json:"lanes"`
	Tenants []Row `json:"tenants"` // those with the most arrivals first
}

// Summarise puts the results of one policy together.
func Summarise(results []*Result) *Report {
	overall, lanes, tenants := newRows(), newRows(), newRows()
	for _, r := range results {
		overall.add("", "", overallOf(r))
		for i := range r.Lanes {
			lanes.add(r.Lanes[i].Lane, "", laneOf(&r.Lanes[i]))
		}
		for i := range r.Tenants {
			tenants.add(r.Tenants[i].Lane, r.Tenants[i].Tenant, tenantOf(&r.Tenants[i]))
		}
	}
	out := &Report{Lanes: lanes.ranges(), Tenants: tenants.ranges()}
	if all := overall.ranges(); len(all) > 0 {
		out.Overall = all[0]
	}
	slices.SortStableFunc(out.Tenants, func(a, b Row) int {
		x, y := a.Figures["arrivals"].Median, b.Figures["arrivals"].Median
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return strings.Compare(a.Tenant, b.Tenant)
	})
	return out
}

// Differences is b − a by medians, for the rows of a report's lists that both have; a figure that one of
// them does not know is left out.
func Differences(a, b []Row) []Row {
	type key struct{ lane, tenant string }
	there := map[key]Row{}
	for _, r := range b {
		there[key{r.Lane, r.Tenant}] = r
	}
	var out []Row
	for _, r := range a {
		other, ok := there[key{r.Lane, r.Tenant}]
		if !ok {
			continue
		}
		row := Row{Lane: r.Lane, Tenant: r.Tenant, Figures: map[string]Range{}}
		for name, x := range r.Figures {
			if y := other.Figures[name]; x.Median.Known() && y.Median.Known() {
				d := y.Median - x.Median
				row.Figures[name] = Range{d, d, d}
			}
		}
		out = append(out, row)
	}
	return out
}

func overallOf(r *Result) map[string]Number {
	f := map[string]Number{
		"tasks": Number(r.Tasks), "started": Number(r.Started), "rejected": Number(r.Rejected),
		"expired": Number(r.Expired), "never_start": Number(r.NeverStart), "jain": r.Jain,
	}
	var used, units float64
	for _, g := range r.Groups {
		used, units = used+g.Utilisation*float64(g.Capacity), units+float64(g.Capacity)
	}
	f["utilisation"] = none
	if units > 0 {
		f["utilisation"] = Number(used / units)
	}
	r.Wait.into(f)
	return f
}

func (w *Waits) into(f map[string]Number) {
	f["wait_p50"], f["wait_p95"], f["wait_p99"], f["wait_max"] = w.P50, w.P95, w.P99, w.Max
}

func laneOf(l *LaneResult) map[string]Number {
	f := map[string]Number{
		"started": Number(l.Started), "expired": Number(l.Expired), "never_start": Number(l.NeverStart), "starved": Number(l.Starved),
		"share": Number(l.Share), "busy": Number(l.Busy), "borrowed": Number(l.Borrowed),
	}
	l.Wait.into(f)
	if n := l.Lending; n != nil {
		f["lent"], f["back_p50"], f["back_p95"], f["back_max"] = Number(n.Units), n.P50, n.P95, n.Max
		f["back_kept"], f["back_late"] = n.Kept, Number(n.Late)
		f["lender_waited_p95"], f["lender_waited_max"] = n.WaitedP95, n.WaitedMax
	}
	return f
}

func tenantOf(t *TenantResult) map[string]Number {
	f := map[string]Number{
		"weight": Number(t.Weight), "arrivals": Number(t.Arrivals), "started": Number(t.Started), "rejected": Number(t.Rejected),
		"expired": Number(t.Expired), "never_start": Number(t.NeverStart), "busy": Number(t.Busy), "share": Number(t.Share),
		"entitled": t.Entitled, "error": t.Error, "backlogged": t.Backlogged,
		"longest_hours": t.LongestHours, "longest_error": t.LongestError, "borrowed": Number(t.Borrowed),
	}
	t.Wait.into(f)
	return f
}

// rows collects figures by row, in the order in which rows came first.
type rows struct {
	order []*collected
	by    map[[2]string]*collected
}

type collected struct {
	lane, tenant string
	values       map[string][]Number
}

func newRows() *rows { return &rows{by: map[[2]string]*collected{}} }

func (r *rows) add(lane, tenant string, figures map[string]Number) {
	c := r.by[[2]string{lane, tenant}]
	if c == nil {
		c = &collected{lane, tenant, map[string][]Number{}}
		r.by[[2]string{lane, tenant}] = c
		r.order = append(r.order, c)
	}
	for name, v := range figures {
		c.values[name] = append(c.values[name], v)
	}
}

func (r *rows) ranges() []Row {
	out := make([]Row, 0, len(r.order))
	for _, c := range r.order {
		row := Row{Lane: c.lane, Tenant: c.tenant, Figures: make(map[string]Range, len(c.values))}
		for name, v := range c.values {
			row.Figures[name] = rangeOf(v)
		}
		out = append(out, row)
	}
	return out
}

func rangeOf(values []Number) Range {
	known := slices.DeleteFunc(values, func(n Number) bool { return !n.Known() })
	if len(known) == 0 {
		return Range{none, none, none}
	}
	slices.Sort(known)
	middle := known[len(known)/2]
	if len(known)%2 == 0 {
		middle = (known[len(known)/2-1] + middle) / 2
	}
	return Range{known[0], middle, known[len(known)-1]}
}
