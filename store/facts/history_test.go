package facts_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control/monitor"
	"fairlane/control/plan"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

// past is a database as monitored makes it, with the writer of its history.
func past(t *testing.T, tenants int) (*storetest.Database, *facts.Monitor, *facts.History) {
	t.Helper()
	d, m := monitored(t, tenants)
	db, err := facts.Open(t.Context(), d.URL, "history", 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return d, m, facts.NewHistory(db)
}

func cell[T any](t *testing.T, d *storetest.Database, sql string, args ...any) (v T) {
	t.Helper()
	if err := d.Pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// rollFrom writes what is due, as if the series had been written up to from.
func rollFrom(t *testing.T, d *storetest.Database, h *facts.History, from time.Time) int64 {
	t.Helper()
	for _, s := range []string{"lanes:60", "lanes:3600", "tenants:60", "tenants:3600", "loans:60", "loans:3600"} {
		run(t, d, `INSERT INTO history_mark (series, done_until) VALUES ($1, $2) ON CONFLICT (series) DO UPDATE SET done_until = $2`, s, from)
	}
	return roll(t, h)
}

func roll(t *testing.T, h *facts.History) int64 {
	t.Helper()
	n, err := h.Roll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSamplesAreTakenOnceInTenSecondsAndShown(t *testing.T) {
	t.Parallel()
	d, m, h := past(t, 4)
	queue(t, d, 6, time.Now().Add(-time.Minute))
	for range 3 {
		if _, err := h.Sample(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := cell[int64](t, d, `SELECT count(*) FROM (SELECT lane, pool_group, at FROM account_sample WHERE step = 10 GROUP BY 1, 2, 3 HAVING count(*) > 1) twice`); n != 0 {
		t.Errorf("%d instants were sampled twice", n)
	}
	points, err := m.LanePast(t.Context(), "STANDARD", time.Now().Add(-time.Minute), 10*time.Second)
	if err != nil || len(points) == 0 {
		t.Fatalf("%v %v", points, err)
	}
	p := points[0]
	if p.Reserved != 20 || p.Own != 20 || p.Common != 7 || p.Queued != 3 || p.Oldest < 59 || p.Oldest > 120 {
		t.Errorf("%+v", p)
	}
	x, err := m.Machine(t.Context())
	if err != nil || time.Since(x.SampledAt) > time.Minute {
		t.Errorf("sampled at %v, %v", x.SampledAt, err)
	}
}

func TestMinutesAndHoursAreMadeOnceOfWhatIsFiner(t *testing.T) {
	t.Parallel()
	d, m, h := past(t, 1)
	hour := time.Now().Add(-2 * time.Hour).Truncate(time.Hour)
	run(t, d, `INSERT INTO account_sample SELECT 'STANDARD', g, 10, $1::timestamptz + i * interval '10 seconds', 20, 5, i % 6, 1, 2, 3
		FROM generate_series(0, 719) i, unnest(ARRAY['main', 'other']) g`, hour)
	run(t, d, `INSERT INTO lane_sample SELECT 'STANDARD', 10, $1::timestamptz + i * interval '10 seconds', 4, 2, i FROM generate_series(0, 719) i`, hour)
	if n := rollFrom(t, d, h, hour); n == 0 {
		t.Fatal("nothing was written")
	}
	if n := roll(t, h); n != 0 {
		t.Errorf("a second call wrote %d samples", n)
	}
	if n := rollFrom(t, d, h, hour); n != 0 { // a holder that comes back writes nothing twice
		t.Errorf("from an old mark %d samples were written again", n)
	}
	for _, c := range []struct {
		bin    time.Duration
		points int
		oldest float64
	}{{time.Minute, 120, 5}, {20 * time.Minute, 6, 119}, {time.Hour, 2, 359}} {
		points, err := m.LanePast(t.Context(), "STANDARD", hour, c.bin)
		if err != nil || len(points) != c.points {
			t.Fatalf("%s: %d points, want %d: %v", c.bin, len(points), c.points, err)
		}
		p := points[0] // two groups are one sum
		if !p.At.Equal(hour) || p.Own != 5 || p.Reserved != 40 || p.Headroom != 10 || p.Lent != 6 || p.Queued != 4 || p.Oldest != c.oldest {
			t.Errorf("%s: %+v", c.bin, p)
		}
	}
	if n := cell[int64](t, d, `SELECT count(*) FROM account_sample WHERE step = 3600`); n != 4 {
		t.Errorf("%d hourly samples of two hours and two groups", n)
	}
}

// claimed writes that the i-th queued task was claimed at that time after that wait.
func claimed(t *testing.T, d *storetest.Database, i, try int, at time.Time, wait time.Duration) {
	t.Helper()
	task := uuid.MustParse(fmt.Sprintf("01900000-0000-7000-8000-%012x", i))
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	for b := range 6 {
		id[b] = byte(at.UnixMilli() >> (8 * (5 - b)))
	}
	run(t, d, `UPDATE generation_task SET queued_since = $2 WHERE task_id = $1`, task, at.Add(-wait))
	run(t, d, `INSERT INTO task_event (event_id, task_id, type, from_state, to_state, at, detail) VALUES ($1, $2, 'TaskClaimed', 'QUEUED', 'DISPATCHING', $3, jsonb_build_object('attempt_no', $4::int))`, id, task, at, try)
}

func TestTenantMinutesHoldServiceAgainstEntitlementAndWaits(t *testing.T) {
	t.Parallel()
	d, m, h := past(t, 4) // 1 and 3 at home in STANDARD, 2 and 4 in PAID_SHARED, weight 2 each
	minute := time.Now().Add(-10 * time.Minute).Truncate(time.Minute)
	queue(t, d, 40, minute.Add(-time.Hour))
	run(t, d, `UPDATE tenant_scheduling_policy SET weight = 6 WHERE tenant_id = $1`, tenantID(3))
	run(t, d, `UPDATE tenant_lane_runtime SET debt_milli = -700 WHERE tenant_id = $1`, tenantID(1))
	for i := range 12 { // tasks 0, 4, 8 are of tenant 1, tasks 2, 6, 10 of tenant 3
		claimed(t, d, i, 1+i/8, minute.Add(time.Duration(i)*time.Second), time.Duration(10*(i+1))*time.Second)
	}
	rollFrom(t, d, h, minute.Add(-time.Minute))
	points, err := m.TenantPast(t.Context(), tenantID(1), "STANDARD", minute, time.Minute)
	if err != nil || len(points) < 9 {
		t.Fatalf("%d points, %v", len(points), err)
	}
	p := points[0]
	if p.Starts != 3 || p.Served != 6000 || p.Lane != 12000 || p.Share() != 5000 || p.Entitlement() != 2500 || p.Debt != -700 || p.Queued != 10 {
		t.Errorf("%+v, share %d, entitlement %d", p, p.Share(), p.Entitlement())
	}
	var waits int64
	for _, n := range p.Waits {
		waits += n
	}
	if waits != 2 { // the third is a second attempt
		t.Errorf("%d waits of first attempts, want 2: %v", waits, p.Waits)
	}
	if q := p.Waits.Quantile(.95); q < 45 || q > 60 {
		t.Errorf("the larger of the waits of 10 and 50 s is put at %.0f s", q)
	}
	if idle := points[1]; idle.Served != 0 || idle.Share() != -1 || idle.Starts != 0 {
		t.Errorf("a minute without service: %+v", idle)
	}
	hour, err := m.TenantPast(t.Context(), tenantID(1), "STANDARD", minute.Add(-time.Hour), 30*time.Minute)
	if err != nil || len(hour) == 0 || hour[0].Served+hour[len(hour)-1].Served < 6000 {
		t.Errorf("in half hours: %+v, %v", hour, err)
	}
	if debts, err := m.Debts(t.Context(), tenantID(1)); err != nil || len(debts) != 1 || debts[0].DebtMilli != -700 {
		t.Errorf("debts %+v, %v", debts, err)
	}
	// Hours are made of whole minutes.
	run(t, d, `DELETE FROM tenant_sample`)
	start := time.Now().Add(-90 * time.Minute).Truncate(time.Hour)
	run(t, d, `INSERT INTO tenant_sample SELECT $1, 'STANDARD', 60, $2::timestamptz + i * interval '1 minute', 100, 400, 50, i, 2, 3, 1, array_fill(1::bigint, ARRAY[$3::int]) FROM generate_series(0, 59) i`,
		tenantID(1), start, len(monitor.WaitBounds)+1)
	run(t, d, `UPDATE history_mark SET done_until = CASE WHEN series = 'tenants:60' THEN $1::timestamptz + interval '1 hour' ELSE $1 END WHERE series LIKE 'tenants:%'`, start)
	run(t, d, `UPDATE generation_task SET state = 'CANCELED'`)
	roll(t, h)
	hours, err := m.TenantPast(t.Context(), tenantID(1), "STANDARD", start, time.Hour)
	if err != nil || len(hours) == 0 { // in the first half of an hour another one has ended since
		t.Fatalf("%+v %v", hours, err)
	}
	if p := hours[0]; !p.At.Equal(start) || p.Served != 6000 || p.Lane != 24000 || p.Entitled != 3000 || p.Debt != 59 || p.Starts != 60 || p.Waits[0] != 60 || len(p.Waits) != len(monitor.WaitBounds)+1 {
		t.Errorf("%+v", p)
	}
}

// lent writes a loan of the i-th queued task; returned is after how long it came back, 0: it is out.
func lent(t *testing.T, d *storetest.Database, i int, at time.Time, promise, returned time.Duration, state string) {
	t.Helper()
	attempt(t, d, i, "provider:b", state, 2)
	task := uuid.MustParse(fmt.Sprintf("01900000-0000-7000-8000-%012x", i))
	back := new(time.Time)
	*back = at.Add(returned)
	if returned == 0 {
		back = nil
	}
	run(t, d, `UPDATE resource_reservation SET account = CASE WHEN $5::timestamptz IS NULL THEN 'BORROWED' ELSE 'OWN' END,
			lender_lane = CASE WHEN $5::timestamptz IS NULL THEN 'PAID_SHARED' END,
			borrowed_from = 'PAID_SHARED', borrowed_at = $2, borrow_due_at = $3, returned_at = $4 WHERE task_id = $1`,
		task, at, at.Add(promise), back, back)
}

func TestPromisesAreJudgedWhenTheyFallDueAndUnknownOnesAreMisses(t *testing.T) {
	t.Parallel()
	d, m, h := past(t, 2)
	queue(t, d, 20, time.Now().Add(-2*time.Hour))
	ago := func(age time.Duration) time.Time { return time.Now().Add(-age) }
	for i := range 6 {
		lent(t, d, 2*i, ago(20*time.Minute), 5*time.Minute, 4*time.Minute, "SUCCEEDED") // kept
	}
	lent(t, d, 1, ago(20*time.Minute), 5*time.Minute, 6*time.Minute, "SUCCEEDED") // late
	lent(t, d, 3, ago(20*time.Minute), 5*time.Minute, 0, "UNKNOWN")
	lent(t, d, 5, ago(time.Minute), 5*time.Minute, 0, "ACCEPTED")              // not due
	lent(t, d, 7, ago(3*time.Hour), 5*time.Minute, 4*time.Minute, "SUCCEEDED") // of the day, not of the hour
	rollFrom(t, d, h, time.Now().Add(-4*time.Hour).Truncate(time.Hour))

	p, err := m.Promise(t.Context(), "PAID_SHARED")
	if err != nil {
		t.Fatal(err)
	}
	if p.Hour != (monitor.PromiseKept{Loans: 8, Units: 16, Kept: 6, KeptUnits: 12}) || p.Day.Loans != 9 || p.Day.Kept != 7 {
		t.Errorf("%+v", p)
	}
	if math.Abs(p.Hour.Part()-.75) > 1e-9 || (monitor.PromiseKept{}).Part() != -1 {
		t.Errorf("kept %.3f", p.Hour.Part())
	}
	if len(p.Misses) != 2 {
		t.Fatalf("misses: %+v", p.Misses)
	}
	for _, l := range p.Misses {
		if out := l.ReturnedAt.IsZero(); out != l.Unknown || l.Units != 2 || l.DueAt.Sub(l.BorrowedAt) != 5*time.Minute {
			t.Errorf("%+v", l)
		}
	}
	loans, err := m.Loans(t.Context(), "PAID_SHARED", "")
	if err != nil || len(loans) != 1 || loans[0].Loans != 2 || loans[0].Units != 4 || loans[0].TenantID != tenantID(2) {
		t.Errorf("open loans %+v, %v", loans, err)
	}
	if loans, err := m.Loans(t.Context(), "", "STANDARD"); err != nil || len(loans) != 0 {
		t.Errorf("%+v, %v", loans, err)
	}
	if p, err := m.Promise(t.Context(), "STANDARD"); err != nil || p.Day.Loans != 0 || len(p.Misses) != 0 {
		t.Errorf("of a lane that lends nothing: %+v, %v", p, err)
	}
}

func TestSamplesAreForgottenWhenTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	d, _, h := past(t, 1)
	run(t, d, `INSERT INTO account_sample SELECT 'STANDARD', 'main', s, clock_timestamp() - age, 1, 1, 1, 1, 1, 1 FROM (VALUES
		(10, interval '1 hour'), (10, interval '4 hours'), (10, interval '5 hours'), (10, interval '6 hours'), (60, interval '40 hours'), (60, interval '49 hours'),
		(3600, interval '89 days'), (3600, interval '91 days')) v(s, age)`)
	n, err := h.Forget(t.Context(), 2)
	if err != nil || n != 2 {
		t.Fatalf("the fullest kind lost %d, %v", n, err)
	}
	if n, err = h.Forget(t.Context(), 2); err != nil || n != 1 {
		t.Fatalf("then %d, %v", n, err)
	}
	if left := cell[int64](t, d, `SELECT count(*) FROM account_sample`); left != 3 {
		t.Errorf("%d samples are left, want one of each step", left)
	}
}

func TestI11_StatusOfAnEarlierTermNeverOverwrites(t *testing.T) {
	t.Parallel()
	d, m := monitored(t, 1)
	db, err := facts.Open(t.Context(), d.URL, "status", 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	s := facts.NewStatuses(db)
	now := time.Now().UTC().Truncate(time.Millisecond)
	put := func(term int64, at time.Time, version int64) {
		t.Helper()
		err := s.PutStatus(t.Context(), "main", term, plan.Status{At: at, Version: version,
			Lanes:   []plan.LaneStatus{{Lane: "STANDARD", Stopped: true, StoppedSince: now}},
			Tenants: []plan.TenantStatus{{Tenant: tenantID(1), Lane: "STANDARD", DeficitMilli: 1500, DebtMilli: -20}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(2, now, 7)
	put(1, now.Add(time.Minute), 6) // a paused holder that comes back
	put(2, now.Add(-time.Second), 5)
	all, err := s.Statuses(t.Context())
	if err != nil || len(all) != 1 || all["main"].Version != 7 || !all["main"].At.Equal(now) {
		t.Errorf("%+v %v", all, err)
	}
	put(3, now.Add(-time.Hour), 8) // the clock of a new holder may be behind
	if all, err = s.Statuses(t.Context()); err != nil || all["main"].Version != 8 {
		t.Errorf("%+v %v", all, err)
	}
	places, err := m.Places(t.Context(), tenantID(1))
	if err != nil || len(places) != 1 || places[0].DeficitMilli != 1500 || places[0].DebtMilli != -20 || places[0].Lane != "STANDARD" {
		t.Errorf("%+v %v", places, err)
	}
	if places, err = m.Places(t.Context(), tenantID(2)); err != nil || len(places) != 0 {
		t.Errorf("%+v %v", places, err)
	}
	if err := s.PutStatus(t.Context(), "empty", 1, plan.Status{At: now}); err != nil {
		t.Fatal(err)
	}
	if _, err = m.Places(t.Context(), tenantID(1)); err != nil {
		t.Errorf("beside a group without tenants: %v", err)
	}
	x, err := m.Machine(t.Context())
	if err != nil || len(x.Schedulers["main"].Tenants) != 0 || !x.Schedulers["main"].Lanes[0].Stopped {
		t.Errorf("%+v %v", x.Schedulers, err)
	}
}

// Loans are few among reservations: pages must not walk the rest.
func TestTrap_D64_LoansAndPromisesAreFoundWithoutWalkingReservations(t *testing.T) {
	t.Parallel()
	const rows = 60_000
	d, _, h := past(t, 2)
	conn, err := d.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = conn.Exec(t.Context(), `SET session_replication_role = replica`); err != nil { // rows without their tasks
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), `
		INSERT INTO resource_reservation (reservation_id, task_id, attempt_id, resource_key, shard_no, reserved_units, state, tenant_id, user_id, kind, lane, pool_group,
			account, policy_version, lease_until, fencing_token, released_at, borrowed_at, borrowed_from, borrow_due_at, returned_at)
		SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'provider:b', 0, 1, 'RELEASED', $1, $1, 'VIDEO', 'STANDARD', 'main', 'OWN', 1, now(), 7, now(),
			CASE WHEN loan THEN at END, CASE WHEN loan THEN 'PAID_SHARED' END, CASE WHEN loan THEN at + interval '5 minutes' END, CASE WHEN loan THEN at + interval '4 minutes' END
		FROM (SELECT i % 5 = 0 AS loan, now() - i * interval '1 second' AS at FROM generate_series(1, $2) i) s`, tenantID(2), rows)
	conn.Conn().Close(t.Context()) //nolint:errcheck // its setting must not go back to the pool
	conn.Release()
	if err != nil {
		t.Fatal(err)
	}
	run(t, d, `ANALYZE`)
	rollFrom(t, d, h, time.Now().Add(-time.Hour).Truncate(time.Hour))
	before := touched(t, d, "resource_reservation")
	db, err := facts.Open(t.Context(), d.URL, "measure", 1)
	if err != nil {
		t.Fatal(err)
	}
	m := facts.NewMonitor(db)
	p, err := m.Promise(t.Context(), "PAID_SHARED")
	if err == nil {
		_, err = m.Loans(t.Context(), "PAID_SHARED", "")
	}
	if err == nil {
		_, err = m.Loans(t.Context(), "", "STANDARD")
	}
	db.Close()
	if err != nil || p.Hour.Loans == 0 || p.Hour.Kept != p.Hour.Loans {
		t.Fatalf("%+v %v", p, err)
	}
	n := touched(t, d, "resource_reservation") - before
	if n > 100 {
		t.Errorf("%d of %d reservations were looked at", n, rows)
	}
	storetest.Figure(t, "history: the promise and the open loans of a lane looked at %d of %d reservations", n, rows)
}
