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
	fresh bool     // refused since the last Settle
	seen  [3]int64 // the numbers behind the gate at Settle
	until time.Time
}

// refusedFor bounds how long a refused task is passed over when its reason does not seem to change.
const refusedFor = 5 * time.Second

// answered finds a start that waits for its answer; answers in the order of the plan are found at once.
func (p *Planner) answered(task uuid.UUID) *pick {
	for range p.pending {
		if p.hint >= len(p.pending) {
			p.hint = 0
		}
		k := &p.pending[p.hint]
		p.hint++
		if k.TaskID == task && !k.done {
			k.done = true
			return k
		}
	}
	return nil
}

// Confirm says that a start was claimed. A task that was not planned is ignored.
func (p *Planner) Confirm(task uuid.UUID) {
	if k := p.answered(task); k != nil {
		p.ask(k.party.who)
		if k.user != nil {
			p.askUser(k.user)
		}
	}
}

// Refuse says that a start was not claimed, by which gate, and for GatePool by which pool. Its units go
// back and its cost is given back to the deficits of its tenant and lane; everything else stays. The
// task is passed over until the reason has changed.
func (p *Planner) Refuse(task uuid.UUID, gate Gate, pool string) {
	if k := p.answered(task); k != nil {
		p.refuse(k, gate, pool)
	}
}

func (p *Planner) refuse(k *pick, gate Gate, pool string) {
	m, l := k.party, k.party.lane
	for _, o := range m.who.parties {
		p.withdraw(o)
	}
	p.count(k, p.pools[k.Pool], -1)
	if k.charged {
		l.ring.Refund(&m.Member, p.charge(l, k.cost))
	}
	if k.paid {
		p.ring.Refund(&l.Member, p.ring.Cost(k.cost))
	}
	switch {
	case gate == GateTenant:
		m.who.known = false
	case gate == GateUser && k.user != nil:
		k.user.known = false
	}
	p.ask(m.who)
	if k.user != nil {
		p.askUser(k.user)
		p.park(k.user) // it may have been at its cap by this start
	}
	for _, o := range m.who.parties {
		p.read(o)
	}
	p.refused[k.TaskID] = &refusal{pick: *k, gate: gate, pool: pool, fresh: true, until: p.now.Add(refusedFor)}
}

// Settle ends a cycle: starts that nobody answered count as refused, and tenants that have nothing
// left leave their ring.
func (p *Planner) Settle() {
	if len(p.pending) == 0 {
		return
	}
	for i := range p.pending {
		if k := &p.pending[i]; !k.done {
			k.done = true
			p.refuse(k, GateTask, "")
		}
	}
	for _, m := range p.moved {
		if m.In() && len(m.heads) == 0 {
			p.leave(m)
		}
	}
	clear(p.pending)
	p.pending, p.hint = p.pending[:0], 0
	for _, f := range p.refused {
		if f.fresh {
			f.fresh, f.seen = false, p.behind(f)
		}
	}
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
		return [3]int64{l.use.Own + l.use.Borrowed<<20 + l.use.Lent<<40, p.common, l.rule.reserved}
	case GateTenant:
		return [3]int64{f.party.who.used.Units, f.party.who.used.Tasks, p.policy.Version}
	case GateUser:
		if f.user != nil {
			return [3]int64{f.user.Tasks, f.user.Image, f.user.Video}
		}
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

// wakeTime is when the next delayed task becomes eligible, a refused one is tried again, or counters
// should be read that one snapshot could not hold.
func (p *Planner) wakeTime() time.Time {
	wake := p.wake
	if p.partly {
		if soon := p.now.Add(askAgain); wake.IsZero() || soon.Before(wake) {
			wake = soon
		}
	}
	sooner := func(micro int64) {
		if at := time.UnixMicro(micro).UTC(); micro > p.micro && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	for _, l := range p.order {
		if l.stopped && !l.needy {
			sooner(l.calm + l.rule.cooldown)
		}
	}
	for _, h := range p.holds {
		sooner(h.until)
	}
	if after := p.policy.rules.doc.Scheduling.EarmarkAfter * 1_000_000; after > 0 {
		for _, h := range p.passed {
			if h.ticket == 0 && h.first > 0 {
				sooner(h.first + after)
			}
		}
	}
	for _, f := range p.refused {
		if wake.IsZero() || f.until.Before(wake) {
			wake = f.until
		}
	}
	return wake
}
