package facts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// checkTimeout bounds one query of a check; the largest reads every attempt and task event there is.
const checkTimeout = 10 * time.Minute

// maxFindings is how many findings of one query are told; a broken counter often comes with thousands.
const maxFindings = 200

// Invariant is one of the rules that always hold.
type Invariant struct {
	Number string
	Says   string
	Shown  bool // a database can show it, wholly or in part; else tests do
}

// Invariants lists all of them.
var Invariants = []Invariant{
	{"I01", "a pool's used units are the sum of its active reservations and within its capacity", true},
	{"I02", "tenant, user, lane and account counters are the sums over what waits and runs, and within their limits", true},
	{"I03", "a task has at most one live attempt per stage, and its fencing tokens rise", true},
	{"I04", "no provider call without a committed attempt, and at most one submit for each", false},
	{"I05", "what an attempt holds is released exactly once, when it ends", true},
	{"I06", "lent units never pass a lane's lendable units", true},
	{"I07", "every policy version has exactly one audit record, and the audit chain verifies", true},
	{"I08", "policy versions have no gap", true},
	{"I09", "an attempt whose submission is unknown keeps what it holds", true},
	{"I10", "a terminal task never changes state again and holds nothing", true},
	{"I11", "every accepted task is scheduled or ended (shown here: none is out of reach)", true},
	{"I12", "everything in Redis can vanish at any moment", false},
	{"I13", "nothing shows a tenant's data outside its scope", false},
}

// Finding is one broken rule at one object.
type Finding struct {
	Invariant string // I01 …
	Object    string // task, attempt, pool …
	Detail    string
}

// Check compares the database with the invariants.
type Check struct{ db *DB }

// NewCheck returns the check of that database.
func NewCheck(db *DB) *Check { return &Check{db: db} }

// Run returns what is broken, in the order of the invariants; none when all hold. It reads one snapshot
// and locks nothing, so it may run beside a live platform. At most maxFindings are told for one question.
func (c *Check) Run(ctx context.Context) ([]Finding, error) {
	conn, err := c.db.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	defer func() {
		live, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		_ = tx.Rollback(live)
	}()
	if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', $1, true)`, fmt.Sprint(checkTimeout.Milliseconds())); err != nil {
		return nil, err
	}
	var found []Finding
	for _, invariant := range Invariants {
		part, err := checkOne(ctx, tx, invariant.Number)
		if err != nil {
			return nil, fmt.Errorf("check %s: %w", invariant.Number, err)
		}
		found = append(found, part...)
	}
	return found, nil
}

func checkOne(ctx context.Context, tx pgx.Tx, number string) ([]Finding, error) {
	var found []Finding
	for i := range counterTables {
		if counterTables[i].invariant != number {
			continue
		}
		drifts, _, err := readDrifts(ctx, tx, &counterTables[i], nil)
		if err != nil {
			return nil, err
		}
		for _, d := range drifts[:min(len(drifts), maxFindings)] {
			found = append(found, Finding{number, d.Table + " " + d.Object, fmt.Sprintf("%s is %d, should be %d", d.Counter, d.From, d.To)})
		}
	}
	for _, p := range probes {
		if p.invariant != number {
			continue
		}
		rows, err := tx.Query(ctx, p.sql+fmt.Sprintf(" LIMIT %d", maxFindings))
		if err != nil {
			return nil, err
		}
		f := Finding{Invariant: number}
		if _, err := pgx.ForEachRow(rows, []any{&f.Object, &f.Detail}, func() error { found = append(found, f); return nil }); err != nil {
			return nil, err
		}
	}
	return found, nil
}
