package part

import (
	"bytes"
	"context"
	"math"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBarNeverOverflows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.Int64Range(-10, 1000)
		c := Capacity{Total: units.Draw(t, "total"), Own: units.Draw(t, "own"), Common: units.Draw(t, "common"),
			Borrowed: units.Draw(t, "borrowed"), Lent: units.Draw(t, "lent"), Headroom: units.Draw(t, "headroom")}
		end := 0.0
		for _, s := range c.Segments() {
			x, w := number(t, s.X), number(t, s.Width)
			if x < end-0.02 || w < 0 || x+w > 100.02 {
				t.Fatalf("%+v: segment %+v after %v", c, s, end)
			}
			end = x + w
		}
	})
}

func number(t *rapid.T, text string) float64 {
	x, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestShareStaysInsideItsBar(t *testing.T) {
	t.Parallel()
	for _, x := range []float64{math.NaN(), -1, 0, 0.5, 2, math.Inf(1)} {
		s := Share{Has: x, Entitled: x}
		if w := s.width(); w < "0" || strings.Contains(w, "N") || strings.HasPrefix(w, "-") || len(w) > len("100.00%") {
			t.Errorf("%v is drawn as %s", x, w)
		}
	}
}

func TestSlotGridIsBounded(t *testing.T) {
	t.Parallel()
	cells, left := Slots{Own: 3, Common: 2, Unknown: 1, Free: 4}.Cells()
	if len(cells) != 10 || left != 0 || cells[0] != "own" || cells[5] != "unknown" || cells[9] != "" {
		t.Errorf("%v %d", cells, left)
	}
	cells, left = Slots{Own: 1_000_000_000, Free: 5}.Cells()
	if len(cells) != MaxCells || left != 1_000_000_005-MaxCells {
		t.Errorf("%d cells, %d left", len(cells), left)
	}
}

func TestFieldKeepsTheErrorBesideIt(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	f := FocusFirst([]Field{{Name: "a"}, {Name: "weight", Kind: "number", Label: "Weight", Value: `1"><script>`, Hint: "h", Error: "wrong <b>"}})[1]
	if err := Input(f).Render(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`for="weight"`, `aria-invalid="true"`, `aria-describedby="weight-hint weight-error"`, "autofocus", `value="1&#34;&gt;&lt;script&gt;"`, `id="weight-error"`, "wrong &lt;b&gt;"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %s in\n%s", part, out.String())
		}
	}
}
