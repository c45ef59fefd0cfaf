package plan

import (
	"slices"
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
const askLimit = 4096

// userLimit is the number of mirrored users above which those who run nothing are forgotten.
const userLimit = 65_536

// Needs follows the queue and names the tenants and users whose counters the next Cycle needs.
func (p *Planner) Needs(now time.Time) Needs {
	p.advance(now)
	p.asked = Needs{}
	if len(p.users) > userLimit {
		for id, u := range p.users {
			if u.known && u.Tasks == 0 {
				delete(p.users, id)
			}
		}
	}
	for _, t := range p.tenants {
		if len(p.asked.Tenants) < askLimit && t.waits() {
			p.asked.Tenants = append(p.asked.Tenants, t.id)
		}
	}
	for id, u := range p.users {
		if len(p.asked.Users) < askLimit && (!u.known || u.Tasks > 0) {
			p.asked.Users = append(p.asked.Users, id)
		}
	}
	return p.asked
}

func (t *tenant) waits() bool {
	return slices.ContainsFunc(t.parties, func(m *party) bool { return m.backlog >= 0 })
}

// load takes the snapshot's counters over. What was asked for and is not there is zero.
func (p *Planner) load(s Snapshot) {
	p.common = s.Common[p.group]
	for _, l := range p.order {
		l.use = s.Lanes[LaneGroup{l.rule.code, p.group}]
	}
	for key, o := range p.pools {
		use, ok := s.Pools[key]
		if !ok {
			use.Limit = -1
		}
		o.used, o.limit = use.Used, use.Limit
	}
	for _, id := range p.asked.Tenants {
		if t := p.tenants[id]; t != nil {
			t.used, t.known = s.Tenants[id].Use, true
			for _, m := range t.parties {
				m.used = s.InLane[TenantLane{id, m.code}]
			}
		}
	}
	for _, id := range p.asked.Users {
		if u := p.users[id]; u != nil {
			u.UserUse, u.known = s.Users[id], true
			p.park(id, u)
		}
	}
	p.asked = Needs{}
}

// park tells the queue which of a user's tasks may be seen.
func (p *Planner) park(id TenantUser, u *user) {
	p.queue.Park(id.Tenant, id.User, p.capped(p.tenants[id.Tenant], u)...)
}

// capped lists the kinds of which the user may not start another task.
func (p *Planner) capped(t *tenant, u *user) []control.Kind {
	if t == nil || t.rule == nil {
		return nil
	}
	var kinds []control.Kind
	for _, k := range [...]control.Kind{control.KindImage, control.KindVideo} {
		if u.full(t.rule, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func (u *user) full(r *tenantRule, k control.Kind) bool {
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
		u = &user{}
		p.users[id] = u
	}
	return u
}
