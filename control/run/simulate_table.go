package run

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"fairlane/control/simulate"
)

// column is one figure of a table: how it is called and written.
type column struct {
	name, title string
	write       func(float64) string
}

func whole(f float64) string    { return fmt.Sprintf("%.0f", f) }
func times(f float64) string    { return fmt.Sprintf("%.1f", f) }
func percents(f float64) string { return fmt.Sprintf("%.2f %%", f*100) }

var overallColumns = []column{
	{"tasks", "tasks", whole}, {"started", "started", whole}, {"rejected", "rejected", whole}, {"expired", "expired", whole},
	{"never_start", "never start", whole}, {"wait_p50", "wait p50 s", times}, {"wait_p95", "p95 s", times}, {"wait_p99", "p99 s", times},
	{"wait_max", "max s", times}, {"utilisation", "utilisation", percents}, {"jain", "Jain", func(f float64) string { return fmt.Sprintf("%.4f", f) }},
}

var laneColumns = []column{
	{"started", "started", whole}, {"never_start", "never start", whole}, {"starved", "starved", whole},
	{"wait_p50", "wait p50 s", times}, {"wait_p95", "p95 s", times}, {"wait_p99", "p99 s", times}, {"wait_max", "max s", times},
	{"share", "share", percents}, {"busy", "units", times}, {"borrowed", "borrowed", whole},
	{"lent", "lent", whole}, {"back_p50", "back p50 s", times}, {"back_p95", "p95 s", times}, {"back_max", "max s", times},
	{"back_kept", "kept", percents}, {"back_late", "late", whole}, {"lender_waited_max", "waited for it, max s", times},
}

var tenantColumns = []column{
	{"weight", "weight", whole}, {"started", "started", whole}, {"rejected", "rejected", whole}, {"never_start", "never start", whole},
	{"wait_p50", "wait p50 s", times}, {"wait_p95", "p95 s", times}, {"wait_p99", "p99 s", times}, {"wait_max", "max s", times},
	{"busy", "units", times}, {"share", "share", percents}, {"entitled", "entitled", percents}, {"error", "error", percents},
	{"backlogged", "backlogged", percents}, {"longest_hours", "longest h", times}, {"longest_error", "error in it", percents},
}

func printTables(out io.Writer, about traceFacts, played []side, rows int) error {
	w := &sticky{out: out}
	fmt.Fprintf(w, "trace %s: %d tasks of %d tenants in %.1f h", about.Trace, about.Tasks, about.Tenants, about.Hours)
	if about.Seeds > 1 {
		fmt.Fprintf(w, "; %d seeds: median, and from smallest to largest in brackets", about.Seeds)
	}
	fmt.Fprintln(w)
	for _, s := range played {
		r := s.Report
		printRows(w, s.Name, overallColumns, []simulate.Row{r.Overall}, false)
		printRows(w, s.Name+": lanes", laneColumns, busyRows(r.Lanes), false)
		printRows(w, s.Name+": tenants"+cut(len(r.Tenants), rows), tenantColumns, first(r.Tenants, rows), false)
		printReasons(w, s.Results)
	}
	if len(played) == 2 {
		d := differ(played[0].Report, played[1].Report)
		title := played[1].Name + " − " + played[0].Name
		printRows(w, title, overallColumns, d.Overall, true)
		printRows(w, title+": lanes", laneColumns, namedIn(d.Lanes, busyRows(played[0].Report.Lanes), busyRows(played[1].Report.Lanes)), true)
		printRows(w, title+": tenants"+cut(len(d.Tenants), rows), tenantColumns, first(d.Tenants, rows), true)
	}
	return w.err
}

// sticky keeps the first error of a writer.
type sticky struct {
	out io.Writer
	err error
}

func (s *sticky) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	var n int
	n, s.err = s.out.Write(p)
	return n, s.err
}

func first(rows []simulate.Row, most int) []simulate.Row {
	if most == 0 || most > len(rows) {
		return rows
	}
	return rows[:most]
}

func cut(all, most int) string {
	if most == 0 || most >= all {
		return ""
	}
	return fmt.Sprintf(" (the %d with the most tasks of %d)", most, all)
}

// busyRows leaves out lanes of which there is nothing to say.
func busyRows(rows []simulate.Row) []simulate.Row {
	var out []simulate.Row
	for _, r := range rows {
		if r.Figures["started"].Max > 0 || r.Figures["never_start"].Max > 0 || r.Figures["lent"].Max > 0 {
			out = append(out, r)
		}
	}
	return out
}

// namedIn leaves out differences of lanes of which neither side has anything to say.
func namedIn(rows []simulate.Row, sides ...[]simulate.Row) []simulate.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r simulate.Row) bool {
		return !slices.ContainsFunc(slices.Concat(sides...), func(s simulate.Row) bool { return s.Lane == r.Lane })
	})
}

// printRows writes a table; columns of which no row knows anything are left out. Differences carry a sign.
func printRows(w io.Writer, title string, columns []column, rows []simulate.Row, signed bool) {
	if len(rows) == 0 {
		return
	}
	var known []column
	for _, c := range columns {
		for _, r := range rows {
			if f, ok := r.Figures[c.name]; ok && f.Median.Known() {
				known = append(known, c)
				break
			}
		}
	}
	fmt.Fprintf(w, "\n%s\n", title)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush() //nolint:errcheck // w keeps its error
	named := rows[0].Lane != "" || rows[0].Tenant != ""
	if named {
		fmt.Fprint(table, "\t")
	}
	for _, c := range known {
		fmt.Fprintf(table, "%s\t", c.title)
	}
	fmt.Fprintln(table)
	for _, r := range rows {
		if named {
			name := r.Lane
			if r.Tenant != "" {
				name = r.Tenant + " (" + r.Lane + ")"
			}
			fmt.Fprintf(table, "%s\t", name)
		}
		for _, c := range known {
			fmt.Fprintf(table, "%s\t", cell(c, r.Figures, signed))
		}
		fmt.Fprintln(table)
	}
}

func cell(c column, figures map[string]simulate.Range, signed bool) string {
	f, ok := figures[c.name]
	if !ok || !f.Median.Known() {
		return "-"
	}
	text := c.write(float64(f.Median))
	switch {
	case signed && !strings.HasPrefix(text, "-"):
		text = "+" + text
	case !signed && f.Min != f.Max:
		text += " [" + c.write(float64(f.Min)) + " " + c.write(float64(f.Max)) + "]"
	}
	return text
}

// printReasons says why tasks were turned away, by the mean over the seeds.
func printReasons(w io.Writer, results []*simulate.Result) {
	sums := map[string]int{}
	for _, r := range results {
		for reason, n := range r.Reasons {
			sums[reason] += n
		}
	}
	for _, reason := range sorted(sums) {
		fmt.Fprintf(w, "%s: %.0f\n", reason, math.Round(float64(sums[reason])/float64(len(results))))
	}
}
