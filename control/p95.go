package control

import (
	"math"
	"time"
)

// P95Class tells how long a task may take from its claim to its release, in eighths of an octave, so
// that tasks of about one length need the same. Class 0 is up to a second.
type P95Class int16

// maxP95Class is the class of the longest duration that is told apart, about 12 days.
const maxP95Class = 160

// ClassOfP95 returns the smallest class whose bound is at least d.
func ClassOfP95(d time.Duration) P95Class {
	if d <= time.Second {
		return 0
	}
	c := P95Class(max(0, min(maxP95Class, math.Floor(8*math.Log2(d.Seconds())))))
	for c < maxP95Class && c.Bound() < d {
		c++
	}
	return c
}

// Bound is the longest duration of the class: 2^(class/8) seconds, in whole milliseconds.
func (c P95Class) Bound() time.Duration {
	return time.Duration(math.Round(1000*math.Exp2(float64(c)/8))) * time.Millisecond
}
