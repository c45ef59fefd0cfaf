package plan

import (
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// Needs names the counters that a snapshot should hold beside all lanes and pools of the group.
type Needs struct {
	Tenants []uuid.UUID
	Users   []TenantUser
}

// askLimit bounds how many tenants and how many users one snapshot is asked for; the rest follow in
// the next cycles, and until then a claim that goes too far is refused and corrects the mirror.
const askLimit = 512

// askAgain is when the next cycle should come when there were more to ask for.
const askAgain = 100 * time.Millisecond

// Needs follows the queue and names the tenants and users whose counters the next Cycle needs: those
// with waiting tasks that run something, so that a release may have moved their counters, and those
// whose counters were never read or were contradicted by a claim. The others run nothing.
func (p *Planner) Needs(now time.Time) Needs {
	p.advance(now)
	p.asked = Needs{}
	p.partly = len(p.asking) > askLimit || len(p.askUsers) > askLimit
	for range min(askLimit, len(p.asking)) {
		p.from = (p.from + 1) % len(p.asking)
		p.asked.Tenants = append(p.asked.Tenants, p.asking[p.from].id)
	}
	for range min(askLimit, len(p.askUsers)) {
		p.fromUser = (p.fromUser + 1) % len(p.askUsers)
		p.asked.Users = append(p.asked.Users, p.askUsers[p.fromUser].id)
	}
	return p.asked
}

// ask keeps a tenant in the list of those to ask for, or out of it.
func (p *Planner) ask(t *tenant) {
	want := len(t.parties) > 0 && (!t.known || t.used.Tasks > 0)
	switch {
	case want && t.ask == 0:
		p.asking = append(p.asking, t)
		t.ask = len(p.asking)
	case !want && t.ask > 0:
		last := len(p.asking) - 1
		moved := p.asking[last]
		p.asking[t.ask-1], p.asking[last] = moved, nil
		moved.ask = t.ask
		p.asking, t.ask = p.asking[:last], 0
	}
}

func (p *Planner) askUser(u *user) {
	want := !u.known || u.Tasks > 0
	switch {
	case want && u.ask == 0:
		p.askUsers = append(p.askUsers, u)
		u.ask = len(p.askUsers)
	case !want && u.ask > 0:
		p.unaskUser(u)
	}
}

func (p *Planner) unaskUser(u *user) {
	if u.ask == 0 {
		return
	}
	last := len(p.askUsers) - 1
	moved := p.askUsers[last]
	p.askUsers[u.ask-1], p.askUsers[last] = moved, nil
	moved.ask = u.ask
	p.askUsers, u.ask = p.askUsers[:last], 0
}

// load takes the snapshot's counters over. What was asked for and is not there is zero.
func (p *Planner) load(s Snapshot) {
	p.loadLanes(&s)
	p.loadPools(s.Pools)
	p.loans = s.Loans
	for _, id := range p.asked.Tenants {
		if t := p.tenants[id]; t != nil {
			p.loadTenant(t, s)
		}
	}
	for _, id := range p.asked.Users {
		if u := p.users[id]; u != nil {
			use := s.Users[id]
			changed := use != u.UserUse
			u.UserUse, u.known = use, true
			if changed {
				p.park(u)
			}
			p.askUser(u)
		}
	}
	p.asked, p.inLane, p.debts = Needs{}, s.InLane, s.Debts
	p.sweepUsers()
}

func (p *Planner) loadTenant(t *tenant, s Snapshot) {
	changed := t.used != s.Tenants[t.id].Use
	t.used, t.known = s.Tenants[t.id].Use, true
	for _, m := range t.parties {
		key := TenantLane{t.id, m.code}
		use, owed := s.InLane[key], s.Debts[key]
		if changed || use != m.used || owed != m.owed {
			p.withdraw(m)
			m.used = use
			p.owe(m, owed)
			p.enter(m)
		}
	}
	p.ask(t)
}

// park tells the queue which of a user's tasks may be seen.
func (p *Planner) park(u *user) {
	p.queue.Park(u.id.Tenant, u.id.User, p.cappedKinds(u)...)
}

// cappedKinds lists the kinds of which the user may not start another task.
func (p *Planner) cappedKinds(u *user) []control.Kind {
	r := p.policy.tenants[u.id.Tenant]
	if r == nil || !r.capped {
		return nil
	}
	var kinds []control.Kind
	for _, k := range [...]control.Kind{control.KindImage, control.KindVideo} {
		if u.atCap(r, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func (u *user) atCap(r *tenantRule, k control.Kind) bool {
	switch {
	case u.Tasks >= r.UserMaxRunningTasks:
		return true
	case k == control.KindImage:
		return u.Image >= r.UserMaxRunningImage
	case k == control.KindVideo:
		return u.Video >= r.UserMaxRunningVideo
	}
	return false
}

func (u *user) add(k control.Kind, n int64) {
	u.Tasks += n
	switch k {
	case control.KindImage:
		u.Image += n
	case control.KindVideo:
		u.Video += n
	}
}

// user finds or makes the mirror of a user's counters.
func (p *Planner) user(id TenantUser) *user {
	u := p.users[id]
	if u == nil {
		u = &user{id: id}
		p.users[id] = u
		p.askUser(u)
	}
	return u
}

// userLimit is the number of mirrored users above which those who run nothing are forgotten.
const userLimit = 65_536

func (p *Planner) sweepUsers() {
	if len(p.users) <= userLimit {
		return
	}
	for _, u := range p.users {
		if u.known && u.Tasks == 0 && len(p.cappedKinds(u)) == 0 {
			p.forgetUser(u)
		}
	}
}

func (p *Planner) forgetUser(u *user) {
	p.unaskUser(u)
	delete(p.users, u.id)
}
