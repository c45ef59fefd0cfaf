package speed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/queue"
)

// needHash names what a task requires; the texts lie beside the items of each slot.
type needHash [8]byte

func (n needHash) String() string { return hex.EncodeToString(n[:]) }

func needOf(it *queue.Item) control.Need {
	return control.Need{Route: it.Route, Model: it.Model, Kind: it.Kind, SlotUnits: it.SlotUnits, P95: control.ClassOfP95(it.P95)}
}

func needText(n control.Need) string {
	raw, err := json.Marshal([]any{n.Route, n.Model, n.Kind, n.SlotUnits, n.P95})
	if err != nil { // strings and a number
		panic(err)
	}
	return string(raw)
}

func hashNeed(text string) needHash {
	sum := sha256.Sum256([]byte(text))
	return needHash(sum[:8])
}

// parseNeed reads a need back, and refuses a text that is not the one of that hash.
func parseNeed(hash needHash, text string) (control.Need, bool) {
	if hashNeed(text) != hash {
		return control.Need{}, false
	}
	var n control.Need
	parts := []any{&n.Route, &n.Model, &n.Kind, &n.SlotUnits, &n.P95}
	if json.Unmarshal([]byte(text), &parts) != nil || len(parts) != 5 {
		return control.Need{}, false
	}
	return n, true
}

// packed is an item as the index keeps it: 74 bytes, of which the first says where the task stands.
type packed struct {
	delayed  bool
	band     control.Band
	need     needHash
	tenant   uuid.UUID
	user     uuid.UUID
	version  int64
	since    int64 // microseconds
	eligible int64 // microseconds
	cost     uint32
	p95      uint32 // milliseconds
}

const (
	packedSize  = 74
	standsLine  = 'L'
	standsLater = 'D'
)

func pack(it *queue.Item, need needHash, delayed bool) packed {
	return packed{
		delayed: delayed, band: it.Band, need: need, tenant: it.TenantID, user: it.UserID, version: it.Version,
		since: it.QueuedSince.UnixMicro(), eligible: it.EligibleAt.UnixMicro(),
		cost: uint32(it.CostMilli), p95: uint32(it.P95.Milliseconds()), // both bounded by Item.Check
	}
}

func (p *packed) line() lineName { return nameLine(p.tenant, p.band, p.need) }

func (p *packed) text() string {
	out := make([]byte, 0, packedSize)
	if p.delayed {
		out = append(out, standsLater)
	} else {
		out = append(out, standsLine)
	}
	out = append(out, byte(p.band))
	out = append(out, p.need[:]...)
	out = append(out, p.tenant[:]...)
	out = append(out, p.user[:]...)
	for _, n := range [...]int64{p.version, p.since, p.eligible} {
		out = binary.BigEndian.AppendUint64(out, uint64(n))
	}
	out = binary.BigEndian.AppendUint32(out, p.cost)
	return string(binary.BigEndian.AppendUint32(out, p.p95))
}

func unpack(text string) (p packed, ok bool) {
	if len(text) != packedSize || text[0] != standsLine && text[0] != standsLater || text[1] > 4 {
		return packed{}, false
	}
	raw := []byte(text)
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(raw[at:])) }
	return packed{
		delayed: text[0] == standsLater, band: control.Band(raw[1]), need: needHash(raw[2:10]),
		tenant: uuid.UUID(raw[10:26]), user: uuid.UUID(raw[26:42]),
		version: number(42), since: number(50), eligible: number(58),
		cost: binary.BigEndian.Uint32(raw[66:]), p95: binary.BigEndian.Uint32(raw[70:]),
	}, true
}

// item is the packed item in the words of the port.
func (p *packed) item(id uuid.UUID, lane, group string, n control.Need) queue.Item {
	return queue.Item{
		TaskID: id, Version: p.version, TenantID: p.tenant, UserID: p.user, Lane: lane, Group: group, Band: p.band,
		Route: n.Route, Model: n.Model, Kind: n.Kind, SlotUnits: n.SlotUnits, CostMilli: int64(p.cost),
		P95: time.Duration(p.p95) * time.Millisecond, QueuedSince: time.UnixMicro(p.since).UTC(), EligibleAt: time.UnixMicro(p.eligible).UTC(),
	}
}
