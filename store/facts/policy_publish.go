package facts

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/control/crashpoint"
	"fairlane/policy"
)

// Publish implements policy.Store. One transaction compares the base, validates against the tenants of
// this moment, writes the version, copies what it says into the rows by which claims and admissions
// decide, and appends the audit record. Rows that would not change are left alone.
func (p *Policies) Publish(ctx context.Context, pub policy.Publication) (policy.Version, error) {
	reason, wrong := policy.CleanReason(pub.Reason)
	if err := control.Invalid(wrong); err != nil {
		return policy.Version{}, err
	}
	pub.Reason = reason
	encoded, err := policy.Encode(pub.Document)
	if err != nil {
		return policy.Version{}, control.Errorf(control.CodeInvalid, "%v", err)
	}
	// The document of the version is the one that its readers will decode, not the caller's.
	doc, err := policy.Decode(encoded)
	if err != nil {
		return policy.Version{}, err
	}
	v := policy.Version{
		Number: pub.Base + 1, Base: pub.Base, Document: doc, Digest: policy.Digest(encoded), Reason: reason,
		ActorID: pub.Actor.ID, ActorName: pub.Actor.Name, RestoredFrom: pub.RestoredFrom,
	}
	err = p.db.Tx(ctx, func(tx pgx.Tx) error { return p.publish(ctx, tx, pub, &v, encoded) })
	if err != nil {
		return policy.Version{}, away(err)
	}
	crashpoint.Hit("publish.committed")
	p.remember(v)
	return v, nil
}

func (p *Policies) publish(ctx context.Context, tx pgx.Tx, pub policy.Publication, v *policy.Version, encoded []byte) error {
	head, err := lockPolicyHead(ctx, tx)
	if err != nil {
		return err
	}
	if head != pub.Base {
		return policy.MovedError(pub.Base, head)
	}
	before := &policy.Document{}
	if head > 0 {
		base, err := p.version(ctx, tx, head)
		if err != nil {
			return err
		}
		before = base.Document
	}
	tenants, err := planList(ctx, tx)
	if err != nil {
		return err
	}
	wrong := policy.Validate(v.Document, tenants)
	queued, err := queuedInRemoved(ctx, tx, before, v.Document)
	if err != nil {
		return err
	}
	if err := control.Invalid(append(wrong, queued...)); err != nil {
		return err
	}
	if v.CreatedAt, err = insertVersion(ctx, tx, v, encoded); err != nil {
		return err
	}
	crashpoint.Hit("publish.versioned")
	if err := enforce(ctx, tx, v, before, tenants); err != nil {
		return err
	}
	crashpoint.Hit("publish.enforced")
	if _, err := appendAudit(ctx, tx, publishEvent(pub, v, before, tenants)); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `SELECT pg_notify($1, $2)`, control.NotifyPolicy, strconv.FormatInt(v.Number, 10))
	return err
}

// lockPolicyHead takes the first lock of all: publishing and onboarding go one after the other.
func lockPolicyHead(ctx context.Context, tx pgx.Tx) (version int64, err error) {
	err = tx.QueryRow(ctx, `SELECT version FROM policy_head FOR NO KEY UPDATE`).Scan(&version)
	return version, err
}

func insertVersion(ctx context.Context, tx pgx.Tx, v *policy.Version, encoded []byte) (at time.Time, err error) {
	var restored *int64
	if v.RestoredFrom > 0 {
		restored = &v.RestoredFrom
	}
	err = tx.QueryRow(ctx, `
		WITH head AS (UPDATE policy_head SET version = $1, updated_at = clock_timestamp())
		INSERT INTO policy_version (version, base_version, schema, document, digest, reason, actor_id, actor_name, restored_from)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING created_at`,
		v.Number, v.Base, v.Document.Schema, string(encoded), v.Digest[:], v.Reason, idOf(v.ActorID), v.ActorName, restored).Scan(&at)
	return at, err
}

// queuedInRemoved names lanes that the document no longer has although tasks wait in them: nobody would
// ever start those. What runs in such a lane goes on and is counted until it has ended.
func queuedInRemoved(ctx context.Context, tx pgx.Tx, before, after *policy.Document) ([]control.FieldError, error) {
	var removed []string
	for i := range before.Lanes {
		if _, kept := after.Lane(before.Lanes[i].Code); !kept {
			removed = append(removed, before.Lanes[i].Code)
		}
	}
	if len(removed) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `
		SELECT lane, sum(queued_tasks)::bigint FROM tenant_lane_runtime
		WHERE lane = ANY($1) AND queued_tasks > 0 GROUP BY lane ORDER BY lane`, removed)
	if err != nil {
		return nil, err
	}
	var lane string
	var tasks int64
	var wrong []control.FieldError
	_, err = pgx.ForEachRow(rows, []any{&lane, &tasks}, func() error {
		wrong = append(wrong, control.FieldError{Field: "lanes[" + lane + "]", Key: policy.KeyLaneInUse, Args: map[string]any{"tasks": tasks}})
		return nil
	})
	return wrong, err
}

// maxAudited bounds the fields of one publish that its record holds one by one; the version has all.
const maxAudited = 2_000

func publishEvent(pub policy.Publication, v *policy.Version, before *policy.Document, tenants []policy.Tenant) audit.Event {
	e := audit.Event{
		Actor: pub.Actor, Action: audit.PolicyPublish, ObjectKind: audit.KindPolicy, ObjectID: strconv.FormatInt(v.Number, 10),
		PolicyVersion: v.Number, Reason: v.Reason, Result: audit.OK,
		Params: map[string]any{"version": v.Number, "base": v.Base, "digest": hex.EncodeToString(v.Digest[:])},
	}
	if v.RestoredFrom > 0 {
		e.Params["restored_from"] = v.RestoredFrom
	}
	if v.Base == 0 {
		e.Params["changes"] = 0 // everything is new
		return e
	}
	changes := policy.Diff(before, v.Document, tenants)
	e.Params["changes"] = len(changes)
	was, is := map[string]any{}, map[string]any{}
	for _, c := range changes[:min(len(changes), maxAudited)] {
		was[c.Path], is[c.Path] = c.Before, c.After
		kind, id := string(c.Object), c.ID
		if lane, _, ok := strings.Cut(id, "/"); ok && c.Object == policy.ObjectLaneAccount {
			e.Touched = append(e.Touched, audit.Touch{Kind: audit.KindLane, ID: lane, Field: c.Field})
		}
		e.Touched = append(e.Touched, audit.Touch{Kind: kind, ID: id, Field: strings.TrimPrefix(c.Field, "settings.")})
	}
	e.Old, e.New = was, is
	return e
}
