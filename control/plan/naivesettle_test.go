package plan_test

import (
	"slices"

	"github.com/google/uuid"

	"fairlane/control/plan"
)

// answer tells what came of a start.
func (n *naive) answer(id uuid.UUID, gate plan.Gate, pool string) {
	i := slices.IndexFunc(n.starts, func(s *nStart) bool { return s.task.TaskID == id })
	s := n.starts[i]
	if gate == "" {
		delete(n.tasks, id)
		return
	}
	n.count(s, -1)
	if s.charged {
		s.party.deficit += n.charge(s.lane, s.task.CostMilli) * s.lane.ring.w
	}
	if s.paid {
		s.lane.deficit += s.task.CostMilli * n.ring.w
	}
	r := n.rule(s.task.TenantID)
	s.task.refused, s.task.pool, s.task.fresh, s.task.until = gate, pool, true, n.now+5
	s.task.capped = min(r.UserMaxRunningTasks, r.UserMaxRunningImage, r.UserMaxRunningVideo) < r.MaxRunningTasks
}

// settle ends the cycle.
func (n *naive) settle() {
	n.look()
	for _, m := range n.parties {
		if m.in && len(m.heads) == 0 {
			n.leave(m)
		}
	}
	for _, t := range n.tasks {
		if t.fresh {
			t.fresh, t.seen = false, n.behind(t)
		}
	}
}

// behind are the numbers that a refusal is about: while they stand, the task is passed over.
func (n *naive) behind(t *nTask) [3]int64 {
	switch t.refused {
	case plan.GatePool:
		p, _ := n.w.doc.Pool(t.pool)
		use := n.use0(t.pool)
		return [3]int64{use.Used, use.Limit, p.CapacityUnits}
	case plan.GateAccount:
		own, _ := n.w.accounts(t.Lane)
		u := n.use[t.Lane]
		return [3]int64{u.Own + u.Borrowed<<20 + u.Lent<<40, n.common, own}
	case plan.GateTenant:
		u := n.used[t.TenantID]
		return [3]int64{u.Units, u.Tasks, n.version}
	case plan.GateUser:
		if t.capped {
			u := n.users[plan.TenantUser{Tenant: t.TenantID, User: t.UserID}]
			return [3]int64{u.Tasks, u.Image, u.Video}
		}
	}
	return [3]int64{n.version}
}
