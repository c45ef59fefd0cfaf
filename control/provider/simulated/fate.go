package simulated

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"
)

// Ends of a job.
const (
	endSucceeded = "succeeded"
	endFailed    = "failed"
	endRefused   = "refused"
	endCanceled  = "canceled"
)

// Ways in which the answer to a create gets lost.
const (
	answerGiven   = ""
	answerDropped = "dropped" // accepted, then the connection is cut
	answerHeld    = "held"    // accepted, answered when nobody waits any more
	answerVanish  = "vanished"
)

// Ways of a callback.
const (
	callbackPlain = ""
	callbackLost  = "lost"
	callbackLate  = "late"
	callbackEarly = "early"
	callbackTwice = "twice"
)

// fate is all that chance decides about a job. It follows from the seed and the job's key alone, so
// that neither order nor time changes it.
type fate struct {
	Duration time.Duration `json:"duration_ns"`
	End      string        `json:"end"`
	Answer   string        `json:"answer,omitempty"`
	Callback string        `json:"callback,omitempty"`
}

// z95 is the 95th percentile of the standard normal distribution.
const z95 = 1.6448536269514722

func (c *Config) draw(profile, key string, m Model) fate {
	h := fnv.New64a()
	_, _ = h.Write([]byte(profile + "\x00" + key))
	r := rand.New(rand.NewPCG(c.Seed, h.Sum64()))
	// Every draw is taken, whatever the others say: a changed rate then changes nothing else.
	normal, end, answer, callback, part := r.NormFloat64(), r.Float64(), r.Float64(), r.Float64(), r.Float64()

	f := fate{End: endSucceeded}
	sigma := math.Log(m.P95/m.P50) / z95
	f.Duration = min(c.scaled(m.P50*math.Exp(sigma*normal)), c.longest())
	switch {
	case end < c.Rates.Refused:
		f.End, f.Duration = endRefused, c.scaled(c.FailureSeconds*(0.2+0.4*part))
	case end < c.Rates.Refused+c.Rates.Failed:
		f.End, f.Duration = endFailed, c.scaled(c.FailureSeconds*(0.75+0.5*part))
	}
	switch {
	case answer < c.Rates.Unknown/2:
		f.Answer = answerDropped
	case answer < c.Rates.Unknown:
		f.Answer = answerHeld
	case answer < c.Rates.Unknown+c.Rates.Vanished:
		f.Answer = answerVanish
	}
	f.Callback = pick(callback, []share{
		{c.Rates.CallbackLost, callbackLost}, {c.Rates.CallbackLate, callbackLate},
		{c.Rates.CallbackEarly, callbackEarly}, {c.Rates.CallbackTwice, callbackTwice},
	})
	return f
}

type share struct {
	part float64
	name string
}

func pick(x float64, shares []share) string {
	for _, s := range shares {
		if x < s.part {
			return s.name
		}
		x -= s.part
	}
	return ""
}
