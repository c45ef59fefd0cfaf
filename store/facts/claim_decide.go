package facts

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/schedule"
)

// grant is a start that has got everything that it needs.
type grant struct {
	start   *schedule.ClaimStart
	task    *taskRow
	attempt uuid.UUID
	token   int64
	parts   []part
	promise time.Duration // for borrowed units: within which they are to be back
}

// claimDecision compares starts with what the locked rows hold, one after the other; what it grants
// is taken from the rows in memory, so that the next start sees it.
type claimDecision struct {
	held   *heldRows
	pools  map[string]*poolRoom
	ledger *ledger
}

// decide grants a start or says why not, and for a pool which.
func (d *claimDecision) decide(s *schedule.ClaimStart) (grant, schedule.Refusal, string) {
	task := d.held.tasks[s.TaskID]
	if task == nil || !claimable(task, s) {
		return grant{}, schedule.RefusedTask, ""
	}
	policy, known := d.held.policies[s.TenantID]
	tenant := d.held.tenants[s.TenantID]
	if !known || tenant == nil || !policy.active || tenant.runningTasks >= policy.maxTasks || s.SlotUnits > policy.maxUnits-tenant.runningUnits {
		return grant{}, schedule.RefusedTenant, ""
	}
	user := d.held.users[plan.TenantUser{Tenant: s.TenantID, User: s.UserID}]
	if user == nil || user.tasks >= policy.userTasks ||
		s.Kind == control.KindImage && user.image >= policy.userImage ||
		s.Kind == control.KindVideo && user.video >= policy.userVideo {
		return grant{}, schedule.RefusedUser, ""
	}
	account, group := d.held.accounts[plan.LaneGroup{Lane: s.Lane, Group: s.Group}], d.held.groups[s.Group]
	if account == nil || group == nil || account.paused {
		return grant{}, schedule.RefusedLane, ""
	}
	lender := d.held.accounts[plan.LaneGroup{Lane: s.Lender, Group: s.Group}]
	if !roomInAccount(account, lender, group, s) {
		return grant{}, schedule.RefusedAccount, ""
	}
	parts, full := d.place(s)
	if full != "" {
		return grant{}, schedule.RefusedPool, full
	}
	d.take(s, task, tenant, user, account, lender, group, parts)
	g := grant{start: s, task: task, parts: parts}
	if s.Account == control.AccountBorrowed {
		g.promise = lender.timeout
	}
	return g, "", ""
}

// claimable holds when the row is the one that the plan saw. A version alone would do for an honest
// plan; the rest keeps a wrong one from counting a task where it does not belong.
func claimable(t *taskRow, s *schedule.ClaimStart) bool {
	return t.state.CanBecome(control.TaskDispatching) && t.version == s.TaskVersion && t.eligible && !t.overdue && !t.cancelAsked &&
		t.tenant == s.TenantID && t.user == s.UserID && t.kind == s.Kind && t.lane == s.Lane && t.group == s.Group &&
		t.slots == s.SlotUnits && t.made < t.max
}

// roomInAccount compares with what is not used. lender is nil where none is named or it has no account.
func roomInAccount(a, lender *accountRow, g *groupRow, s *schedule.ClaimStart) bool {
	switch s.Account {
	case control.AccountOwn:
		return s.SlotUnits <= a.reserved-a.own-a.lent
	case control.AccountCommon:
		return s.SlotUnits <= g.common-g.commonUsed
	case control.AccountBorrowed:
		return lender != nil && s.SlotUnits <= a.limit-a.borrowed && s.SlotUnits <= lender.lendableTo(s.Lane)
	}
	return false
}

// lendableTo is how many units the lane may still borrow from the account; headroom is never lent.
func (a *accountRow) lendableTo(lane string) int64 {
	if a.stopped || !slices.Contains(a.lendsTo, lane) {
		return 0
	}
	return max(0, min(a.lendable-a.lent, a.reserved-a.own-a.lent-a.headroom))
}

func (d *claimDecision) take(s *schedule.ClaimStart, task *taskRow, tenant *tenantRow, user *userRow, account, lender *accountRow, group *groupRow, parts []part) {
	tenant.runningTasks++
	tenant.runningUnits += s.SlotUnits
	user.tasks++
	if s.Kind == control.KindImage {
		user.image++
	} else {
		user.video++
	}
	switch s.Account {
	case control.AccountOwn:
		account.own += s.SlotUnits
	case control.AccountCommon:
		account.common += s.SlotUnits
		group.commonUsed += s.SlotUnits
	case control.AccountBorrowed:
		account.borrowed += s.SlotUnits
		lender.lent += s.SlotUnits
	}
	d.ledger.queued(task, -1)
	d.ledger.running(s.TenantID, s.UserID, s.Lane, s.Kind, s.SlotUnits, 1)
	entry(d.ledger.lanes, plan.TenantLane{Tenant: s.TenantID, Lane: s.Lane}).servedMilli += task.costMilli
	d.ledger.account(plan.LaneGroup{Lane: s.Lane, Group: s.Group}, s.Account, s.Lender, s.SlotUnits, 1)
	for _, p := range parts {
		d.ledger.shards[shardKey{s.Pool, p.shard}] += p.units
		for i, key := range p.groups {
			d.ledger.shards[shardKey{key, p.groupShards[i]}] += p.groupUnits[i]
		}
	}
}
