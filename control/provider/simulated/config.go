package simulated

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"fairlane/control"
	"fairlane/control/provider"
)

// Config is everything that the server is told. Rates are probabilities; seconds are those of a real
// provider and are divided by Speed, unless said otherwise.
type Config struct {
	Listen         string    `json:"listen"` // default 127.0.0.1:0
	Seed           uint64    `json:"seed"`   // fates follow from it and from the client's key
	Speed          float64   `json:"speed"`  // default 1
	APIKey         string    `json:"api_key"`
	WebhookSecret  string    `json:"webhook_secret"` // whsec_…; for profiles that sign
	Profiles       []Profile `json:"profiles"`
	Models         []Model   `json:"models"`
	Rates          Rates     `json:"rates"`
	FailureSeconds float64   `json:"failure_seconds"` // default 8
	HoldSeconds    float64   `json:"hold_seconds"`    // how long an answer is kept back, not divided; default 60
	RecordHours    float64   `json:"record_hours"`    // how long an ended job can be read, not divided; default 48
}

// Profile is one provider that the server plays, under /{code}/v1.
type Profile struct {
	Code   string              `json:"code"`
	Dedupe bool                `json:"dedupe"` // a create with a known key answers with the first job
	Lookup bool                `json:"lookup"` // jobs are found by the client's key
	Signed bool                `json:"signed"` // callbacks carry a Standard Webhooks signature
	Cancel provider.CancelKind `json:"cancel"` // default ANY
	Pools  []Pool              `json:"pools"`
}

// Pool is a concurrency limit: above it a create is answered with 429.
type Pool struct {
	Account     string `json:"account"`
	Model       string `json:"model"`
	Concurrency int    `json:"concurrency"`
}

// Model is how long jobs of a model take (lognormal) and what they cost.
type Model struct {
	Code      string  `json:"code"`
	P50       float64 `json:"p50_seconds"`
	P95       float64 `json:"p95_seconds"`
	CostMicro int64   `json:"cost_micro"`
}

// Rates are the probabilities of what can go wrong.
type Rates struct {
	Refused       float64 `json:"refused"`        // content refusal
	Failed        float64 `json:"failed"`         // the provider's own failure, fast
	Unknown       float64 `json:"unknown"`        // accepted, but the answer is lost or too late
	Vanished      float64 `json:"vanished"`       // the connection drops before anything was accepted
	CallbackLost  float64 `json:"callback_lost"`  //
	CallbackLate  float64 `json:"callback_late"`  //
	CallbackEarly float64 `json:"callback_early"` // before the answer to the create
	CallbackTwice float64 `json:"callback_twice"` // and a stale event after the last
}

// UsualRates are those of the demo.
func UsualRates() Rates {
	return Rates{Refused: 0.02, Failed: 0.015, Unknown: 0.003, CallbackLost: 0.01, CallbackLate: 0.02, CallbackEarly: 0.02, CallbackTwice: 0.02}
}

// complete sets defaults and names every field that is wrong.
func (c *Config) complete() error {
	var wrong []control.FieldError
	add := func(key, format string, args ...any) {
		wrong = append(wrong, control.FieldError{Field: fmt.Sprintf(format, args...), Key: key})
	}
	usual := func(field string, v *float64, usual, least, most float64) {
		if *v == 0 {
			*v = usual
		}
		if math.IsNaN(*v) || *v < least || *v > most {
			add("out_of_range", "%s", field)
		}
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	usual("speed", &c.Speed, 1, 0.01, 10_000)
	usual("failure_seconds", &c.FailureSeconds, 8, 0.001, 86_400)
	usual("hold_seconds", &c.HoldSeconds, 60, 0.001, 3_600)
	usual("record_hours", &c.RecordHours, 48, 0.01, 8_760)
	models := map[string]bool{}
	for i, m := range c.Models {
		if m.Code == "" || models[m.Code] {
			add("missing_or_twice", "models[%d].code", i)
		}
		models[m.Code] = true
		if !(m.P50 > 0) || !(m.P95 >= m.P50) || m.P95 > 86_400 {
			add("out_of_range", "models[%d].p50_seconds", i)
		}
		if m.CostMicro < 0 {
			add("must_not_be_negative", "models[%d].cost_micro", i)
		}
	}
	codes := map[string]bool{}
	for i := range c.Profiles {
		p := &c.Profiles[i]
		if p.Code == "" || codes[p.Code] {
			add("missing_or_twice", "profiles[%d].code", i)
		}
		codes[p.Code] = true
		if p.Cancel == "" {
			p.Cancel = provider.CancelAny
		}
		if p.Signed {
			if _, err := provider.WebhookSecret(c.WebhookSecret); err != nil {
				add("webhook_secret", "webhook_secret")
			}
		}
		for j, pool := range p.Pools {
			if !models[pool.Model] {
				add("unknown_model", "profiles[%d].pools[%d].model", i, j)
			}
			if pool.Concurrency < 0 || pool.Concurrency > 1_000_000 {
				add("out_of_range", "profiles[%d].pools[%d].concurrency", i, j)
			}
		}
	}
	for field, rate := range map[string]float64{
		"refused": c.Rates.Refused, "failed": c.Rates.Failed, "unknown": c.Rates.Unknown, "vanished": c.Rates.Vanished,
		"callback_lost": c.Rates.CallbackLost, "callback_late": c.Rates.CallbackLate,
		"callback_early": c.Rates.CallbackEarly, "callback_twice": c.Rates.CallbackTwice,
	} {
		if !(rate >= 0 && rate <= 1) {
			add("out_of_range", "rates.%s", field)
		}
	}
	return control.Invalid(wrong)
}

// longest is the longest run of a job: draws are cut there.
func (c *Config) longest() time.Duration {
	p95 := 0.0
	for _, m := range c.Models {
		p95 = max(p95, m.P95)
	}
	return c.scaled(4*p95) + time.Minute
}

func (c *Config) scaled(seconds float64) time.Duration {
	return time.Duration(seconds / c.Speed * float64(time.Second))
}

// Capabilities are the facts about a profile, as its adapter states them.
func (c Config) Capabilities(p Profile) provider.Capabilities {
	if err := c.complete(); err != nil {
		return provider.Capabilities{}
	}
	if p.Cancel == "" {
		p.Cancel = provider.CancelAny
	}
	can := provider.Capabilities{
		CreateIdempotent: provider.CreatePlain, LookupByClientID: p.Lookup,
		Callback: provider.CallbackUnsigned, CallbackCorrelation: true,
		Cancel: p.Cancel, Overload: provider.OverloadReject, SlotCountedWhen: provider.SlotWhenAccepted,
		LimitScope: provider.LimitRootAccount, LimitPerModel: true,
		MinPollInterval: min(c.scaled(1), time.Second), RecordTTL: time.Duration(c.RecordHours * float64(time.Hour)),
		CostKnownAt: provider.CostAtFinish, SafetyWindow: max(c.scaled(30), 2*time.Second), LongestRun: c.longest(),
	}
	if p.Dedupe {
		can.CreateIdempotent = provider.CreateReplay
	}
	if p.Signed {
		can.Callback = provider.CallbackHMAC
	}
	return can
}

func configPath(dir string) string { return filepath.Join(dir, "config.json") }

// JournalPath is where a server in dir keeps its journal.
func JournalPath(dir string) string { return filepath.Join(dir, "journal.jsonl") }

func readConfig(dir string) (Config, error) {
	var c Config
	raw, err := os.ReadFile(configPath(dir))
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("%s: %w", configPath(dir), err)
	}
	return c, c.complete()
}
