package live

import (
	"encoding/json"
	"time"

	"github.com/gorilla/websocket"

	"fairlane/control/monitor"
)

// Kinds of frames, as counted.
const (
	kindSnapshot = "snapshot"
	kindPatch    = "patch"
	kindResumed  = "resumed"
	kindBeat     = "beat"
)

// frame is one message, framed once for all sockets.
type frame struct {
	kind string
	size int
	msg  *websocket.PreparedMessage
}

type head struct {
	Topic monitor.Topic `json:"topic"`
	Epoch string        `json:"epoch"`
	Seq   int64         `json:"seq"`
	AsOf  int64         `json:"as_of"`
	Now   int64         `json:"now"`
}

type rowMap map[string]json.RawMessage

type snapshotBody struct {
	Order []string `json:"order"`
	Rows  rowMap   `json:"rows"`
}

type patchBody struct {
	Set   rowMap   `json:"set,omitempty"`
	Gone  []string `json:"gone,omitempty"`
	Order []string `json:"order,omitempty"`
}

type topicBeat struct {
	Seq  int64 `json:"seq"`
	AsOf int64 `json:"as_of"`
}

func headOf(s monitor.Snapshot, now time.Time) head {
	return head{Topic: s.Topic, Epoch: s.Epoch, Seq: s.Seq, AsOf: s.AsOf.UnixMilli(), Now: now.UnixMilli()}
}

func snapshotFrame(s monitor.Snapshot, now time.Time) (*frame, error) {
	body := snapshotBody{Order: make([]string, len(s.Rows)), Rows: rowsOf(s.Rows)}
	for i, r := range s.Rows {
		body.Order[i] = r.Key
	}
	return prepare(kindSnapshot, struct {
		head
		Snapshot snapshotBody `json:"snapshot"`
	}{headOf(s, now), body})
}

func patchFrame(u monitor.Update, now time.Time) (*frame, error) {
	return prepare(kindPatch, struct {
		head
		Patch patchBody `json:"patch"`
	}{headOf(u.Snapshot, now), patchBody{Set: rowsOf(u.Patch.Set), Gone: u.Patch.Gone, Order: u.Patch.Order}})
}

func resumedFrame(s monitor.Snapshot, seq int64, now time.Time) (*frame, error) {
	h := headOf(s, now)
	h.Seq = seq
	return prepare(kindResumed, struct {
		head
		Resumed bool `json:"resumed"`
	}{h, true})
}

func beatFrame(epoch string, topics map[monitor.Topic]topicBeat, now time.Time) (*frame, error) {
	type body struct {
		Epoch  string                      `json:"epoch"`
		Now    int64                       `json:"now"`
		Topics map[monitor.Topic]topicBeat `json:"topics"`
	}
	return prepare(kindBeat, struct {
		Beat body `json:"beat"`
	}{body{epoch, now.UnixMilli(), topics}})
}

func prepare(kind string, v any) (*frame, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	msg, err := websocket.NewPreparedMessage(websocket.TextMessage, text)
	if err != nil {
		return nil, err
	}
	return &frame{kind: kind, size: len(text), msg: msg}, nil
}

func rowsOf(rows []monitor.Row) rowMap {
	if len(rows) == 0 {
		return rowMap{}
	}
	out := make(rowMap, len(rows))
	for _, r := range rows {
		out[r.Key] = r.JSON
	}
	return out
}
