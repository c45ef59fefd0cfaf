package monitor

import (
	"context"
	"time"
)

// Run reads until ctx ends. It reads at once, then after each hint, but never sooner than MinGap after
// the last read, and without hints at the floor.
func (m *Monitor) Run(ctx context.Context) error {
	for {
		last := m.cfg.Now()
		m.refresh(ctx)
		if !m.rest(ctx, last) {
			return nil
		}
	}
}

// rest waits until the next read is due; false when ctx has ended.
func (m *Monitor) rest(ctx context.Context, last time.Time) bool {
	gap := time.NewTimer(m.cfg.MinGap - min(m.cfg.Now().Sub(last), m.cfg.MinGap))
	defer gap.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-gap.C:
	}
	watched := m.looked()
	floor := m.cfg.IdleFloor
	if watched {
		floor = m.cfg.WatchedFloor
	}
	timer := time.NewTimer(max(floor-m.cfg.Now().Sub(last), 0))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-m.must:
			return true
		case <-m.wake:
			// A hint that nobody waits for is left to the floor. A page or socket that comes
			// later sends one itself.
			if m.looked() {
				return true
			}
		}
	}
}

// refresh reads what is due and publishes it. A part that cannot be read keeps its old rows and, what
// matters, its old time.
func (m *Monitor) refresh(ctx context.Context) {
	read, cancel := context.WithTimeout(ctx, m.cfg.ReadTimeout)
	defer cancel()
	next := *m.state.Load()
	err := m.read(read, &next)
	if ctx.Err() != nil {
		return
	}
	m.reports.set(DegradedPostgres, err != nil, m.cfg.Now())
	m.reports.store("postgresql", err == nil)
	if err != nil && !m.failing {
		m.cfg.Log.Warn("views cannot be refreshed", "error", err)
	} else if err == nil && m.failing {
		m.cfg.Log.Info("views are refreshed again")
	}
	m.failing = err != nil
	m.reports.set(DegradedPolicy, next.Overview.PolicyActive < next.Overview.PolicyWanted, m.cfg.Now())
	next.Overview.Degraded = m.reports.modes()
	m.publishing.Lock()
	defer m.publishing.Unlock()
	m.state.Store(&next)
	for _, t := range Topics {
		if m.boards[t].watched() {
			m.render(&next, t)
		}
	}
}

// clockMargin covers what the database's clock may be off from this process's.
const clockMargin = 10 * time.Second

func (m *Monitor) read(ctx context.Context, next *State) error {
	at := m.cfg.Now()
	capacity, err := m.source.Capacity(ctx)
	if err != nil {
		return err
	}
	doc, active := m.active()
	next.foldCapacity(capacity, doc, active, at)
	if err := m.readTenants(ctx, next); err != nil {
		return err
	}
	if now := m.cfg.Now(); now.Sub(m.flowAt) >= m.cfg.TenantGap {
		since := m.flow.since(now)
		counts, err := m.source.Flow(ctx, since)
		if err != nil {
			return err
		}
		m.flow.put(now, since, counts)
		m.flow.settle(now, m.cfg.Moved)
		m.flowAt = now
	}
	next.foldFlow(m.flow, m.cfg.Now())
	if now := m.cfg.Now(); now.Sub(m.machineAt) >= m.cfg.MachineGap {
		machine, err := m.source.Machine(ctx)
		if err != nil {
			return err
		}
		m.machineAt = now
		next.foldMachine(machine, m.reports.rows(), next.Overview.PolicyWanted, now)
	}
	return m.readDetails(ctx, next)
}

// readTenants closes an interval of the share ring when it is due; the rows are read when somebody
// looks, and with each interval.
func (m *Monitor) readTenants(ctx context.Context, next *State) error {
	now := m.cfg.Now()
	interval := m.ring.due(now)
	if !interval && (!m.looked() || now.Sub(m.tenantsAt) < m.cfg.TenantGap) {
		return nil
	}
	var since time.Time // the first read takes everybody: it sets the base of all totals
	if !m.ring.lastAt.IsZero() {
		since = now.Add(-m.cfg.ShareWindow - clockMargin)
	}
	uses, err := m.source.Demand(ctx, since)
	if err != nil {
		return err
	}
	if interval {
		m.ring.add(now, uses)
	}
	rows, withWork := busiest(uses)
	faces, err := m.source.Identify(ctx, idsOf(rows))
	if err != nil {
		return err
	}
	m.tenantsAt, m.shares = now, m.ring.shares(uses)
	next.foldTenants(rows, withWork, faces, m.shares, m.cfg.ShareWindow, now)
	return nil
}

// render publishes a topic of the state; the caller holds publishing.
func (m *Monitor) render(s *State, t Topic) {
	at := s.asOf(t)
	if at.IsZero() {
		return
	}
	rows, err := s.rows(t)
	if err != nil {
		m.cfg.Log.Error("topic cannot be rendered", "topic", string(t), "error", err)
		return
	}
	m.boards[t].put(rows, at)
}
