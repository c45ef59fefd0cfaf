package facts_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/control/dispatch"
	"fairlane/control/plan"
	"fairlane/control/schedule"
	"fairlane/policy"
	"fairlane/store/facts"
)

// ledgerModel says what lanes hold by adding up what runs, again for every question. It has no counters.
type ledgerModel struct {
	terms   map[string]policy.LaneAccount
	stopped map[string]bool
	runs    []hold
}

type hold struct {
	claimed schedule.Claimed
	lane    string
	account control.Account
	lender  string
	units   int64
}

var modelLanes = []string{control.LaneEnterprise, control.LanePaid, control.LaneStandard, control.LaneBestEffort}

// modelCapacity is what the lanes share; less than they would use.
const modelCapacity = 60

func (m *ledgerModel) sum(of func(hold) bool) (units int64) {
	for _, h := range m.runs {
		if of(h) {
			units += h.units
		}
	}
	return units
}

func (m *ledgerModel) used(lane string, account control.Account) int64 {
	return m.sum(func(h hold) bool { return h.lane == lane && h.account == account })
}

func (m *ledgerModel) lent(lane string) int64 {
	return m.sum(func(h hold) bool { return h.account == control.AccountBorrowed && h.lender == lane })
}

func (m *ledgerModel) ownFree(lane string) int64 {
	return m.terms[lane].ReservedUnits - m.used(lane, control.AccountOwn) - m.lent(lane)
}

func (m *ledgerModel) allows(s *schedule.ClaimStart) bool {
	switch s.Account {
	case control.AccountOwn:
		return s.SlotUnits <= m.ownFree(s.Lane)
	case control.AccountCommon:
		free := int64(modelCapacity)
		for _, lane := range modelLanes {
			free -= m.terms[lane].ReservedUnits
		}
		return s.SlotUnits <= free-m.sum(func(h hold) bool { return h.account == control.AccountCommon })
	}
	lender := m.terms[s.Lender]
	return !m.stopped[s.Lender] && slices.Contains(lender.LendsTo, s.Lane) &&
		m.used(s.Lane, control.AccountBorrowed)+s.SlotUnits <= m.terms[s.Lane].BorrowLimit &&
		m.lent(s.Lender)+s.SlotUnits <= lender.LendableUnits && s.SlotUnits <= m.ownFree(s.Lender)-lender.HeadroomUnits
}

func (m *ledgerModel) relabel(loan plan.Loan) (done int64) {
	for i := range m.runs {
		h := &m.runs[i]
		if h.claimed.AttemptID == loan.AttemptID && h.account == control.AccountBorrowed && h.lane == loan.Lane && h.lender == loan.Lender && h.units <= m.ownFree(h.lane) {
			h.account, h.lender = control.AccountOwn, ""
			done++
		}
	}
	return done
}

func (m *ledgerModel) String() string {
	var lines []string
	for _, lane := range modelLanes {
		lines = append(lines, fmt.Sprintf("%s own %d common %d borrowed %d lent %d stopped %v", lane,
			m.used(lane, control.AccountOwn), m.used(lane, control.AccountCommon), m.used(lane, control.AccountBorrowed), m.lent(lane), m.stopped[lane]))
	}
	return strings.Join(lines, "\n")
}

// lendingRun plays sequences against one database.
type lendingRun struct {
	*town
	model        *ledgerModel
	tenant, user uuid.UUID
	sequences    *atomic.Int64
	actions      *atomic.Int64
	loans        *atomic.Int64
	relabels     *atomic.Int64
}

func newLendingRun(t *testing.T) *lendingRun {
	t.Helper()
	c := newTown(t, 1)
	r := &lendingRun{town: c, tenant: c.list[0].ID, model: &ledgerModel{terms: map[string]policy.LaneAccount{}, stopped: map[string]bool{}}}
	c.must(c.sql.QueryRow(c.ctx, `SELECT user_id FROM tenant_user WHERE tenant_id = $1`, r.tenant).Scan(&r.user))
	head, err := c.policies.Head(c.ctx)
	c.must(err)
	doc := head.Document.Clone()
	doc.PoolGroups[0].CapacityUnits = modelCapacity
	for i := range doc.Pools {
		doc.Pools[i].CapacityUnits = 1_000
	}
	plan := &doc.Plans[0].Settings
	plan.MaxRunningTasks, plan.MaxRunningUnits, plan.UserMaxRunningTasks, plan.UserMaxRunningVideo = 9_000, 9_000, 9_000, 9_000
	for i := range doc.Lanes {
		doc.Lanes[i].Accounts[0].ReservedUnits = 0
	}
	_, err = c.publisher.Publish(c.ctx, policy.Publication{Base: head.Number, Document: doc, Reason: "room", Actor: ann})
	c.must(err)
	return r
}

// I06: claims with flags and relabels, releases and publishes in any order, beside a model that only adds up.
func TestI06_LendingAgreesWithAModelThatOnlyAddsUp(t *testing.T) {
	t.Parallel()
	var sequences, actions, loans, relabels atomic.Int64
	t.Run("databases", func(t *testing.T) {
		for name := range 2 {
			t.Run(fmt.Sprint(name), func(t *testing.T) {
				t.Parallel()
				r := newLendingRun(t)
				r.sequences, r.actions, r.loans, r.relabels = &sequences, &actions, &loans, &relabels
				rapid.Check(t, func(rt *rapid.T) { r.sequence(t, rt) })
			})
		}
	})
	if loans.Load() == 0 || relabels.Load() == 0 {
		t.Errorf("%d loans, %d relabels: the sequences show nothing", loans.Load(), relabels.Load())
	}
	figure(t, "lending beside a model", map[string]any{"sequences": sequences.Load(), "actions": actions.Load(), "loans": loans.Load(), "relabels": relabels.Load()})
}

func (r *lendingRun) sequence(t *testing.T, rt *rapid.T) {
	r.release(rt, r.model.runs)
	r.publishTerms(t, rt)
	r.publishTerms(t, rt)
	kinds := rapid.SampledFrom([]string{"claim", "claim", "claim", "claim", "relabel", "release", "release", "publish", "stop"})
	for range rapid.IntRange(6, 14).Draw(rt, "actions") {
		kind := kinds.Draw(rt, "action")
		lentBefore := map[string]int64{}
		for _, lane := range modelLanes {
			lentBefore[lane] = r.model.lent(lane)
		}
		switch kind {
		case "claim":
			r.claimSome(t, rt, rapid.IntRange(1, 4).Draw(rt, "starts"))
		case "relabel", "stop":
			r.claimSome(t, rt, 0)
		case "release":
			r.release(rt, rapid.SliceOfN(rapid.SampledFrom(append(r.model.runs, hold{})), 1, 3).Draw(rt, "ended"))
		case "publish":
			r.publishTerms(t, rt)
		}
		r.actions.Add(1)
		r.compare(rt, kind, lentBefore)
	}
	found, err := facts.NewCheck(r.db).Run(r.ctx)
	if err != nil || len(found) > 0 {
		rt.Fatalf("%v %+v", err, found)
	}
	r.sequences.Add(1)
}

func (r *lendingRun) claimSome(t *testing.T, rt *rapid.T, n int) {
	m := r.model
	version, err := r.policies.HeadNumber(r.ctx)
	r.must(err)
	req := schedule.Claim{PoolGroup: "default", PolicyVersion: version}
	lane := rapid.SampledFrom(modelLanes)
	borrowed := []plan.Loan{{AttemptID: uuid.NameSpaceDNS, Lane: modelLanes[0], Lender: modelLanes[1], Units: 1}}
	for _, h := range m.runs {
		loan := plan.Loan{AttemptID: h.claimed.AttemptID, Lane: h.lane, Lender: h.lender, Units: h.units}
		if h.account != control.AccountBorrowed { // no loan, or no longer one
			loan.Lender = modelLanes[(slices.Index(modelLanes, h.lane)+1)%4]
		}
		borrowed = append(borrowed, loan)
	}
	req.Relabels = rapid.SliceOfN(rapid.SampledFrom(borrowed), 0, 5).Draw(rt, "relabels")
	for range rapid.IntRange(0, 2).Draw(rt, "flags") {
		req.Lending = append(req.Lending, plan.Lending{Lane: lane.Draw(rt, "flagged"), Stopped: rapid.IntRange(0, 3).Draw(rt, "stopped") == 3})
	}
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = job{tenant: r.tenant, user: r.user, lane: lane.Draw(rt, "lane"), group: "default", slots: rapid.Int64Range(1, 4).Draw(rt, "slots"), maxAttempts: 1}
	}
	if n > 0 {
		req.Starts = r.starts(t, r.queue(t, jobs...), "leaf-1", []string{"acct", "platform"}, control.AccountOwn)
	}
	for i := range req.Starts {
		s := &req.Starts[i]
		s.Account = rapid.SampledFrom([]control.Account{control.AccountBorrowed, control.AccountBorrowed, control.AccountOwn, control.AccountCommon}).Draw(rt, "account")
		if s.Account == control.AccountBorrowed {
			s.Lender = rapid.SampledFrom(slices.DeleteFunc(slices.Clone(modelLanes), func(l string) bool { return l == s.Lane })).Draw(rt, "lender")
		}
	}
	got, err := facts.NewClaims(r.db).Claim(r.ctx, req)
	if err != nil {
		rt.Fatal(err)
	}
	for _, loan := range req.Relabels {
		r.relabels.Add(m.relabel(loan))
	}
	for _, s := range req.Lending {
		if !s.Stopped {
			m.stopped[s.Lane] = false
		}
	}
	for i := range req.Starts {
		s := &req.Starts[i]
		if want := m.allows(s); (got[i].Refused == "") != want || got[i].Refused != "" && got[i].Refused != schedule.RefusedAccount {
			rt.Fatalf("%s %s from %q, %d units: refused %q, allowed %v\n%s", s.Lane, s.Account, s.Lender, s.SlotUnits, got[i].Refused, want, m)
		}
		if got[i].Refused == "" {
			m.runs = append(m.runs, hold{got[i], s.Lane, s.Account, s.Lender, s.SlotUnits})
			if s.Lender != "" {
				r.loans.Add(1)
			}
		}
	}
	for _, s := range req.Lending { // a lane stops after what the plan had it lend
		if s.Stopped {
			m.stopped[s.Lane] = true
		}
	}
}

// release ends what runs, some of it twice and some that does not run.
func (r *lendingRun) release(rt *rapid.T, list []hold) {
	var endings []dispatch.Ending
	for _, h := range list {
		endings = append(endings, ending(h.claimed, control.AttemptRejected))
		r.model.runs = slices.DeleteFunc(slices.Clone(r.model.runs), func(o hold) bool { return o.claimed.AttemptID == h.claimed.AttemptID })
	}
	if _, err := facts.NewEndings(r.db).End(r.ctx, endings); err != nil {
		rt.Fatal(err)
	}
}

// publishTerms gives one lane other terms; generators prefer small numbers, so these are drawn from the top.
// Reserves stay within what the group has.
func (r *lendingRun) publishTerms(t *testing.T, rt *rapid.T) {
	lane := rapid.SampledFrom(modelLanes).Draw(rt, "lane")
	a := policy.LaneAccount{PoolGroup: "default", ReservedUnits: 14 - rapid.Int64Range(0, 14).Draw(rt, "not reserved")}
	a.HeadroomUnits = rapid.Int64Range(0, min(4, a.ReservedUnits)).Draw(rt, "headroom")
	a.LendableUnits = a.ReservedUnits - a.HeadroomUnits - rapid.Int64Range(0, a.ReservedUnits-a.HeadroomUnits).Draw(rt, "not lendable")
	a.BorrowLimit = 9 - rapid.Int64Range(0, 9).Draw(rt, "below the limit")
	a.BorrowTimeout = 60
	for _, other := range modelLanes {
		if other != lane && rapid.IntRange(0, 3).Draw(rt, "lends not") < 3 {
			a.LendsTo = append(a.LendsTo, other)
		}
	}
	set := func(field string, v int64) policy.Edit {
		return policy.SetLaneAccount(lane, "default", field, fmt.Sprint(v))
	}
	_, err := r.try(r.ctx, set("reserved_units", a.ReservedUnits), set("headroom_units", a.HeadroomUnits), set("lendable_units", a.LendableUnits),
		set("borrow_limit_units", a.BorrowLimit), set("borrow_timeout_seconds", a.BorrowTimeout),
		policy.SetLaneAccount(lane, "default", "lends_to", strings.Join(a.LendsTo, ",")))
	if err != nil && !strings.Contains(err.Error(), policy.KeyNothingChanged) {
		rt.Fatal(err)
	}
	r.model.terms[lane] = a
}

// compare holds the counters, the flags and the loans that are read against the model, and lending to its terms.
func (r *lendingRun) compare(rt *rapid.T, kind string, lentBefore map[string]int64) {
	rows, err := r.sql.Query(r.ctx, `SELECT lane, own_used, common_used, borrowed_used, lent_units, lending_stopped FROM lane_account
		WHERE lane = ANY($1) ORDER BY array_position($1, lane)`, modelLanes)
	r.must(err)
	var lane string
	var own, common, borrowed, lent int64
	var stopped bool
	var lines []string
	_, err = pgx.ForEachRow(rows, []any{&lane, &own, &common, &borrowed, &lent, &stopped}, func() error {
		lines = append(lines, fmt.Sprintf("%s own %d common %d borrowed %d lent %d stopped %v", lane, own, common, borrowed, lent, stopped))
		terms := r.model.terms[lane]
		if most := min(terms.LendableUnits, terms.ReservedUnits-terms.HeadroomUnits); lent > lentBefore[lane] && lent > most {
			rt.Errorf("%s lent %d more and has %d of %d out", lane, lent-lentBefore[lane], lent, most)
		}
		return nil
	})
	r.must(err)
	if got, want := strings.Join(lines, "\n"), r.model.String(); got != want {
		rt.Fatalf("after %s:\n%s\nwant\n%s", kind, got, want)
	}
	s, err := facts.NewSnapshots(r.db).Snapshot(r.ctx, "default", nil, nil)
	r.must(err)
	var want []plan.Loan
	for _, h := range r.model.runs {
		if h.account == control.AccountBorrowed {
			want = append(want, plan.Loan{AttemptID: h.claimed.AttemptID, Lane: h.lane, Lender: h.lender, Units: h.units})
		}
	}
	if !slices.Equal(s.Loans, want) {
		rt.Fatalf("after %s: loans %+v\nwant %+v", kind, s.Loans, want)
	}
}
