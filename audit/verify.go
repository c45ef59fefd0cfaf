package audit

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"
)

// Stored is a row as the store holds it: the record, its hash, and the columns that repeat the record for search.
type Stored struct {
	Sequence int64
	Text     string
	Hash     []byte
	Columns  Columns
}

// Columns repeat fields of the record.
type Columns struct {
	AtMicro       int64 // microseconds since 1970
	ActorID       uuid.UUID
	ActorName     string
	SourceAddress string
	RequestID     string
	Action        string
	ObjectKind    string
	ObjectID      string
	PolicyVersion int64
	Reason        string
	Result        string
	Terms         []string
}

// ColumnsOf returns the columns that belong to a record's event.
func ColumnsOf(e *Event) Columns {
	return Columns{
		AtMicro: e.At.UnixMicro(), ActorID: e.Actor.ID, ActorName: e.Actor.Name, SourceAddress: e.Actor.SourceAddress,
		RequestID: e.Actor.RequestID, Action: string(e.Action), ObjectKind: e.ObjectKind, ObjectID: e.ObjectID,
		PolicyVersion: e.PolicyVersion, Reason: e.Reason, Result: string(e.Result), Terms: e.Index(),
	}
}

// Source is a chain that can be walked. Page returns the rows after a sequence in their order, at most
// limit; Head the sequence and hash that the next event would follow.
type Source interface {
	Head(ctx context.Context) (sequence int64, hash []byte, err error)
	Page(ctx context.Context, after int64, limit int) ([]Stored, error)
}

// Fault is what is wrong with the chain at its first bad sequence.
type Fault string

// The faults.
const (
	FaultNone      Fault = ""
	FaultChanged   Fault = "changed"       // the row is not what was written
	FaultMissing   Fault = "missing"       // the row is not there
	FaultReordered Fault = "reordered"     // the row stands at another's place
	FaultHead      Fault = "head_mismatch" // the rows agree with each other, the head does not
)

// Report is what a verification found.
type Report struct {
	Events   int64 // rows that agree, before the first bad one
	Fault    Fault
	FirstBad int64  // sequence; 0 when nothing is wrong
	Detail   string // English, for operators
	Height   int64  // last sequence that agrees
	Hash     string // its hash in hexadecimal
}

// OK reports whether the whole chain agrees.
func (r Report) OK() bool { return r.Fault == FaultNone }

const verifyPage = 1_000

// Verify walks the chain in pages and names the first sequence at which it is not what was written.
// Events that are appended meanwhile are walked too. The error tells of a source that could not be
// read, never of a bad chain. A chain whose end was cut together with its head agrees with itself; only
// a checkpoint kept elsewhere tells.
func Verify(ctx context.Context, source Source) (Report, error) {
	var r Report
	var prev [32]byte
	bad := func(fault Fault, at int64, format string, args ...any) (Report, error) {
		r.Fault, r.FirstBad, r.Detail = fault, at, fmt.Sprintf(format, args...)
		return r, nil
	}
	for {
		page, err := source.Page(ctx, r.Height, verifyPage)
		if err != nil {
			return r, fmt.Errorf("read audit events after %d: %w", r.Height, err)
		}
		for i := range page {
			if fault, detail := check(prev, r.Height+1, &page[i]); fault != FaultNone {
				return bad(fault, r.Height+1, "%s", detail)
			}
			prev = [32]byte(page[i].Hash)
			r.Events++
			r.Height++
			r.Hash = hex.EncodeToString(prev[:])
		}
		if len(page) > 0 {
			continue
		}
		// The head is read after the rows, so that it can be ahead of them only by rows that can be read now.
		sequence, hash, err := source.Head(ctx)
		if err != nil {
			return r, fmt.Errorf("read the audit head: %w", err)
		}
		switch {
		case sequence > r.Height:
			rest, err := source.Page(ctx, r.Height, 1)
			if err != nil {
				return r, fmt.Errorf("read audit events after %d: %w", r.Height, err)
			}
			if len(rest) == 0 {
				return bad(FaultMissing, r.Height+1, "the head stands at %d, the last event is %d", sequence, r.Height)
			}
		case sequence < r.Height:
			return bad(FaultHead, r.Height, "the head stands at %d, the last event is %d", sequence, r.Height)
		case string(hash) != string(prev[:]):
			return bad(FaultHead, max(1, r.Height), "the head's hash is not that of event %d", r.Height)
		default:
			return r, nil
		}
	}
}

// check compares one row with its place in the chain.
func check(prev [32]byte, want int64, s *Stored) (Fault, string) {
	if s.Sequence != want {
		return FaultMissing, fmt.Sprintf("event %d follows event %d", s.Sequence, want-1)
	}
	e, err := Parse(s.Text)
	if err != nil {
		return FaultChanged, err.Error()
	}
	if e.Sequence != want {
		return FaultReordered, fmt.Sprintf("the record of event %d stands here", e.Sequence)
	}
	if hash := Hash(prev, []byte(s.Text)); string(s.Hash) != string(hash[:]) {
		return FaultChanged, "the record does not agree with its hash"
	}
	return checkColumns(&e, &s.Columns)
}

func checkColumns(e *Event, got *Columns) (Fault, string) {
	want := ColumnsOf(e)
	for _, c := range []struct {
		name string
		same bool
	}{
		{"at", want.AtMicro == got.AtMicro},
		{"actor_id", want.ActorID == got.ActorID},
		{"actor_name", want.ActorName == got.ActorName},
		{"source_address", want.SourceAddress == got.SourceAddress},
		{"request_id", want.RequestID == got.RequestID},
		{"action", want.Action == got.Action},
		{"object_kind", want.ObjectKind == got.ObjectKind},
		{"object_id", want.ObjectID == got.ObjectID},
		{"policy_version", want.PolicyVersion == got.PolicyVersion},
		{"reason", want.Reason == got.Reason},
		{"result", want.Result == got.Result},
	} {
		if !c.same {
			return FaultChanged, "column " + c.name + " does not agree with the record"
		}
	}
	held := make(map[string]bool, len(got.Terms))
	for _, t := range got.Terms {
		held[t] = true
	}
	for _, t := range e.places() { // words may be cut otherwise by a later build, places may not
		if !held[t] {
			return FaultChanged, "column terms does not agree with the record"
		}
	}
	return FaultNone, ""
}
