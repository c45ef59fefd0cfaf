package access

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
	"github.com/google/uuid"

	"fairlane/control"
)

//go:embed model.conf
var modelText string

// Config is what an Enforcer needs.
type Config struct {
	Source Source
	Wake   <-chan string // hints that the version may have moved; may be nil
	Log    *slog.Logger
	Poll   time.Duration // between looks at the version; default 1 s, at most 2 s
	Stale  time.Duration // decisions stop when the version could not be confirmed for so long; default 5 s
	Now    func() time.Time
}

// Enforcer decides from the newest rules it knows. It is safe for many goroutines.
type Enforcer struct {
	cfg  Config
	view atomic.Pointer[view]
	seen atomic.Int64 // unix nanoseconds of the last confirmation that view is the newest
	load sync.Mutex   // one loader at a time
}

// view is one access version, never changed after it is built but for what it remembers of its operators.
type view struct {
	version int64
	casbin  *casbin.Enforcer
	grants  map[uuid.UUID][]Grant
	mu      sync.Mutex           // casbin's role manager is not made for concurrent questions
	rights  map[uuid.UUID]Rights // what was computed from this version; goes with it
}

// NewEnforcer loads the rules once; a wrong setting or an unreadable source is an error.
func NewEnforcer(ctx context.Context, cfg Config) (*Enforcer, error) {
	if cfg.Poll == 0 {
		cfg.Poll = time.Second
	}
	if cfg.Stale == 0 {
		cfg.Stale = 5 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Source == nil || cfg.Log == nil {
		return nil, errors.New("access: a source and a log are needed")
	}
	if cfg.Poll < 0 || cfg.Poll > 2*time.Second {
		return nil, fmt.Errorf("access: poll of %v is outside 0..2 s", cfg.Poll)
	}
	e := &Enforcer{cfg: cfg}
	if err := e.Refresh(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// Run follows the access version until ctx ends.
func (e *Enforcer) Run(ctx context.Context) error {
	tick := time.NewTicker(e.cfg.Poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-e.cfg.Wake:
		}
		look, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := e.Refresh(look)
		cancel()
		if err != nil && ctx.Err() == nil {
			e.cfg.Log.Warn("access rules not confirmed", "error", err)
		}
	}
}

// Refresh looks at the access version and, when it has moved, builds and swaps in a whole new view.
func (e *Enforcer) Refresh(ctx context.Context) error {
	e.load.Lock()
	defer e.load.Unlock()
	asked := e.cfg.Now()
	version, err := e.cfg.Source.AccessVersion(ctx)
	if err != nil {
		return fmt.Errorf("read access version: %w", err)
	}
	if v := e.view.Load(); v == nil || v.version != version {
		set, err := e.cfg.Source.LoadAccess(ctx)
		if err != nil {
			return fmt.Errorf("load access rules: %w", err)
		}
		next, err := newView(set)
		if err != nil {
			return err
		}
		e.view.Store(next)
	}
	e.seen.Store(asked.UnixNano())
	return nil
}

// Version returns the access version in force here.
func (e *Enforcer) Version() int64 { return e.view.Load().version }

// Rights returns everything that the operator may do now. While the rules could not be confirmed for
// longer than the stale bound it decides nothing: CodeUnavailable.
func (e *Enforcer) Rights(operator uuid.UUID) (Rights, error) {
	if e.cfg.Now().Sub(time.Unix(0, e.seen.Load())) > e.cfg.Stale {
		return Rights{}, control.Errorf(control.CodeUnavailable, "access rules could not be confirmed")
	}
	return e.view.Load().of(operator)
}

// Decide reports whether the operator may do p on the object.
func (e *Enforcer) Decide(operator uuid.UUID, p Permission, o Object) (bool, error) {
	rights, err := e.Rights(operator)
	return err == nil && rights.MayOn(p, o), err
}

func newView(set Ruleset) (*view, error) {
	m, err := model.NewModelFromString(modelText)
	if err != nil {
		return nil, fmt.Errorf("access model: %w", err)
	}
	c, err := casbin.NewEnforcer(m, rulesAdapter{set})
	if err != nil {
		return nil, fmt.Errorf("access rules: %w", err)
	}
	v := &view{version: set.Version, casbin: c, grants: map[uuid.UUID][]Grant{}, rights: map[uuid.UUID]Rights{}}
	for _, g := range set.Grants {
		v.grants[g.Operator] = append(v.grants[g.Operator], g)
	}
	return v, nil
}

func (v *view) of(operator uuid.UUID) (Rights, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.rights[operator]; ok {
		return known, nil
	}
	rights, err := v.compute(operator)
	if err == nil && len(rights.Roles) > 0 { // strangers are not remembered: their number has no bound
		v.rights[operator] = rights
	}
	return rights, err
}

func (v *view) compute(operator uuid.UUID) (Rights, error) {
	rights := Rights{Version: v.version, scopes: map[Permission][]Scope{}}
	grants := v.grants[operator]
	for _, g := range grants {
		rights.Roles = append(rights.Roles, g.Role)
	}
	for _, p := range Permissions {
		allowed, err := v.casbin.Enforce(user(operator), string(p))
		if err != nil {
			return Rights{}, fmt.Errorf("decide %s: %w", p, err)
		}
		if !allowed {
			continue
		}
		for _, g := range grants {
			holds, err := v.casbin.Enforce(role(g.Role), string(p))
			if err != nil {
				return Rights{}, fmt.Errorf("decide %s: %w", p, err)
			}
			if holds {
				rights.scopes[p] = append(rights.scopes[p], Scope{Lanes: g.Lanes, Tenants: g.Tenants})
			}
		}
	}
	return rights, nil
}
