package facts_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control/monitor"
	"fairlane/control/reconcile"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/store/storetest"
)

func waits(t *testing.T, d *storetest.Database) *facts.Waits {
	t.Helper()
	db, err := facts.Open(t.Context(), d.URL, "waits", 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return facts.NewWaits(db)
}

func TestTrap_D02_StarvedTenantsAreFoundAgainstTheirBoundAndLeaveTheList(t *testing.T) {
	t.Parallel()
	d, m := monitored(t, 8)
	queue(t, d, 80, time.Now().Add(-10*time.Minute)) // ten of each tenant
	w := waits(t, d)
	rule := reconcile.StarvationRule{BaseQuantumUnits: 4, RepayPermille: 500, Lanes: []reconcile.LaneBound{
		{Lane: "STANDARD", Seconds: 500}, {Lane: "PAID_SHARED", Seconds: 3600}, {Lane: "BEST_EFFORT", Exempt: reconcile.ExemptWeightZero}, {Lane: "EXPENSIVE"},
	}}
	look := func() int64 {
		t.Helper()
		n, err := w.Starving(t.Context(), rule)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	run(t, d, `UPDATE tenant_scheduling_policy SET weight = CASE WHEN tenant_id = $1 THEN 1 ELSE 100 END WHERE service_class = 'STANDARD'`, tenantID(1))
	run(t, d, `UPDATE tenant_scheduling_policy SET max_wait_seconds = 400 WHERE tenant_id = $1`, tenantID(2))             // three quarters of it are over
	run(t, d, `UPDATE tenant_scheduling_policy SET max_running_tasks = 3 WHERE tenant_id = $1`, tenantID(3))              // waits for itself
	run(t, d, `UPDATE tenant_runtime SET running_tasks = 3 WHERE tenant_id = $1`, tenantID(3))                            //
	run(t, d, `UPDATE generation_task SET queued_since = now() - interval '8 minutes' WHERE tenant_id = $1`, tenantID(5)) // within the bound
	run(t, d, `UPDATE tenant_scheduling_policy SET weight = 0 WHERE tenant_id = $1`, tenantID(7))                         //
	run(t, d, `UPDATE generation_task SET fairness_units = 12000 WHERE tenant_id = $1`, tenantID(1))                      // ⌈12·100/(0.5·4·1)⌉+1
	if n := look(); n != 3 {
		t.Errorf("%d tenants starve, want 1, 2 and 7", n)
	}
	starved, err := m.Starved(t.Context(), monitor.StarvedQuery{Reach: everywhere})
	if err != nil || len(starved) != 4 {
		t.Fatalf("%+v %v", starved, err)
	}
	turns := map[uuid.UUID]int64{tenantID(1): 601, tenantID(2): 2, tenantID(3): 2, tenantID(7): 0}
	for _, s := range starved {
		if want, ok := turns[s.TenantID]; !ok || s.Turns != want || s.Capped != (s.TenantID == tenantID(3)) {
			t.Errorf("%s: %d turns, want %d, capped %v", s.Code, s.Turns, want, s.Capped)
		}
		if s.TenantID == tenantID(2) && (s.BoundSeconds != 300 || s.Lane != "PAID_SHARED") {
			t.Errorf("the tenant's own longest wait binds: %+v", s)
		}
		if over := s.OldestAt.Add(time.Duration(s.BoundSeconds) * time.Second); !s.Since.Equal(over) {
			t.Errorf("since %s, the bound was passed at %s", s.Since, over)
		}
	}
	for _, reach := range []access.Reach{{}, {Lanes: []string{"EXPENSIVE"}}} {
		if rows, err := m.Starved(t.Context(), monitor.StarvedQuery{Reach: reach}); err != nil || len(rows) != 0 {
			t.Errorf("I13: %+v sees %+v, %v", reach, rows, err)
		}
	}
	if rows, err := m.Starved(t.Context(), monitor.StarvedQuery{Reach: access.Reach{Tenants: []uuid.UUID{tenantID(2)}}}); err != nil || len(rows) != 1 {
		t.Errorf("%+v %v", rows, err)
	}
	lanes := map[string]monitor.LaneStarvation{}
	x, err := m.Machine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range x.Starvation {
		lanes[l.Lane] = l
	}
	if l := lanes["STANDARD"]; l.Tenants != 2 || l.Capped != 1 || l.BoundSeconds != 500 || l.OldestAt.IsZero() || l.Exempt != "" {
		t.Errorf("%+v", l)
	}
	if l := lanes["BEST_EFFORT"]; l.Exempt != reconcile.ExemptWeightZero {
		t.Errorf("a lane of weight 0 says that it is exempt: %+v", l)
	}
	if l := lanes["EXPENSIVE"]; l.Exempt != reconcile.ExemptNoBound {
		t.Errorf("a lane without a target says so: %+v", l)
	}

	run(t, d, `UPDATE generation_task SET state = 'RUNNING' WHERE tenant_id = $1`, tenantID(1))
	run(t, d, `UPDATE tenant_lane_runtime SET queued_tasks = 0 WHERE tenant_id = $1`, tenantID(1))
	rule.Lanes[1].Exempt = reconcile.ExemptPaused
	if n := look(); n != 1 {
		t.Errorf("%d tenants starve, want 7 alone", n)
	}
	if rows, err := m.Starved(t.Context(), monitor.StarvedQuery{Reach: everywhere, Lane: "STANDARD", Tenant: tenantID(7)}); err != nil || len(rows) != 1 {
		t.Errorf("%+v %v", rows, err)
	}
	rule.Lanes = rule.Lanes[:1]
	look()
	if n := cell[int64](t, d, `SELECT count(*) FROM starvation_lane`); n != 1 {
		t.Errorf("%d lanes are kept, the policy has one", n)
	}
}

func TestTrap_D64_WritersOfHistoryAndStarvationStayBounded(t *testing.T) {
	t.Parallel()
	d, _, _ := past(t, 10_000)
	queue(t, d, 100_000, time.Now().Add(-time.Hour))
	run(t, d, `UPDATE tenant_scheduling_policy SET max_wait_seconds = 7200`)
	rule := reconcile.StarvationRule{BaseQuantumUnits: 4, Lanes: []reconcile.LaneBound{{Lane: "STANDARD", Seconds: 600}, {Lane: "PAID_SHARED", Seconds: 600}}}
	measure := func(name string, most int64, do func(*facts.DB) error) {
		t.Helper()
		before := touched(t, d, "generation_task")
		db, err := facts.Open(t.Context(), d.URL, "measure", 1)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = do(db)
		took := time.Since(began)
		db.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n := touched(t, d, "generation_task") - before
		if n > most {
			t.Errorf("%s looked at %d tasks, at most %d are allowed", name, n, most)
		}
		storetest.Figure(t, "history: %s at 10,000 tenants and 100,000 queued tasks looked at %d tasks in %d ms", name, n, took.Milliseconds())
	}
	measure("the starvation detector", 10_100, func(db *facts.DB) error {
		n, err := facts.NewWaits(db).Starving(t.Context(), rule)
		if n == 0 {
			t.Error("nobody starves")
		}
		return err
	})
	if n := cell[int64](t, d, `SELECT count(*) FROM starvation`); n != 1000 {
		t.Errorf("%d tenants are kept, the most is 1000", n)
	}
	measure("a sample", 10, func(db *facts.DB) error { _, err := facts.NewHistory(db).Sample(t.Context()); return err })
	mark := time.Now().Add(-2 * time.Minute).Truncate(time.Minute)
	for i := range 50 {
		claimed(t, d, i, 1, mark.Add(time.Duration(i)*time.Second), time.Minute)
	}
	run(t, d, `INSERT INTO history_mark (series, done_until) VALUES ('tenants:60', $1)`, mark)
	measure("a tenants' minute", 200, func(db *facts.DB) error { _, err := facts.NewHistory(db).Roll(t.Context()); return err })
	if n := cell[int64](t, d, `SELECT count(*) FROM tenant_sample`); n < 10_000 || n > 20_000 {
		t.Errorf("%d samples of 10,000 tenants", n)
	}
}
