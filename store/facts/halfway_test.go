package facts_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/schedule"
	"fairlane/store/facts"
)

// failingTx breaks the n-th statement that goes through it, in batches too, as a lost connection or a
// constraint would.
type failingTx struct {
	pgx.Tx
	left  int
	fired string
}

var errBroken = errors.New("broken on purpose")

func (f *failingTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for i, q := range b.QueuedQueries {
		if f.left--; f.left == 0 {
			f.fired = q.SQL
			bad := &pgx.Batch{}
			bad.Queue(`SELECT 1 / 0`).QueryRow(func(r pgx.Row) error {
				var n int
				return fmt.Errorf("%w (%w)", errBroken, r.Scan(&n))
			})
			b.QueuedQueries = slices.Insert(b.QueuedQueries, i+1, bad.QueuedQueries[0])
			break
		}
	}
	return f.Tx.SendBatch(ctx, b)
}

func (f *failingTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if f.left--; f.left == 0 {
		f.fired = sql
		return f.Tx.QueryRow(ctx, `SELECT 1 / 0`)
	}
	return f.Tx.QueryRow(ctx, sql, args...)
}

// breakEach runs fn again and again in transactions of which the 1st, 2nd … statement is the last that
// works, until it goes through unharmed, and calls after once each has failed.
func (w *world) breakEach(t *testing.T, fn func(pgx.Tx) error, after func(statement string)) int {
	t.Helper()
	for n := 1; n < 100; n++ {
		f := &failingTx{left: n}
		err := w.db.Tx(w.ctx, func(tx pgx.Tx) error {
			f.Tx = tx
			return fn(f)
		})
		if f.fired == "" {
			w.must(err)
			return n - 1
		}
		if err == nil || !errors.Is(err, errBroken) && !strings.Contains(err.Error(), "division by zero") {
			t.Fatalf("statement %d was broken and the transaction says %v", n, err)
		}
		after(f.fired)
	}
	t.Fatal("no end of statements")
	return 0
}

// everything that a claim, an ending or a cancel may change, as one text.
func (w *world) everything(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, table := range []string{
		"tenant_runtime", "tenant_lane_runtime", "user_runtime", "pool_group_account", "lane_account", "resource_pool_shard",
		"generation_task", "task_attempt", "resource_reservation", "task_event", "outbox_event",
	} {
		all.WriteString(w.text(t, `SELECT $1 || coalesce(string_agg(x::text, chr(10) ORDER BY x::text), '') FROM `+table+` x`, table))
	}
	return all.String()
}

func TestTrap_D10_AClaimIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	ids := w.queue(t, job{tenant: tenant, user: user, slots: 60}, job{tenant: tenant, user: user, kind: control.KindImage})
	req := schedule.Claim{PoolGroup: "g", PolicyVersion: 1, Starts: w.starts(t, ids, "leaf", inGroups, control.AccountCommon)}
	before := w.everything(t)
	var out []schedule.Claimed
	n := w.breakEach(t, func(tx pgx.Tx) (err error) {
		out, err = facts.ClaimIn(w.ctx, tx, req)
		return err
	}, func(statement string) {
		if w.everything(t) != before {
			t.Errorf("something is left of a claim that broke after %s", statement)
		}
	})
	if n < 20 {
		t.Errorf("only %d statements were broken", n)
	}
	for _, c := range out {
		if c.Refused != "" {
			t.Errorf("%+v", c)
		}
	}
	w.clean(t)
}

func TestTrap_D10_AnEndingIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	got := w.ran(t, tenant, user, 3)
	endings := []dispatch.Ending{ending(got[0], control.AttemptSucceeded), ending(got[1], control.AttemptFailed), ending(got[2], control.AttemptCanceled)}
	endings[1].Retry = true
	before := w.everything(t)
	n := w.breakEach(t, func(tx pgx.Tx) error {
		_, err := facts.EndIn(w.ctx, tx, endings)
		return err
	}, func(statement string) {
		if w.everything(t) != before {
			t.Errorf("something is left of an ending that broke after %s", statement)
		}
	})
	if n < 20 {
		t.Errorf("only %d statements were broken", n)
	}
	w.free(t)
	w.clean(t)
}

func TestTrap_D10_ACancelIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	running := w.ran(t, tenant, user, 1)[0].TaskID
	queued := w.queue(t, job{tenant: tenant, user: user})[0]
	for _, task := range []uuid.UUID{running, queued} {
		before := w.everything(t)
		n := w.breakEach(t, func(tx pgx.Tx) error {
			_, _, err := facts.CancelIn(w.ctx, tx, tenant, task, control.System)
			return err
		}, func(statement string) {
			if w.everything(t) != before {
				t.Errorf("something is left of a cancel that broke after %s", statement)
			}
		})
		if n < 8 {
			t.Errorf("only %d statements were broken", n)
		}
	}
	w.clean(t)
}

// Contexts that end in the middle of transactions leave nothing behind and keep no connection.
func TestTrap_D38_CancelledClaimsLeaveNothing(t *testing.T) {
	t.Parallel()
	w, tenant, user := small(t, caps{})
	ids := w.queue(t, job{tenant: tenant, user: user})
	req := schedule.Claim{PoolGroup: "g", Starts: w.starts(t, ids, "leaf", inGroups, control.AccountCommon)}
	before := w.everything(t)
	tx, err := w.sql.Begin(w.ctx)
	w.must(err)
	_, err = tx.Exec(w.ctx, `SELECT 1 FROM resource_pool_shard ORDER BY resource_key, shard_no FOR UPDATE`)
	w.must(err)
	for range 10 {
		ctx, cancel := context.WithCancel(w.ctx)
		done := make(chan error, 1)
		go func() {
			_, err := facts.NewClaims(w.db).Claim(ctx, req)
			done <- err
		}()
		w.blocked(t, 1)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("the claim says %v", err)
		}
	}
	w.must(tx.Rollback(w.ctx))
	if w.everything(t) != before {
		t.Error("something is left of cancelled claims")
	}
	if got := w.claim(t, req.Starts...); got[0].Refused != "" {
		t.Errorf("%+v", got)
	}
	w.clean(t)
}
