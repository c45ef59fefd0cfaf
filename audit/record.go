package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// MaxRecord bounds the text of one event in bytes; old and new values that would pass it are kept as
// their SHA-256 only.
const MaxRecord = 1 << 20

const recordTime = "2006-01-02T15:04:05.000000Z"

// Record is an event as it is kept: the event as cleaned, its text, and its hash.
type Record struct {
	Event Event
	Text  string // canonical JSON: compact, keys sorted, no escapes for HTML
	Hash  [32]byte
}

// Seal turns an event, numbered and dated, into its record after the one with the hash prev. What is
// kept holds no secret, whatever the caller put into it.
func Seal(prev [32]byte, e Event) (Record, error) {
	if err := e.Check(); err != nil {
		return Record{}, err
	}
	if e.Sequence < 1 {
		return Record{}, fmt.Errorf("audit event %s has no sequence", e.Action)
	}
	e = e.clean()
	values := [3]any{}
	for i, v := range []any{e.Params, e.Old, e.New} {
		plain, err := tree(v)
		if err != nil {
			return Record{}, fmt.Errorf("audit event %s: %w", e.Action, err)
		}
		values[i] = redact(plain)
	}
	text, err := e.text(values)
	if err != nil {
		return Record{}, err
	}
	if len(text) > MaxRecord {
		if values[1], err = digestOf(values[1]); err != nil {
			return Record{}, err
		}
		if values[2], err = digestOf(values[2]); err != nil {
			return Record{}, err
		}
		if text, err = e.text(values); err != nil {
			return Record{}, err
		}
	}
	e.Params, _ = values[0].(map[string]any)
	e.Old, e.New = values[1], values[2]
	return Record{Event: e, Text: text, Hash: Hash(prev, []byte(text))}, nil
}

// Hash is the link of the chain: SHA-256 of the hash before and the record's bytes. The first event
// follows 32 zero bytes.
func Hash(prev [32]byte, record []byte) [32]byte {
	h := sha256.New()
	h.Write(prev[:])
	h.Write(record)
	return [32]byte(h.Sum(nil))
}

// form is the record's JSON. Every key is always there. encoding/json sorts keys of maps, so that a
// map is the simplest canonical form.
func (e *Event) text(values [3]any) (string, error) {
	var version, actor any
	if e.PolicyVersion > 0 {
		version = e.PolicyVersion
	}
	if e.Actor.ID != uuid.Nil {
		actor = e.Actor.ID.String()
	}
	if values[0] == nil {
		values[0] = map[string]any{}
	}
	return canonical(map[string]any{
		"v": 1, "sequence": e.Sequence, "at": e.At.Format(recordTime),
		"actor":          map[string]any{"id": actor, "name": e.Actor.Name},
		"source_address": e.Actor.SourceAddress, "request_id": e.Actor.RequestID,
		"action": string(e.Action), "params": values[0],
		"object": map[string]any{"kind": e.ObjectKind, "id": e.ObjectID}, "touched": e.Touched,
		"policy_version": version, "old": values[1], "new": values[2],
		"reason": e.Reason, "result": string(e.Result), "approvers": e.Approvers,
	})
}

// Parse reads a record's text back. Params, Old and New hold json.Number for numbers.
func Parse(text string) (Event, error) {
	var r struct {
		V        int
		Sequence int64
		At       time.Time
		Actor    struct {
			ID   *uuid.UUID
			Name string
		}
		SourceAddress string `json:"source_address"`
		RequestID     string `json:"request_id"`
		Action        Action
		Params        map[string]any
		Object        struct{ Kind, ID string }
		Touched       []Touch
		PolicyVersion *int64 `json:"policy_version"`
		Old, New      any
		Reason        string
		Result        Result
		Approvers     []string
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	if err := dec.Decode(&r); err != nil {
		return Event{}, fmt.Errorf("audit record: %w", err)
	}
	if r.V != 1 {
		return Event{}, fmt.Errorf("audit record of form %d, this build reads form 1", r.V)
	}
	e := Event{
		Sequence: r.Sequence, At: r.At.UTC(), Action: r.Action, Params: r.Params, ObjectKind: r.Object.Kind, ObjectID: r.Object.ID,
		Touched: r.Touched, Old: r.Old, New: r.New, Reason: r.Reason, Result: r.Result, Approvers: r.Approvers,
		Actor: control.Actor{Name: r.Actor.Name, SourceAddress: r.SourceAddress, RequestID: r.RequestID},
	}
	if r.Actor.ID != nil {
		e.Actor.ID = *r.Actor.ID
	}
	if r.PolicyVersion != nil {
		e.PolicyVersion = *r.PolicyVersion
	}
	return e, nil
}

func canonical(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("audit record: %w", err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// tree turns a value into maps, lists, strings, numbers as they were written, and booleans.
func tree(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var out any
	err = dec.Decode(&out)
	return out, err
}

func digestOf(v any) (any, error) {
	if v == nil {
		return nil, nil //nolint:nilnil // nothing stays nothing
	}
	text, err := canonical(v)
	sum := sha256.Sum256([]byte(text))
	return map[string]any{"sha256": hex.EncodeToString(sum[:]), "bytes": len(text)}, err
}
