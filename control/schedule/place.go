package schedule

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"fairlane/control/plan"
	"fairlane/control/queue"
)

// firstFill is how long a queue that was lost is read anew before planning goes on with what is there;
// the rest follows between the cycles.
const firstFill = time.Second

// settle chooses the index of a term: the shared one where it can be read, else one in the process.
func (t *turn) settle(ctx context.Context) error {
	if t.cfg.Indexes == nil {
		t.use(local{queue.NewMemory()}, nil)
		for !t.feed.full {
			if _, err := t.feed.fill(ctx); err != nil {
				return err
			}
		}
		t.tell(false, "")
		return nil
	}
	if err := t.share(ctx); err != nil {
		return t.leave(ctx, whyOf(err) == WhyAway, err)
	}
	return nil
}

// share opens the shared index and plans from it.
func (t *turn) share(ctx context.Context) error {
	shared, err := t.cfg.Indexes.Open(ctx, t.cfg.Group, t.cfg.Now())
	if err != nil {
		return err
	}
	t.use(shared, shared)
	t.feed.full = true
	t.verified = t.cfg.Now()
	t.tell(false, "")
	return nil
}

// leave goes on from PostgreSQL, in the limited form when the shared index does not answer. It fills a
// new index for a moment and has the shared one mended meanwhile.
func (t *turn) leave(ctx context.Context, limited bool, why error) error {
	t.cfg.Log.Warn("queue index left, scheduling from PostgreSQL", "group", t.cfg.Group, "limited", limited, "error", why)
	t.use(local{queue.NewMemory()}, nil)
	t.feed.full, t.feed.after = false, uuid.Nil
	t.tell(limited, whyOf(why))
	t.startMending(ctx, !limited)
	for began := t.cfg.Now(); !t.feed.full && t.cfg.Now().Sub(began) < firstFill; {
		if _, err := t.feed.fill(ctx); err != nil {
			return err
		}
	}
	return nil
}

// use plans from an index from now on. Rings begin anew, in the order in which tasks wait; deficits are 0.
func (t *turn) use(index Index, shared Shared) {
	t.index, t.shared, t.feed.index, t.feed.also = index, shared, index, nil
	t.planner, t.version = nil, nil
}

func (t *turn) tell(limited bool, why Why) {
	t.state = QueueState{Runs: true, Shared: t.shared != nil, Limited: limited, Why: why, Since: t.cfg.Now()}
	if t.cfg.Observer != nil {
		t.cfg.Observer.Queued(t.cfg.Group, t.state)
	}
}

// mending follows what the mender asks for.
func (t *turn) mending(ctx context.Context) error {
	if t.mend == nil {
		return nil
	}
	m := t.mend
	if m.away.Load() && !t.state.Limited {
		t.tell(true, WhyAway)
		t.version = nil // published anew, in the limited form
	}
	select {
	case <-m.follow:
		t.follows = true
		m.broken.Store(false) // the rebuild begins after this
		t.feed.also = func(waits []queue.Item, gone []queue.Gone) {
			if !t.follows {
				return
			}
			if err := t.cfg.Indexes.Write(ctx, t.cfg.Group, waits, gone); err != nil {
				t.follows = false
				m.broken.Store(true)
			}
		}
	case <-m.mended:
		if m.broken.Load() {
			t.startMending(ctx, false)
			return nil
		}
		if !t.feed.full { // what is being read would be left half
			return nil
		}
		if err := t.share(ctx); err != nil {
			t.cfg.Log.Warn("mended queue index cannot be opened", "group", t.cfg.Group, "error", err)
			t.startMending(ctx, false)
			return nil
		}
		t.mend = nil
		t.cfg.Log.Info("scheduling from the queue index again", "group", t.cfg.Group)
	default:
	}
	return nil
}

// startMending has the shared index brought back; whoever was at it before ends now. quick is for one
// that answers all the time and has only to be built.
func (t *turn) startMending(ctx context.Context, quick bool) {
	if t.stopMending != nil {
		t.stopMending()
	}
	t.follows, t.feed.also = false, nil
	ctx, t.stopMending = context.WithCancel(ctx)
	m := &mender{
		indexes: t.cfg.Indexes, rebuild: t.cfg.Rebuilder, group: t.cfg.Group, hold: t.cfg.Hold, quick: quick, every: t.cfg.Hold/20 + 5*time.Millisecond,
		log: t.cfg.Log, now: t.cfg.Now, follow: make(chan struct{}), mended: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	t.mend = m
	t.menders.Go(func() { m.run(ctx) })
}

// verifyEvery is how often an index in quiet use is asked whether it is still whole.
const verifyEvery = time.Second

// verify leaves a shared index that is lost or does not answer.
func (t *turn) verify(ctx context.Context) error {
	if t.shared == nil {
		return nil
	}
	err := t.shared.Err()
	if now := t.cfg.Now(); err == nil && now.Sub(t.verified) >= verifyEvery {
		err, t.verified = t.shared.Verify(), now
	}
	if err != nil {
		return t.leave(ctx, true, err)
	}
	return nil
}

// correct looks at tasks that the index holds otherwise than PostgreSQL does: those that a claim has
// refused as tasks, and those that a shared index could not explain itself. It tells whether anything was
// put right: then what stood behind it can start.
func (t *turn) correct(ctx context.Context, refused []plan.Start) (bool, error) {
	ids := make([]uuid.UUID, len(refused))
	for i := range refused {
		ids[i] = refused[i].TaskID
	}
	if t.shared != nil {
		return t.repair(ctx, ids)
	}
	if len(ids) == 0 {
		return false, nil
	}
	waits, err := t.store.Look(ctx, t.cfg.Group, ids)
	if err != nil {
		return false, err
	}
	var gone []queue.Gone
	for _, s := range refused {
		if !slices.ContainsFunc(waits, func(w queue.Item) bool { return w.TaskID == s.TaskID }) {
			gone = append(gone, queue.Gone{TaskID: s.TaskID, Version: s.TaskVersion, Lane: s.Lane, TenantID: s.TenantID})
		}
	}
	return len(gone) > 0, t.feed.apply(waits, gone)
}

func (t *turn) repair(ctx context.Context, ids []uuid.UUID) (bool, error) {
	entries, err := t.shared.Examine(ids) // before PostgreSQL is read
	if err != nil {
		return false, errors.Join(errIndex, err)
	}
	if len(entries) == 0 {
		return false, nil
	}
	ids = ids[:0]
	for i := range entries {
		ids = append(ids, entries[i].TaskID)
	}
	waits, err := t.store.Look(ctx, t.cfg.Group, ids)
	if err != nil {
		return false, err
	}
	var repairs []queue.Repair
	for i := range entries {
		r := queue.Repair{Entry: entries[i]}
		for j := range waits {
			if waits[j].TaskID == r.TaskID && waits[j].Check() == nil {
				r.Present = &waits[j]
			}
		}
		if r.Differs(r.Present) != "" {
			repairs = append(repairs, r)
		}
	}
	if len(repairs) == 0 {
		return false, nil
	}
	t.cfg.Log.Warn("queue index differs from what waits", "group", t.cfg.Group, "tasks", len(repairs))
	if err := t.shared.Repair(repairs); err != nil {
		return false, errors.Join(errIndex, err)
	}
	return true, nil
}
