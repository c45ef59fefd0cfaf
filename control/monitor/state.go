package monitor

import (
	"bytes"
	"sort"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/policy"
)

// State is all that is shown, folded from one read of the facts. It is never changed after it was made.
type State struct {
	AsOf      time.Time // when capacity, lanes, pools and queues were read; zero: not yet
	TenantsAt time.Time
	HealthAt  time.Time
	Overview  Overview
	Lanes     []LaneRow // in the policy's order, lanes that are no longer in it last
	Accounts  []AccountRow
	Pools     []PoolRow
	Tenants   []TenantRow // at most MaxTenantRows, by weight and then by code
	TenantSum TenantSum
	Queue     []QueueRow
	Health    []HealthRow
	Replicas  []Replica

	Starvation []LaneStarvation
	Schedulers map[string]plan.Status // what schedulers remember, by pool group
	SampledAt  time.Time
}

// Tenant returns the live row of a tenant.
func (s *State) Tenant(id uuid.UUID) (TenantRow, bool) {
	for _, t := range s.Tenants {
		if t.ID == id {
			return t, true
		}
	}
	return TenantRow{}, false
}

// asOf is when the facts of a topic were read.
func (s *State) asOf(t Topic) time.Time {
	switch t {
	case TopicTenants:
		return s.TenantsAt
	case TopicHealth:
		return s.HealthAt
	}
	return s.AsOf
}

// foldCapacity sets everything that Source.Capacity says.
func (s *State) foldCapacity(c Capacity, doc *policy.Document, active int64, at time.Time) {
	s.AsOf = at
	o := &s.Overview
	*o = Overview{PolicyWanted: c.PolicyWanted, PolicyActive: active, PausedLanes: []string{},
		StartsPerMinute: o.StartsPerMinute, Succeeded: o.Succeeded, Failed: o.Failed, Canceled: o.Canceled, Degraded: o.Degraded}
	groups := map[string]GroupUse{}
	for _, g := range c.Groups {
		groups[g.Group] = g
		o.Capacity += g.CapacityUnits
	}
	lanes := lanesOf(doc, c)
	s.Accounts = make([]AccountRow, 0, len(c.Accounts))
	for _, a := range c.Accounts {
		g := groups[a.Group]
		s.Accounts = append(s.Accounts, AccountRow{Lane: a.Lane, Group: a.Group, Own: a.Own, Common: a.Common, Borrowed: a.Borrowed,
			Lent: a.Lent, Headroom: a.Headroom, Reserved: a.Reserved, CommonUnits: g.Common, CommonUsed: g.CommonUse, Paused: a.Paused,
			Lendable: a.Lendable, BorrowLimit: a.BorrowLimit, Stopped: a.Stopped, StoppedSince: a.StoppedSince})
		lanes.row(a.Lane).addAccount(a, g)
		o.Own, o.Common, o.Borrowed = o.Own+a.Own, o.Common+a.Common, o.Borrowed+a.Borrowed
	}
	o.Used = o.Own + o.Common + o.Borrowed
	o.Free, o.Over = max(o.Capacity-o.Used, 0), max(o.Used-o.Capacity, 0)
	for _, q := range c.Queues {
		l := lanes.row(q.Lane)
		l.QueuedTasks, l.QueuedMilli, l.Running, l.OldestAt = q.QueuedTasks, q.QueuedMilli, q.RunningTasks, q.OldestAt
		o.QueuedTasks, o.QueuedMilli, o.Running = o.QueuedTasks+q.QueuedTasks, o.QueuedMilli+q.QueuedMilli, o.Running+q.RunningTasks
		if !q.OldestAt.IsZero() && (o.OldestAt.IsZero() || q.OldestAt.Before(o.OldestAt)) {
			o.OldestAt, o.OldestLane = q.OldestAt, q.Lane
		}
	}
	s.Lanes = lanes.list()
	s.Queue = make([]QueueRow, 0, len(s.Lanes))
	for _, l := range s.Lanes {
		s.Queue = append(s.Queue, QueueRow{Lane: l.Lane, Tasks: l.QueuedTasks, Milli: l.QueuedMilli, OldestAt: l.OldestAt})
		if l.Paused {
			o.PausedLanes = append(o.PausedLanes, l.Lane)
		}
	}
	if doc != nil {
		o.AdmissionOpen, o.SchedulingRunning = doc.Switches.AdmissionOpen, doc.Switches.SchedulingRunning
	}
	s.Pools = make([]PoolRow, len(c.Pools))
	for i, p := range c.Pools {
		room := p.Capacity
		if p.Limit >= 0 {
			room = min(room, p.Limit)
		}
		p.Free, p.Over = max(room-p.Used, 0), max(p.Used-room, 0)
		p.Title = p.Key
		if p.Model != "" && p.Provider != "" {
			p.Title = p.Model + " · " + p.Provider + " " + p.Account
		}
		s.earmark(&p)
		s.Pools[i] = p
		if p.Kind != string(policy.PoolCapGroup) {
			o.Unknown, o.UnknownUnits = o.Unknown+p.Unknown, o.UnknownUnits+p.UnknownUnits
		}
	}
}

// foldFlow sets what the moves of the last minutes say.
func (s *State) foldFlow(f *flow, now time.Time) {
	s.Overview.StartsPerMinute = f.count(now, time.Minute, control.TaskDispatching)
	s.Overview.Succeeded = f.count(now, RecentWindow, control.TaskSucceeded)
	s.Overview.Failed = f.count(now, RecentWindow, control.TaskFailed)
	s.Overview.Canceled = f.count(now, RecentWindow, control.TaskCanceled)
}

// busiest sums the uses by tenant and picks the rows to show: what runs, then what waits, then the id.
func busiest(uses []TenantUse) (rows []TenantRow, withWork int64) {
	at := map[uuid.UUID]int{}
	for _, u := range uses {
		i, ok := at[u.TenantID]
		if !ok {
			i = len(rows)
			at[u.TenantID] = i
			rows = append(rows, TenantRow{ID: u.TenantID, Lane: u.HomeLane, Weight: u.Weight, Share: -1, Entitled: -1})
		}
		r := &rows[i]
		r.Running, r.RunningUnits = r.Running+u.RunningTasks, r.RunningUnits+u.RunningUnits
		r.QueuedTasks, r.QueuedMilli = r.QueuedTasks+u.QueuedTasks, r.QueuedMilli+u.QueuedMilli
	}
	working := rows[:0]
	for _, r := range rows {
		if r.Running > 0 || r.QueuedTasks > 0 {
			working = append(working, r)
		}
	}
	sort.Slice(working, func(i, j int) bool {
		a, b := working[i], working[j]
		switch {
		case a.RunningUnits != b.RunningUnits:
			return a.RunningUnits > b.RunningUnits
		case a.QueuedMilli != b.QueuedMilli:
			return a.QueuedMilli > b.QueuedMilli
		}
		return bytes.Compare(a.ID[:], b.ID[:]) < 0
	})
	return working[:min(len(working), MaxTenantRows)], int64(len(working))
}

// foldTenants sets the tenant rows, ordered so that they do not dance: weight, code.
func (s *State) foldTenants(rows []TenantRow, withWork int64, faces []TenantFace, shares map[uuid.UUID]tenantShare, window time.Duration, at time.Time) {
	known := make(map[uuid.UUID]TenantFace, len(faces))
	for _, f := range faces {
		known[f.TenantID] = f
	}
	for i := range rows {
		r := &rows[i]
		f := known[r.ID]
		r.Code, r.Name, r.OldestAt = f.Code, f.Name, f.OldestAt
		if sh, ok := shares[r.ID]; ok {
			r.ServedMilli, r.Share, r.Entitled, r.Backlogged = sh.served, sh.share, sh.entitled, sh.backlogged
		}
	}
	sort.Slice(rows, func(i, j int) bool {
		a, b := rows[i], rows[j]
		switch {
		case a.Weight != b.Weight:
			return a.Weight > b.Weight
		case a.Code != b.Code:
			return a.Code < b.Code
		}
		return bytes.Compare(a.ID[:], b.ID[:]) < 0
	})
	s.TenantsAt, s.Tenants = at, rows
	s.TenantSum = TenantSum{WithWork: withWork, Complete: withWork <= MaxTenantRows, Window: int64(window / time.Second)}
}

func idsOf(rows []TenantRow) []uuid.UUID {
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}
