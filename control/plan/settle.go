package plan

import (
	"time"

	"github.com/google/uuid"
)

// refusal is a task that a claim refused; it is passed over until the numbers that refused it differ.
type refusal struct {
	pick
	gate  Gate
	pool  string
	seen  [3]int64 // the numbers behind the gate when it was planned
	until time.Time
}

// refusedFor bounds how long a refused task is passed over when its reason does not seem to change.
const refusedFor = 5 * time.Second

// Confirm says that a start was claimed. A task that was not planned is ignored.
func (p *Planner) Confirm(task uuid.UUID) {
	k, ok := p.pending[task]
	if !ok {
		return
	}
	delete(p.pending, task)
	p.settled = append(p.settled, k.party)
}

// Refuse says that a start was not claimed, by which gate, and for GatePool by which pool. Its units go
// back and its cost is given back to the deficits of its tenant and lane; everything else stays. The
// task is passed over until the reason has changed.
func (p *Planner) Refuse(task uuid.UUID, gate Gate, pool string) {
	k, ok := p.pending[task]
	if !ok {
		return
	}
	delete(p.pending, task)
	p.settled = append(p.settled, k.party)
	p.count(k, p.pools[k.Pool], -1)
	l := k.party.lane
	if k.charged {
		l.ring.Refund(&k.party.Member, p.charge(l, k.cost))
	}
	if k.paid {
		p.ring.Refund(&l.Member, p.ring.Cost(k.cost))
	}
	f := &refusal{pick: *k, gate: gate, pool: pool, until: p.now.Add(refusedFor)}
	f.seen = p.behind(f)
	p.refused[task] = f
}

// Settle ends a cycle: starts that nobody answered count as refused, and tenants that have nothing
// left leave their ring.
func (p *Planner) Settle() {
	for id := range p.pending {
		p.Refuse(id, GateTask, "")
	}
	for _, m := range p.settled {
		p.read(m)
		p.settleIn(m)
	}
	p.settled = p.settled[:0]
}

// behind returns the numbers that a refusal's gate is about.
func (p *Planner) behind(f *refusal) [3]int64 {
	switch f.gate {
	case GatePool:
		if o := p.pools[f.pool]; o != nil {
			return [3]int64{o.used, o.limit, o.rule.capacity}
		}
	case GateAccount:
		l := f.party.lane
		return [3]int64{l.use.Own, p.common, l.rule.reserved}
	case GateTenant:
		return [3]int64{f.party.who.used.Units, f.party.who.used.Tasks}
	case GateUser:
		u := p.user(TenantUser{f.TenantID, f.UserID})
		return [3]int64{u.Tasks, u.Image, u.Video}
	}
	return [3]int64{p.policy.Version}
}

// retry brings refused tasks back whose reason has changed.
func (p *Planner) retry() {
	for id, f := range p.refused {
		if f.party.lane == nil || p.behind(f) != f.seen || !p.now.Before(f.until) {
			delete(p.refused, id)
			p.queue.Hide(f.ref, id, false)
		}
	}
}

// wakeTime is when the next delayed task becomes eligible or a refused one is tried again.
func (p *Planner) wakeTime() time.Time {
	wake := p.wake
	for _, f := range p.refused {
		if wake.IsZero() || f.until.Before(wake) {
			wake = f.until
		}
	}
	return wake
}
