package facts

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/store/facts/sqlc"
)

const maxAuditPage = 1_000

// Get returns one event; CodeNotFound when there is none of that sequence.
func (a *Audits) Get(ctx context.Context, sequence int64) (audit.Row, error) {
	r, err := sqlc.New(a.db.pool).AuditRecord(ctx, sequence)
	if errors.Is(err, pgx.ErrNoRows) {
		return audit.Row{}, control.Errorf(control.CodeNotFound, "no audit event %d", sequence)
	}
	if err != nil {
		return audit.Row{}, away(err)
	}
	return parsedRow(r.Record, r.Hash)
}

// List returns the events that the filter wants, newest first: those before the sequence before (0: from
// the newest), at most limit. The sequence of the last one is where the next page begins; it is
// unique, so that events of one instant are neither skipped nor doubled.
func (a *Audits) List(ctx context.Context, f audit.Filter, before int64, limit int) ([]audit.Row, error) {
	var q auditQuery
	if before > 0 {
		q.and("sequence < ?", before)
	}
	some, err := a.during(ctx, f, &q)
	if err != nil || !some {
		return nil, away(err)
	}
	q.equal("actor_name", f.Actor)
	q.equal("action", string(f.Action))
	q.equal("result", string(f.Result))
	q.equal("request_id", f.RequestID)
	if places := f.Places(); len(places) > 0 {
		q.and("terms && ?", places)
	} else {
		q.equal("object_kind", f.ObjectKind)
	}
	if terms := f.Terms(); len(terms) > 0 {
		q.and("terms @> ?", terms)
	} else if f.Text != "" {
		return nil, nil // asked for marks alone, which nothing is found by
	}
	if f.Version > 0 {
		q.and("policy_version = ?", f.Version)
	}
	sql := `SELECT record, hash FROM audit_event` + q.where() + ` ORDER BY sequence DESC LIMIT ` + strconv.Itoa(min(max(limit, 1), maxAuditPage))
	rows, err := a.db.pool.Query(ctx, sql, q.args...)
	if err != nil {
		return nil, away(err)
	}
	var record string
	var hash []byte
	var out []audit.Row
	_, err = pgx.ForEachRow(rows, []any{&record, &hash}, func() error {
		row, err := parsedRow(record, hash)
		out = append(out, row)
		return err
	})
	return out, away(err)
}

// during turns times into sequences, which they rise with: then every other filter reads its rows in
// the order of its own index. False when nothing happened in that time.
func (a *Audits) during(ctx context.Context, f audit.Filter, q *auditQuery) (bool, error) {
	for _, end := range []struct {
		at        time.Time
		sql, cond string
	}{
		{f.From, `SELECT sequence FROM audit_event WHERE at >= $1 ORDER BY at, sequence LIMIT 1`, "sequence >= ?"},
		{f.To, `SELECT sequence FROM audit_event WHERE at < $1 ORDER BY at DESC, sequence DESC LIMIT 1`, "sequence <= ?"},
	} {
		if end.at.IsZero() {
			continue
		}
		var sequence int64
		err := a.db.pool.QueryRow(ctx, end.sql, end.at).Scan(&sequence)
		if errors.Is(err, pgx.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		q.and(end.cond, sequence)
	}
	return true, nil
}

// auditQuery collects conditions of one statement; values go as arguments only.
type auditQuery struct {
	conds []string
	args  []any
}

func (q *auditQuery) and(cond string, arg any) {
	q.args = append(q.args, arg)
	q.conds = append(q.conds, strings.Replace(cond, "?", "$"+strconv.Itoa(len(q.args)), 1))
}

func (q *auditQuery) equal(column, value string) {
	if value != "" {
		q.and(column+" = ?", value)
	}
}

func (q *auditQuery) where() string {
	if len(q.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(q.conds, " AND ")
}

func parsedRow(record string, hash []byte) (audit.Row, error) {
	row := audit.Row{Record: record}
	copy(row.Hash[:], hash)
	var err error
	row.Event, err = audit.Parse(record)
	return row, err
}
