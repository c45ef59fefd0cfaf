package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy"
)

// Mode says who decides what starts.
type Mode string

// The modes. The baselines hold the capacity of pools and groups and the maxima of tenants, and nothing
// else: no lanes, weights, reserves, users' caps or debts.
const (
	Fairlane   Mode = "fairlane"
	FIFO       Mode = "fifo" // the oldest task that fits
	RoundRobin Mode = "rr"   // tenants in turn, one task each, whatever it costs
)

// Config is one simulation. The trace and the document are shared and never changed.
type Config struct {
	Trace     *Trace
	Document  *policy.Document
	Plans     map[string]string // plan by tenant; a tenant that is not named has the document's first plan
	Seed      uint64            // 1 or 0: the trace as it is
	Mode      Mode              // "": Fairlane
	Admission bool              // rates, queue caps and expected waits may turn tasks away; else only what can never run is
	Progress  func(Progress)    // called now and then; may be nil
}

// Progress tells how far a run is.
type Progress struct {
	At, Horizon      time.Duration // virtual
	Arrivals, Of     int
	Waiting, Running int
}

// Epoch is the virtual time at which every trace begins.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// namespace makes the ids of tenants that the policy does not name.
var namespace = uuid.MustParse("4d5c2f0a-0c7e-5b7e-9a43-7d2c1e6f8b35")

// TenantID is the id that a simulation gives to a tenant that the document does not name.
func TenantID(code string) uuid.UUID { return uuid.NewSHA1(namespace, []byte(code)) }

// Tenants lists the accounts of a trace under a document, in the trace's order: ids of the document's
// overrides, plans of the map. The error names tenants whose plan the document does not have.
func Tenants(t *Trace, doc *policy.Document, plans map[string]string) ([]policy.Tenant, error) {
	if len(doc.Plans) == 0 {
		return nil, control.Errorf(control.CodeInvalid, "policy: plans: at least one plan is needed, tenants have none else")
	}
	ids := make(map[string]uuid.UUID, len(doc.Tenants))
	for i := range doc.Tenants {
		ids[doc.Tenants[i].Code] = doc.Tenants[i].TenantID
	}
	for _, code := range slices.Sorted(maps.Keys(plans)) {
		if _, ok := doc.Plan(plans[code]); !ok {
			known := make([]string, len(doc.Plans))
			for i := range doc.Plans {
				known[i] = doc.Plans[i].Code
			}
			return nil, control.Errorf(control.CodeInvalid, "tenant %s: the policy has no plan %q; it has %s", code, plans[code], strings.Join(known, ", "))
		}
	}
	out := make([]policy.Tenant, 0, len(t.Tenants))
	seen := make(map[string]bool, len(t.Tenants))
	add := func(code string) {
		if seen[code] {
			return
		}
		seen[code] = true
		id, ok := ids[code]
		if !ok {
			id = TenantID(code)
		}
		plan, ok := plans[code]
		if !ok {
			plan = doc.Plans[0].Code
		}
		out = append(out, policy.Tenant{ID: id, Code: code, Name: code, PlanCode: plan})
	}
	for _, code := range t.Tenants {
		add(code)
	}
	for i := range doc.Tenants { // they hold their reserves, whether they ask for anything or not
		add(doc.Tenants[i].Code)
	}
	return out, nil
}

// Validate holds the document to every rule that a publish would, for the tenants of the trace.
func Validate(t *Trace, doc *policy.Document, plans map[string]string) error {
	tenants, err := Tenants(t, doc, plans)
	if err != nil {
		return err
	}
	return control.Invalid(policy.Validate(doc, tenants))
}

func (c *Config) check() error {
	switch {
	case c.Trace == nil || len(c.Trace.Arrivals) == 0:
		return &LineError{Problem: "no tasks"}
	case c.Document == nil:
		return control.Errorf(control.CodeInvalid, "a policy is needed")
	}
	switch c.Mode {
	case "", Fairlane, FIFO, RoundRobin:
	default:
		return control.Errorf(control.CodeInvalid, "mode %q is not one of %s, %s, %s", c.Mode, Fairlane, FIFO, RoundRobin)
	}
	return c.Trace.Check(c.Document)
}

// taskID numbers tasks, users and attempts; kind keeps them apart.
func numbered(kind byte, n uint64) (id uuid.UUID) {
	id[0] = kind
	for i := range 8 {
		id[15-i] = byte(n >> (8 * i)) //nolint:gosec // the lowest byte is meant
	}
	return id
}

const (
	idTask    = 1
	idUser    = 2
	idAttempt = 3
)

func fault(format string, args ...any) error { return fmt.Errorf("simulate: "+format, args...) }
