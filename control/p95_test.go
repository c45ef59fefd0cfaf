package control_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlane/control"
)

// A class never promises less than the duration, and at most an eighth of an octave more.
func TestP95Class(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d     time.Duration
		class control.P95Class
	}{{0, 0}, {time.Second, 0}, {time.Second + 1, 1}, {2 * time.Second, 8}, {1024 * time.Second, 80}, {1000 * time.Hour, 160}} {
		if got := control.ClassOfP95(c.d); got != c.class {
			t.Errorf("class of %v is %d, want %d", c.d, got, c.class)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "d"))
		c := control.ClassOfP95(d)
		if c.Bound() < d {
			t.Fatalf("class %d ends at %v, before %v", c, c.Bound(), d)
		}
		if c > 0 && (c-1).Bound() >= d {
			t.Fatalf("%v is in class %d, but class %d reaches it", d, c, c-1)
		}
	})
}
