package facts_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/store/facts"
)

func note(actor, object, reason string) audit.Event {
	return audit.Event{Actor: control.Actor{Name: actor, RequestID: "req-" + actor}, Action: audit.TaskCancel, ObjectKind: audit.KindTask, ObjectID: object,
		Reason: reason, Result: audit.OK, Params: map[string]any{"state": "QUEUED"}}
}

// notes appends n events in one transaction.
func notes(t *testing.T, w *world, n int) *facts.Audits {
	t.Helper()
	events := make([]audit.Event, n)
	for i := range events {
		events[i] = note("ann", strconv.Itoa(i), "reason "+strconv.Itoa(i))
	}
	w.must(w.db.Tx(w.ctx, func(tx pgx.Tx) error {
		_, err := facts.AppendAudits(w.ctx, tx, events)
		return err
	}))
	return facts.NewAudits(w.db)
}

func TestI07_TamperingIsNamedAtItsFirstSequence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sql string
		fault     audit.Fault
		bad       int64
	}{
		{"changed record", `UPDATE audit_event SET record = replace(record, 'reason 4', 'reason X') WHERE sequence = 5`, audit.FaultChanged, 5},
		{"changed column", `UPDATE audit_event SET actor_name = 'bob' WHERE sequence = 5`, audit.FaultChanged, 5},
		{"changed time", `UPDATE audit_event SET at = at + interval '1 microsecond' WHERE sequence = 5`, audit.FaultChanged, 5},
		{"deleted in the middle", `DELETE FROM audit_event WHERE sequence = 5`, audit.FaultMissing, 5},
		{"deleted at the end", `DELETE FROM audit_event WHERE sequence = 10`, audit.FaultMissing, 10},
		{"swapped", `UPDATE audit_event SET sequence = CASE sequence WHEN 5 THEN 100006 ELSE 100005 END WHERE sequence IN (5, 6);
			UPDATE audit_event SET sequence = sequence - 100000 WHERE sequence > 100000`, audit.FaultReordered, 5},
		{"head's hash", `UPDATE audit_head SET hash = sha256('x')`, audit.FaultHead, 10},
		{"head's number", `UPDATE audit_head SET sequence = 9`, audit.FaultHead, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := notes(t, w, 10)
			if r, err := audit.Verify(w.ctx, a); err != nil || !r.OK() || r.Events != 10 {
				t.Fatalf("before: %+v %v", r, err)
			}
			w.exec(t, `ALTER TABLE audit_event DISABLE TRIGGER ALL`)
			w.exec(t, c.sql)
			r, err := audit.Verify(w.ctx, a)
			if err != nil || r.Fault != c.fault || r.FirstBad != c.bad {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func TestTrap_D62_EventsOfOneInstantArePagedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := notes(t, w, 300)
	if n := w.number(t, `SELECT count(DISTINCT at) FROM audit_event`); n != 1 {
		t.Fatalf("%d instants", n)
	}
	var seen []int64
	for before := int64(0); ; {
		page, err := a.List(w.ctx, audit.Filter{Actor: "ann"}, before, 50)
		w.must(err)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			seen = append(seen, e.Sequence)
		}
		before = seen[len(seen)-1]
	}
	want := make([]int64, 300)
	for i := range want {
		want[i] = int64(300 - i)
	}
	if !slices.Equal(seen, want) {
		t.Errorf("%d events seen: %v", len(seen), seen)
	}
}

func TestTrap_D61_ADayOfTheReaderFindsItsEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kolkata := time.FixedZone("", 5*3600+1800)
	day := time.Date(2026, 8, 10, 0, 0, 0, 0, kolkata)
	prev := [32]byte{}
	for i, at := range []time.Duration{-time.Microsecond, 0, 10 * time.Minute, 23*time.Hour + 50*time.Minute, 24*time.Hour - time.Microsecond, 24 * time.Hour} {
		e := note("ann", strconv.Itoa(i), "r")
		e.Sequence, e.At = int64(i+1), day.Add(at)
		r, err := audit.Seal(prev, e)
		w.must(err)
		prev = r.Hash
		w.exec(t, `INSERT INTO audit_event (sequence, at, actor_name, action, object_kind, object_id, result, record, hash, terms) VALUES ($1, $2, 'ann', $3, 'task', $4, 'OK', $5, $6, $7)`,
			e.Sequence, r.Event.At, string(e.Action), e.ObjectID, r.Text, r.Hash[:], r.Event.Index())
	}
	a := facts.NewAudits(w.db)
	list := func(f audit.Filter) (out []int64) {
		rows, err := a.List(w.ctx, f, 0, 100)
		w.must(err)
		for _, e := range rows {
			out = append(out, e.Sequence)
		}
		return out
	}
	f, wrong := audit.ParseFilter(map[string][]string{"from": {"2026-08-10"}, "to": {"2026-08-10"}}, kolkata)
	if got := list(f); len(wrong) > 0 || !slices.Equal(got, []int64{5, 4, 3, 2}) {
		t.Errorf("10 August at +05:30: %v", got)
	}
	f, _ = audit.ParseFilter(map[string][]string{"from": {"2026-08-10"}, "to": {"2026-08-10"}}, time.UTC)
	if got := list(f); !slices.Equal(got, []int64{6, 5, 4}) {
		t.Errorf("10 August in UTC: %v", got)
	}
	if got := list(audit.Filter{From: day.AddDate(1, 0, 0)}); got != nil {
		t.Errorf("after everything: %v", got)
	}
	if got := list(audit.Filter{To: day.AddDate(-1, 0, 0)}); got != nil {
		t.Errorf("before everything: %v", got)
	}
}

// E13, E14: every field of the filter finds what it should and nothing else.
func TestE13_E14_EventsAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := facts.NewAudits(w.db)
	published := note("ann", "8", "周末促销，给大客户更多 Weight")
	published.Action, published.ObjectKind, published.PolicyVersion = audit.PolicyPublish, audit.KindPolicy, 8
	published.Touched = []audit.Touch{{Kind: audit.KindTenant, ID: "acme", Field: "weight"}, {Kind: audit.KindLane, ID: "PAID_SHARED", Field: "reserved_units"}}
	denied := note("eve", "POST /pools/:key", "")
	denied.Action, denied.ObjectKind, denied.Result = audit.AccessDenied, audit.KindRoute, audit.Denied
	for _, e := range []audit.Event{note("ann", "t-1", "cleanup"), published, denied, note("bob", "acme", "customer asked; 100% sure_ok")} {
		_, err := a.Append(w.ctx, e)
		w.must(err)
	}
	for _, c := range []struct {
		name string
		f    audit.Filter
		want []int64
	}{
		{"all", audit.Filter{}, []int64{4, 3, 2, 1}},
		{"actor", audit.Filter{Actor: "ann"}, []int64{2, 1}},
		{"action", audit.Filter{Action: audit.AccessDenied}, []int64{3}},
		{"result", audit.Filter{Result: audit.Denied}, []int64{3}},
		{"request", audit.Filter{RequestID: "req-bob"}, []int64{4}},
		{"kind", audit.Filter{ObjectKind: audit.KindTask}, []int64{4, 1}},
		{"object", audit.Filter{ObjectKind: audit.KindTask, ObjectID: "t-1"}, []int64{1}},
		{"touched object", audit.Filter{ObjectKind: audit.KindTenant, ObjectID: "acme"}, []int64{2}},
		{"id of any kind", audit.Filter{ObjectID: "acme"}, []int64{4, 2}},
		{"field", audit.Filter{Field: "reserved_units"}, []int64{2}},
		{"version", audit.Filter{Version: 8}, []int64{2}},
		{"han word", audit.Filter{Text: "促销"}, []int64{2}},
		{"han character", audit.Filter{Text: "客"}, []int64{2}},
		{"words in any case", audit.Filter{Text: "WEIGHT 大客户"}, []int64{2}},
		{"han that is not there", audit.Filter{Text: "销促"}, nil},
		{"marks are no pattern", audit.Filter{Text: "%"}, nil},
		{"underscore", audit.Filter{Text: "sure_ok"}, []int64{4}},
		{"quote", audit.Filter{Actor: "' OR '1'='1"}, nil},
		{"both", audit.Filter{Actor: "ann", Action: audit.PolicyPublish, Text: "weight"}, []int64{2}},
		{"neither", audit.Filter{Actor: "bob", Action: audit.PolicyPublish}, nil},
	} {
		rows, err := a.List(w.ctx, c.f, 0, 50)
		w.must(err)
		var got []int64
		for _, e := range rows {
			got = append(got, e.Sequence)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	row, err := a.Get(w.ctx, 2)
	w.must(err)
	if row.Reason != published.Reason || row.PolicyVersion != 8 || len(row.Touched) != 2 {
		t.Errorf("%+v", row)
	}
	if _, err := a.Get(w.ctx, 99); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("got %v", err)
	}
}

// Many append at once: sequences have no gap, times never fall, the chain holds.
func TestI07_ManyAppendAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := facts.NewAudits(w.db)
	errs := make(chan error, 16)
	for i := range 16 {
		go func() {
			for j := range 20 {
				ctx := w.ctx
				if j%5 == 4 { // given up half-way: leaves nothing
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Duration(i)*100*time.Microsecond)
					_, _ = a.Append(ctx, note("gone", "x", ""))
					cancel()
					continue
				}
				if _, err := a.Append(ctx, note(fmt.Sprintf("a%d", i), "x", "")); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range 16 {
		w.must(<-errs)
	}
	r, err := audit.Verify(w.ctx, a)
	if err != nil || !r.OK() || r.Events < 256 {
		t.Errorf("%+v %v", r, err)
	}
	if n := w.number(t, `SELECT count(*) FROM (SELECT at < lag(at) OVER (ORDER BY sequence) AS back FROM audit_event) x WHERE back`); n != 0 {
		t.Errorf("time went back %d times", n)
	}
}

func TestAnEventThatCannotBeRecordedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := facts.NewAudits(w.db)
	e := note("ann", "x", "r")
	e.Action = "Nonsense!"
	if _, err := a.Append(w.ctx, e); control.CodeOf(err) != control.CodeInvalid {
		t.Errorf("got %v", err)
	}
	e = note("ann\x00", "x\x00y", "NUL \x00 and \xff")
	if _, err := a.Append(w.ctx, e); err != nil {
		t.Errorf("hostile text: %v", err)
	}
	if r, err := audit.Verify(w.ctx, a); err != nil || !r.OK() || r.Events != 1 {
		t.Errorf("%+v %v", r, err)
	}
}
