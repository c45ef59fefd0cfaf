package part

import (
	"math"
	"testing"
	"time"
)

func TestTopIsRoundAndNeverBelow(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]float64{-3: 1, 0: 1, 1: 1, 1.2: 2, 3: 4, 4.2: 5, 7: 8, 9: 10, 10: 10, 100: 100, 101: 200, 560: 800, 1e9: 1e9} {
		if got := Top(x); got != want {
			t.Errorf("Top(%g) = %g, want %g", x, got, want)
		}
	}
	if Top(math.NaN()) != 1 || Top(math.Inf(1)) != 1 {
		t.Error("what is no number has a top")
	}
}

func TestChartBreaksAtGapsAndStaysInside(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(m int) time.Time { return from.Add(time.Duration(m) * time.Minute) }
	c := NewChart(from, at(60), 10, 5*time.Minute)
	c.Area("own", "", []Band{{at(0), 0, 10}, {at(5), 0, 5}, {at(30), 2, 40}, {at(90), 0, -3}})
	if want := "M0 0L60 90L60 180L0 180Z" + "M360 0L363 0L363 144L360 144Z" + "M720 180L720 180L720 180L720 180Z"; len(c.Areas) != 1 || c.Areas[0].D != want {
		t.Errorf("got %+v, want %s", c.Areas, want)
	}
	c.Line("p50", []Band{{At: at(0), High: 1}, {At: at(5), High: -1}, {At: at(10), High: 1}})
	if want := "M0 162L3 162M120 162L123 162"; len(c.Lines) != 1 || c.Lines[0].D != want {
		t.Errorf("got %+v, want %s", c.Lines, want)
	}
	c.Line("p95", nil)
	c.Area("lent", "", nil)
	if len(c.Lines) != 1 || len(c.Areas) != 1 {
		t.Error("nothing is drawn of nothing")
	}
	empty := NewChart(from, from, 0, 0)
	empty.Line("x", []Band{{At: from, High: 3}})
	if len(empty.Lines) != 1 || empty.Lines[0].D != "M0 180L0 180" {
		t.Errorf("an empty span: %+v", empty.Lines)
	}
}
