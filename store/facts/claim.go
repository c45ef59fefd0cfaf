package facts

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/crashpoint"
	"fairlane/control/plan"
	"fairlane/control/schedule"
)

// MaxClaim is the largest batch that Claim takes; 100 to 200 starts cost the least per task.
const MaxClaim = 1000

// firstLease is how long a reservation goes without a sign of life before somebody looks at its
// attempt. A dispatch worker begins within seconds; from then on every poll prolongs the lease. It is
// a reason to look, never to release.
const firstLease = 60 * time.Second

// Claims implements schedule.Claimer: a plan becomes attempts, units and dispatch messages, or
// nothing. It trusts no snapshot: every limit is compared with locked rows.
type Claims struct{ db *DB }

// NewClaims returns the claims of that database.
func NewClaims(db *DB) *Claims { return &Claims{db: db} }

// Claim commits, in this order, what was repaid, the relabels that the rows allow, the flags of lanes, and
// the starts that the rows then allow, in the order of the request: the earlier one takes the last unit. A
// start that is refused leaves the others alone. Answers stand in the order of the request. control.CodeInvalid names a start that no plan may ask for; then nothing is claimed.
func (c *Claims) Claim(ctx context.Context, req schedule.Claim) ([]schedule.Claimed, error) {
	if err := checkClaim(req); err != nil || len(req.Starts)+len(req.Relabels)+len(req.Lending)+len(req.Repaid) == 0 {
		return nil, err
	}
	crashpoint.Hit("claim.begin")
	var out []schedule.Claimed
	err := c.db.Tx(ctx, func(tx pgx.Tx) (err error) {
		out, err = claimIn(ctx, tx, req)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	crashpoint.Hit("claim.committed")
	return out, nil
}

func claimIn(ctx context.Context, tx pgx.Tx, req schedule.Claim) ([]schedule.Claimed, error) {
	read := claimRead{pools: map[string]*poolRoom{}}
	held, err := claimLocks(req).take(ctx, tx, read.queue(req))
	if err != nil {
		return nil, err
	}
	crashpoint.Hit("claim.locked")
	read.rooms(held)
	d := &claimDecision{held: held, pools: read.pools, ledger: newLedger()}
	lent := d.lending(req)
	out := make([]schedule.Claimed, len(req.Starts))
	grants := make([]grant, 0, len(req.Starts))
	for i := range req.Starts {
		s := &req.Starts[i]
		g, refused, pool := d.decide(s)
		out[i] = schedule.Claimed{TaskID: s.TaskID, Refused: refused, Pool: pool}
		if refused != "" {
			continue
		}
		if g.attempt, err = uuid.NewV7(); err != nil {
			return nil, err
		}
		g.token = read.tokens[i]
		out[i].AttemptID, out[i].FencingToken = g.attempt, g.token
		grants = append(grants, g)
	}
	d.flag(lent.stopped, req, true)
	if len(grants) == 0 && lent.nothing() {
		return out, nil
	}
	if err := writeClaim(ctx, tx, req, grants, lent, d.ledger, read.now); err != nil {
		return nil, err
	}
	crashpoint.Hit("claim.written")
	return out, nil
}

// claimRead is what a claim reads beside the rows that it locks.
type claimRead struct {
	now    time.Time
	tokens []int64 // drawn with the tasks locked, so that a task's tokens rise
	pools  map[string]*poolRoom
}

func (r *claimRead) queue(req schedule.Claim) func(*pgx.Batch) {
	var keys set[string]
	for i := range req.Starts {
		keys.add(req.Starts[i].Pool)
		for _, g := range req.Starts[i].CapGroups {
			keys.add(g)
		}
	}
	return func(b *pgx.Batch) {
		b.Queue(claimPoolSQL, keys.list()).Query(scanAll(func(rows pgx.Rows) error {
			var key string
			p := &poolRoom{}
			err := rows.Scan(&key, &p.open, &p.adaptive, &p.parents)
			r.pools[key] = p
			return err
		}))
		b.Queue(`SELECT clock_timestamp(), array_agg(nextval('fencing_token_seq')) FROM generate_series(1, $1::int)`, len(req.Starts)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&r.now, &r.tokens) })
	}
}

func (r *claimRead) rooms(held *heldRows) {
	for key, p := range r.pools {
		p.setShards(held.shards[key])
	}
}

const claimPoolSQL = `
	SELECT resource_key, status = 'ACTIVE' AND coalesce(breaker_until <= clock_timestamp(), true), coalesce(adaptive_limit, -1), parents
	FROM resource_pool WHERE resource_key = ANY($1)`

func claimLocks(req schedule.Claim) *lockSet {
	l := &lockSet{policies: true}
	lendingLocks(l, req)
	for i := range req.Starts {
		s := &req.Starts[i]
		l.addTask(s.TaskID, s.TenantID, s.UserID, s.Lane)
		l.groups.add(s.Group)
		l.accounts.add(plan.LaneGroup{Lane: s.Lane, Group: s.Group})
		if s.Lender != "" {
			l.accounts.add(plan.LaneGroup{Lane: s.Lender, Group: s.Group})
		}
		l.pools.add(s.Pool)
		for _, g := range s.CapGroups {
			l.pools.add(g)
		}
	}
	return l
}

// checkClaim refuses what could corrupt a counter, whoever asks (a cost or a size below one unit
// would give credit).
func checkClaim(req schedule.Claim) error {
	if len(req.Starts) > MaxClaim {
		return control.Errorf(control.CodeTooLarge, "a claim has at most %d starts, not %d", MaxClaim, len(req.Starts))
	}
	var bad []control.FieldError
	var seen set[uuid.UUID]
	for i := range req.Starts {
		s := &req.Starts[i]
		wrong := func(is bool, field, key string) {
			if is {
				bad = append(bad, control.FieldError{Field: fmt.Sprintf("starts[%d].%s", i, field), Key: key})
			}
		}
		wrong(s.SlotUnits < 1, "slot_units", "must be at least 1")
		wrong(s.CostMilli < 1, "cost_milli", "must be at least 1")
		wrong(s.AttemptTimeout <= 0, "attempt_timeout", "must be positive")
		wrong(s.Pool == "", "pool", "must be named")
		wrong((s.Account == control.AccountBorrowed) == (s.Lender == ""), "lender", "must be named for borrowed units, and for these only")
		wrong(s.Lender == s.Lane, "lender", "must be another lane")
		wrong(s.Group != req.PoolGroup, "group", "must be the group of the claim")
		wrong(seen.has(s.TaskID), "task_id", "is in the batch twice")
		seen.add(s.TaskID)
		var pools set[string]
		pools.add(s.Pool)
		for _, g := range s.CapGroups {
			wrong(pools.has(g), "cap_groups", "names a pool twice")
			pools.add(g)
		}
	}
	return control.Invalid(append(bad, checkLending(req)...))
}

// callbackTokens returns n unguessable tokens of 32 hexadecimal digits.
func callbackTokens(n int) ([]string, error) {
	raw := make([]byte, 16*n)
	if _, err := rand.Read(raw); err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i := range out {
		out[i] = hex.EncodeToString(raw[16*i : 16*i+16])
	}
	return out, nil
}
