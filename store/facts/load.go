package facts

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control/admit"
)

// loadSample is how many of a lane's oldest tasks stand for its mix of work.
const loadSample = 200

// Loads answers what waits, from one read a second at most, made by whoever asks first; the others
// wait for it. It implements admit.Loads.
type Loads struct {
	db  *DB
	now func() time.Time
	age time.Duration

	mu   sync.Mutex
	last *admit.Load
	read time.Time
	next chan struct{} // closed when the read that runs now is done; nil: none runs
	err  error
}

// NewLoads reads through db; an answer is used for at most age (1 s where it is 0).
func NewLoads(db *DB, now func() time.Time, age time.Duration) *Loads {
	if now == nil {
		now = time.Now
	}
	if age <= 0 {
		age = time.Second
	}
	return &Loads{db: db, now: now, age: age}
}

// Load returns the backlog by lane and tenant; it is shared and not to be changed.
func (l *Loads) Load(ctx context.Context) (*admit.Load, error) {
	for {
		l.mu.Lock()
		if l.last != nil && l.now().Sub(l.read) < l.age {
			defer l.mu.Unlock()
			return l.last, nil
		}
		if wait := l.next; wait != nil {
			l.mu.Unlock()
			select {
			case <-wait:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			l.mu.Lock()
			err := l.err
			l.mu.Unlock()
			if err != nil {
				return nil, err
			}
			continue
		}
		done := make(chan struct{})
		l.next = done
		l.mu.Unlock()
		return l.refresh(ctx, done)
	}
}

func (l *Loads) refresh(ctx context.Context, done chan struct{}) (*admit.Load, error) {
	// Others wait for this read: it must not end because this caller's client went away.
	live, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	at := l.now()
	load, err := l.query(live)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err == nil {
		l.last, l.read = load, at
	}
	l.next = nil
	close(done)
	return load, err
}

func (l *Loads) query(ctx context.Context) (*admit.Load, error) {
	load := &admit.Load{Lanes: make(map[string]*admit.LaneLoad)}
	lane := func(code string) *admit.LaneLoad {
		in, ok := load.Lanes[code]
		if !ok {
			in = &admit.LaneLoad{Tenants: make(map[uuid.UUID]admit.TenantLoad)}
			load.Lanes[code] = in
		}
		return in
	}
	batch := &pgx.Batch{}
	batch.Queue(`
		SELECT r.lane, r.tenant_id, r.queued_tasks, r.queued_units, coalesce(p.weight, 0), clock_timestamp()
		FROM tenant_lane_runtime r LEFT JOIN tenant_scheduling_policy p USING (tenant_id) WHERE r.queued_tasks > 0`).
		Query(func(rows pgx.Rows) error {
			var code string
			var tenant uuid.UUID
			var t admit.TenantLoad
			_, err := pgx.ForEachRow(rows, []any{&code, &tenant, &t.Tasks, &t.Milli, &t.Weight, &load.At}, func() error {
				in := lane(code)
				in.Tenants[tenant] = t
				in.Tasks += t.Tasks
				in.Milli += t.Milli
				load.Tasks += t.Tasks
				load.Milli += t.Milli
				return nil
			})
			return err
		})
	batch.Queue(`
		SELECT l.lane, coalesce(sum(s.provider_slot_units * s.expected_seconds), 0), coalesce(sum(s.fairness_units), 0)::bigint
		FROM (SELECT DISTINCT lane FROM tenant_lane_runtime WHERE queued_tasks > 0) l,
			LATERAL (SELECT provider_slot_units, expected_seconds, fairness_units FROM generation_task
				WHERE state = 'QUEUED' AND queue_class = l.lane ORDER BY queued_since LIMIT $1) s
		GROUP BY l.lane`, loadSample).
		Query(func(rows pgx.Rows) error {
			var code string
			var slotSeconds float64
			var milli int64
			_, err := pgx.ForEachRow(rows, []any{&code, &slotSeconds, &milli}, func() error {
				in := lane(code)
				in.SlotSeconds, in.SampleMilli = slotSeconds, milli
				return nil
			})
			return err
		})
	if err := l.db.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, away(err)
	}
	return load, nil
}
