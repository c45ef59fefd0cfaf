package provider

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"fairlane/control"
)

// Idempotency says what a provider does with a create that it has seen before.
type Idempotency string

// The ways of a create with a client's key.
const (
	CreatePlain           Idempotency = "NONE"             // every create is a new, paid job
	CreateClientIDUnique  Idempotency = "CLIENT_ID_UNIQUE" // the key is unique per account and found again
	CreateReplay          Idempotency = "REPLAY"           // a second create answers with the first job
	CreateRejectDuplicate Idempotency = "REJECT_DUPLICATE" // a second create is refused
)

// CallbackKind says how a provider's callbacks are authenticated.
type CallbackKind string

// The kinds of callbacks.
const (
	CallbackNone     CallbackKind = "NONE"
	CallbackUnsigned CallbackKind = "UNSIGNED"
	CallbackHMAC     CallbackKind = "HMAC"
	CallbackEd25519  CallbackKind = "ED25519"
	CallbackJWKS     CallbackKind = "JWKS"
)

// CancelKind says which jobs a provider can cancel.
type CancelKind string

// The kinds of cancelling.
const (
	CancelNone       CancelKind = "NONE"
	CancelQueuedOnly CancelKind = "QUEUED_ONLY"
	CancelAny        CancelKind = "ANY"
	CancelBestEffort CancelKind = "BEST_EFFORT"
)

// Overload says what a provider does above its concurrency.
type Overload string

// The ways of a provider that is full.
const (
	OverloadReject   Overload = "REJECT_429"
	OverloadThrottle Overload = "ACCEPT_AND_THROTTLE"
	OverloadQueue    Overload = "QUEUE"
)

// SlotCounted says when a job counts against the provider's concurrency.
type SlotCounted string

// When a slot is counted.
const (
	SlotWhenAccepted   SlotCounted = "ACCEPTED"
	SlotWhenInProgress SlotCounted = "IN_PROGRESS"
)

// LimitScope says over what a provider counts its limits.
type LimitScope string

// The scopes of limits.
const (
	LimitKey         LimitScope = "KEY"
	LimitProject     LimitScope = "PROJECT"
	LimitRootAccount LimitScope = "ROOT_ACCOUNT"
)

// CostKnown says when the cost of a job is known.
type CostKnown string

// When cost is known.
const (
	CostAtSubmit CostKnown = "SUBMIT"
	CostAtFinish CostKnown = "FINISH"
)

// Capabilities are the facts about a provider that decide what may be done with an unknown submit, a
// late job or a cancel. Durations of 0 mean "not bounded" unless said otherwise.
type Capabilities struct {
	CreateIdempotent           Idempotency
	LookupByClientID           bool // Lookup by our key tells for certain, after SafetyWindow
	ListByTime                 bool
	ListRetention              time.Duration
	Callback                   CallbackKind
	CallbackCorrelation        bool // the callback address is ours per request
	Cancel                     CancelKind
	CancelIsDeleteWhenTerminal bool // a cancel that comes too late destroys the result
	Overload                   Overload
	SlotCountedWhen            SlotCounted
	LimitScope                 LimitScope
	LimitPerModel              bool
	MinPollInterval            time.Duration
	ResultURLTTL               time.Duration
	RecordTTL                  time.Duration // how long a job can be read and looked up after its submit
	CostKnownAt                CostKnown
	SafetyWindow               time.Duration // after the end of a submit, for a job of it to become visible
	LongestRun                 time.Duration // no job holds a slot longer after it was accepted; must be > 0
}

// Validate names every field that cannot be.
func (c Capabilities) Validate() error {
	var wrong []control.FieldError
	add := func(field, key string) { wrong = append(wrong, control.FieldError{Field: field, Key: key}) }
	if c.LongestRun <= 0 {
		add("longest_run", "must_be_positive")
	}
	for field, d := range map[string]time.Duration{
		"min_poll_interval": c.MinPollInterval, "record_ttl": c.RecordTTL, "result_url_ttl": c.ResultURLTTL,
		"safety_window": c.SafetyWindow, "list_retention": c.ListRetention,
	} {
		if d < 0 {
			add(field, "must_not_be_negative")
		}
	}
	if c.LookupByClientID && c.SafetyWindow <= 0 {
		add("safety_window", "must_be_positive")
	}
	if c.LookupByClientID && c.RecordTTL > 0 && c.RecordTTL <= c.SafetyWindow {
		add("record_ttl", "must_exceed_safety_window")
	}
	return control.Invalid(wrong)
}

// Provider is a provider as dispatch uses it.
type Provider struct {
	Code         string
	Capabilities Capabilities
	Adapter      Adapter
}

// Registry holds the providers by their code. It does not change after New.
type Registry struct{ byCode map[string]Provider }

// NewRegistry makes a registry; a code that is empty or comes twice, an adapter that is missing and
// capabilities that cannot be are errors.
func NewRegistry(providers ...Provider) (*Registry, error) {
	r := &Registry{byCode: make(map[string]Provider, len(providers))}
	for _, p := range providers {
		if p.Code == "" || p.Adapter == nil {
			return nil, fmt.Errorf("provider %q: code and adapter are needed", p.Code)
		}
		if _, twice := r.byCode[p.Code]; twice {
			return nil, fmt.Errorf("provider %q is registered twice", p.Code)
		}
		if err := p.Capabilities.Validate(); err != nil {
			return nil, fmt.Errorf("provider %q: %w", p.Code, err)
		}
		r.byCode[p.Code] = p
	}
	return r, nil
}

// Codes returns the codes of all providers, in order.
func (r *Registry) Codes() []string { return slices.Sorted(maps.Keys(r.byCode)) }

// Find returns the provider of that code; control.CodeNotFound when there is none.
func (r *Registry) Find(code string) (Provider, error) {
	p, ok := r.byCode[code]
	if !ok {
		return Provider{}, control.Errorf(control.CodeNotFound, "no provider %q is configured", code)
	}
	return p, nil
}
