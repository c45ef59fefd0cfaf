package facts

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"fairlane/control"
	"fairlane/control/plan"
	"fairlane/control/schedule"
)

// The largest lists that a claim carries beside its starts, and the most that one entry repays.
const (
	maxLending     = 1_000
	maxRepaid      = 200_000
	maxRepaidMilli = 1_000_000_000_000
)

// checkLending refuses what no plan may ask for.
func checkLending(req schedule.Claim) (bad []control.FieldError) {
	wrong := func(is bool, list string, i int, field, key string) {
		if is {
			bad = append(bad, control.FieldError{Field: fmt.Sprintf("%s[%d].%s", list, i, field), Key: key})
		}
	}
	count := func(list string, n, most int) {
		if n > most {
			bad = append(bad, control.FieldError{Field: list, Key: fmt.Sprintf("must have at most %d entries", most)})
		}
	}
	count("relabels", len(req.Relabels), plan.MaxLoans)
	count("lending", len(req.Lending), maxLending)
	count("repaid", len(req.Repaid), maxRepaid)
	if len(bad) > 0 {
		return bad
	}
	for i := range req.Relabels {
		r := &req.Relabels[i]
		wrong(r.AttemptID == uuid.Nil, "relabels", i, "attempt_id", "must be named")
		wrong(r.Lane == "", "relabels", i, "lane", "must be named")
		wrong(r.Lender == "" || r.Lender == r.Lane, "relabels", i, "lender", "must be another lane")
	}
	for i := range req.Lending {
		wrong(req.Lending[i].Lane == "", "lending", i, "lane", "must be named")
	}
	for i := range req.Repaid {
		m := req.Repaid[i].Milli
		wrong(m > maxRepaidMilli || m < -maxRepaidMilli, "repaid", i, "milli", "must be at most 10^12 either way")
	}
	return bad
}

// lendingLocks names the rows that the claim changes beside those of its starts. The attempts are locked
// too: whoever prolongs leases takes them before their reservations.
func lendingLocks(l *lockSet, req schedule.Claim) {
	for i := range req.Relabels {
		r := &req.Relabels[i]
		l.accounts.add(plan.LaneGroup{Lane: r.Lane, Group: req.PoolGroup})
		l.accounts.add(plan.LaneGroup{Lane: r.Lender, Group: req.PoolGroup})
		l.attempts.add(r.AttemptID)
		l.reservations.add(r.AttemptID)
	}
	for i := range req.Lending {
		l.accounts.add(plan.LaneGroup{Lane: req.Lending[i].Lane, Group: req.PoolGroup})
	}
	for i := range req.Repaid {
		if r := &req.Repaid[i]; r.Milli != 0 {
			if l.repaid == nil {
				l.repaid = map[plan.TenantLane]int64{}
			}
			l.tenantLanes.add(r.TenantLane)
			l.repaid[r.TenantLane] += r.Milli
		}
	}
}

// lendingDecision is what a claim changes of loans.
type lendingDecision struct {
	relabelled []uuid.UUID     // reservations
	stopped    map[string]bool // lanes whose flag changes
}

func (d lendingDecision) nothing() bool { return len(d.relabelled) == 0 && len(d.stopped) == 0 }

// lending relabels what may be, then lets lanes lend again, in the rows that the starts are compared with.
func (d *claimDecision) lending(req schedule.Claim) lendingDecision {
	out := lendingDecision{stopped: map[string]bool{}}
	for i := range req.Relabels {
		out.relabelled = append(out.relabelled, d.relabel(&req.Relabels[i], req.PoolGroup)...)
	}
	d.flag(out.stopped, req, false)
	return out
}

// flag sets the flags of lanes that lend again, before the starts, or that stop to, after them: what a
// lane lent in the plan that then stopped it is lent.
func (d *claimDecision) flag(changed map[string]bool, req schedule.Claim, stopped bool) {
	for i := range req.Lending {
		if req.Lending[i].Stopped != stopped {
			continue
		}
		lane := req.Lending[i].Lane
		if a := d.held.accounts[plan.LaneGroup{Lane: lane, Group: req.PoolGroup}]; a != nil && a.stopped != stopped {
			a.stopped = stopped
			if was, ok := changed[lane]; ok && was != stopped {
				delete(changed, lane) // there and back: the row stays as it is
				continue
			}
			changed[lane] = stopped
		}
	}
}

// relabel moves all units of an attempt from its lender to its lane's own, and returns their rows; none
// when the loan is no longer what the plan saw, or the lane has too few own units.
func (d *claimDecision) relabel(loan *plan.Loan, group string) []uuid.UUID {
	at, from := plan.LaneGroup{Lane: loan.Lane, Group: group}, plan.LaneGroup{Lane: loan.Lender, Group: group}
	own, lender := d.held.accounts[at], d.held.accounts[from]
	rows := d.held.reservations[loan.AttemptID]
	if own == nil || lender == nil || len(rows) == 0 {
		return nil
	}
	var units int64
	for i := range rows {
		r := &rows[i]
		if r.account != control.AccountBorrowed || r.lane != loan.Lane || r.lender != loan.Lender || r.group != group {
			return nil
		}
		units += r.units
	}
	if units > own.reserved-own.own-own.lent {
		return nil
	}
	ids := make([]uuid.UUID, len(rows))
	for i := range rows {
		ids[i] = rows[i].id
		rows[i].account, rows[i].lender = control.AccountOwn, ""
	}
	own.own += units
	own.borrowed -= units
	lender.lent -= units
	d.ledger.account(at, control.AccountBorrowed, loan.Lender, units, -1)
	d.ledger.account(at, control.AccountOwn, "", units, 1)
	return ids
}

func (d lendingDecision) queue(b *pgx.Batch, group string) {
	if n := len(d.relabelled); n > 0 {
		b.Queue(relabelSQL, d.relabelled).Exec(mustAffect(n, "reservations relabelled"))
	}
	if n := len(d.stopped); n > 0 {
		lanes, stopped := make([]string, 0, n), make([]bool, 0, n)
		for lane, is := range d.stopped {
			lanes, stopped = append(lanes, lane), append(stopped, is)
		}
		b.Queue(stopLendingSQL, lanes, stopped, group).Exec(mustAffect(n, "lanes that stop or start to lend"))
	}
}

const (
	relabelSQL = `
		UPDATE resource_reservation SET account = 'OWN', lender_lane = NULL,
		    returned_at = CASE WHEN borrowed_at IS NOT NULL THEN clock_timestamp() END
		WHERE reservation_id = ANY($1) AND state = 'ACTIVE' AND account = 'BORROWED'`

	stopLendingSQL = `
		UPDATE lane_account a SET lending_stopped = k.stopped, lending_stopped_since = CASE WHEN k.stopped THEN clock_timestamp() END
		FROM unnest($1::text[], $2::boolean[]) k(lane, stopped)
		WHERE a.lane = k.lane AND a.pool_group = $3 AND a.lending_stopped <> k.stopped`
)
