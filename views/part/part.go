package part

import (
	"math"
	"strconv"

	"fairlane/views"
)

// Field is one control of a form, with what was typed and what is wrong with it.
type Field struct {
	Name     string
	Kind     string // "text", "number" (kept as text, so that wrong input is shown again), "password", "area", "check", "select"
	Label    string
	Hint     string
	Unit     string
	Value    string // as typed
	Checked  bool
	Options  []Option
	Error    string
	Focus    bool // takes the focus when the page opens
	Required bool
	Max      int    // characters; 0: no bound of its own
	Complete string // autocomplete token; "" is off
}

// Option is a choice of a select field.
type Option struct{ Value, Label string }

// FocusFirst gives the focus to the first field with an error, else to none.
func FocusFirst(fields []Field) []Field {
	for i := range fields {
		if fields[i].Error != "" {
			fields[i].Focus = true
			break
		}
	}
	return fields
}

func (f Field) describedBy() string {
	id := ""
	if f.Hint != "" {
		id = f.Name + "-hint"
	}
	if f.Error != "" {
		if id != "" {
			id += " "
		}
		id += f.Name + "-error"
	}
	return id
}

func (f Field) inputType() string {
	if f.Kind == "password" {
		return "password"
	}
	return "text"
}

func (f Field) complete() string {
	if f.Complete == "" {
		return "off"
	}
	return f.Complete
}

// Capacity is one bar: what a lane or pool holds of its total, in slot units.
type Capacity struct {
	Total    int64
	Own      int64
	Common   int64
	Borrowed int64
	Lent     int64
	Headroom int64
	Label    string // spoken in place of the picture
}

// Segment is a part of a bar, in percent of its width.
type Segment struct {
	Class string
	X     string
	Width string
	Fill  string // pattern; "" leaves the fill to the class
}

// Segments lays the parts out from the left: own, common, borrowed from others, then from the right the
// headroom and what is lent out. What does not fit is cut; a bar never overflows.
func (c Capacity) Segments() []Segment {
	total := max(c.Total, c.Own+c.Common+c.Borrowed+c.Lent)
	if total <= 0 {
		return nil
	}
	var out []Segment
	x := 0.0
	add := func(class, fill string, units int64) {
		if units <= 0 {
			return
		}
		w := math.Min(100*float64(units)/float64(total), 100-x)
		out = append(out, Segment{Class: class, X: percent(x), Width: percent(w), Fill: fill})
		x += w
	}
	add("own", "", c.Own)
	add("common", "url(#p-common)", c.Common)
	add("borrowed", "url(#p-borrowed)", c.Borrowed)
	add("lent", "url(#p-lent)", c.Lent)
	if h := math.Min(100*float64(max(c.Headroom, 0))/float64(total), 100-x); h > 0 {
		out = append(out, Segment{Class: "headroom", X: percent(100 - h), Width: percent(h), Fill: "url(#p-headroom)"})
	}
	return out
}

// Share is a share bar: what a tenant has against what it is entitled to, as parts of 1.
type Share struct {
	Has      float64
	Entitled float64
	Label    string
}

func (s Share) width() string { return percent(100 * clamp(s.Has)) }
func (s Share) mark() string  { return percent(100 * clamp(s.Entitled)) }

// Slots is a grid with one cell per slot unit. Beyond MaxCells the grid is cut and says how many more.
type Slots struct {
	Own, Common, Borrowed, Unknown, Free int64
	Label                                string
}

// MaxCells is the most cells that a grid draws.
const MaxCells = 240

// Cells returns the class of each cell and how many were left out.
func (s Slots) Cells() ([]string, int64) {
	var cells []string
	var left int64
	for _, run := range []struct {
		class string
		n     int64
	}{{"own", s.Own}, {"common", s.Common}, {"borrowed", s.Borrowed}, {"unknown", s.Unknown}, {"", s.Free}} {
		for range min(run.n, MaxCells) {
			if len(cells) == MaxCells {
				break
			}
			cells = append(cells, run.class)
		}
		left += max(run.n, 0)
	}
	return cells, left - int64(len(cells))
}

// Pager moves through keyset pages; empty addresses are not shown.
type Pager struct {
	First, Next string
	Shown       int
}

// DiffRow is one changed field, said in the reader's language. Shares are "" where they do not apply.
type DiffRow struct {
	Object      string
	ObjectKind  string
	Field       string
	Path        string // of the document, for those who read it raw
	Before      string
	After       string
	ShareBefore string
	ShareAfter  string
	ShareOf     string // lane
}

// Step is one of a path of steps.
type Step struct {
	Label views.Key
	State string // "done", "on" or ""
}

func stepSign(i int, s Step) string {
	if s.State == "done" {
		return "✓"
	}
	return strconv.Itoa(i + 1)
}

func percent(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) + "%" }

func clamp(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return math.Max(0, math.Min(1, x))
}
