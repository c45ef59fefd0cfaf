package part

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// The inner size of a chart; the picture is stretched to its place.
const (
	chartWidth  = 720
	chartHeight = 180
)

// Chart draws values over time. Whoever shows one puts a table of the same values beside it.
type Chart struct {
	Label string   // spoken in place of the picture
	X, Y  []string // labels from the left, and from the top
	Areas []Path
	Lines []Path

	from, to time.Time
	top      float64
	gap      time.Duration
}

// Path is one drawn series; Class is its look and Fill a pattern, "" leaves the fill to the class.
type Path struct{ Class, Fill, D string }

// Band is a part of the picture at one instant, between two values.
type Band struct {
	At        time.Time
	Low, High float64
}

// NewChart makes a chart from one instant to another with values from 0 to top. Neighbours that lie
// further apart than gap are not joined.
func NewChart(from, to time.Time, top float64, gap time.Duration) Chart {
	return Chart{from: from, to: to, top: top, gap: gap}
}

// Area draws a band.
func (c *Chart) Area(class, fill string, bands []Band) {
	var d strings.Builder
	for _, run := range c.runs(bands) {
		if len(run) == 1 { // one alone is a narrow column
			beside := run[0]
			beside.At = beside.At.Add(c.to.Sub(c.from) / chartWidth * 3)
			run = append(run, beside)
		}
		for i, b := range run {
			c.point(&d, i == 0, b.At, b.High)
		}
		for i := len(run) - 1; i >= 0; i-- {
			c.point(&d, false, run[i].At, run[i].Low)
		}
		d.WriteByte('Z')
	}
	if d.Len() > 0 {
		c.Areas = append(c.Areas, Path{Class: class, Fill: fill, D: d.String()})
	}
}

// Line draws the upper values of bands; those below 0 are gaps.
func (c *Chart) Line(class string, bands []Band) {
	var known []Band
	for _, b := range bands {
		if b.High >= 0 {
			known = append(known, b)
		}
	}
	var d strings.Builder
	for _, run := range c.runs(known) {
		for i, b := range run {
			c.point(&d, i == 0, b.At, b.High)
		}
		if len(run) == 1 { // a point alone is a short stroke
			c.point(&d, false, run[0].At.Add(c.to.Sub(c.from)/chartWidth*3), run[0].High)
		}
	}
	if d.Len() > 0 {
		c.Lines = append(c.Lines, Path{Class: class, D: d.String()})
	}
}

// runs cuts the bands where they lie too far apart.
func (c *Chart) runs(bands []Band) [][]Band {
	var out [][]Band
	for i, b := range bands {
		if i == 0 || b.At.Sub(bands[i-1].At) > c.gap {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], b)
	}
	return out
}

func (c *Chart) point(d *strings.Builder, first bool, at time.Time, v float64) {
	x, y := 0.0, float64(chartHeight)
	if whole := c.to.Sub(c.from); whole > 0 {
		x = chartWidth * clamp(float64(at.Sub(c.from))/float64(whole))
	}
	if c.top > 0 {
		y = chartHeight * (1 - clamp(v/c.top))
	}
	if first {
		d.WriteByte('M')
	} else {
		d.WriteByte('L')
	}
	d.WriteString(short(x))
	d.WriteByte(' ')
	d.WriteString(short(y))
}

func short(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// Top is the smallest round number that is not below x: 1, 2, 4, 5 or 8 times a power of ten, and at least 1.
func Top(x float64) float64 {
	if !(x > 1) || math.IsInf(x, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 4, 5, 8, 10} {
		if x <= m*power*(1+1e-12) {
			return m * power
		}
	}
	return 10 * power
}
