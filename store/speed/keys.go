package speed

import (
	"hash/fnv"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
)

// channelPrefix begins the channel of each topic: fl:<topic>. What is published there is a hint without
// a payload: look at the facts.
const channelPrefix = "fl:"

func channel(topic string) string { return channelPrefix + topic }

// The queue index of a pool group. What waits of a lane lies in slots by tenant, each under one hash tag,
// so that a script touches one slot only; g is the pool group, h the slot's number.
//
//	q:{g}:index                     hash: epoch, state ("building", "ready"), lane:<code> for each lane
//	q:{g/lane:h}:units              hash: epoch, milli (fairness units that wait), writes
//	q:{g/lane:h}:items              hash: task -> the packed item, with the place where it stands
//	q:{g/lane:h}:t:<tenant>:<band>:<need>   zset: tasks of one line by queued_since; equal times by id
//	q:{g/lane:h}:active             zset: lines that hold tasks, by the queued_since of their first
//	q:{g/lane:h}:delayed            zset: tasks that are not eligible yet, by eligible time
//	q:{g/lane:h}:oldest             zset: the same tasks by queued_since
//	q:{g/lane:h}:needs              hash: what the hashes of needs stand for
//	q:{g/lane:h}:gone:<n>           hash: task -> version of its removal; n is the time in halves of goneLife
type slot struct {
	lane string
	h    int
}

// slotsPerLane is H: how many slots share the tenants of a lane.
const slotsPerLane = 16

// goneLife is how long, at least, a removal keeps older versions of its task away.
const goneLife = 10 * time.Minute

func slotOf(lane string, tenant uuid.UUID) slot {
	h := fnv.New32a()
	_, _ = h.Write(tenant[:])
	return slot{lane, int(h.Sum32() % slotsPerLane)}
}

func (x *QueueIndex) root(group string) string { return x.prefix + "q:{" + tag(group) + "}:index" }

// every matches all keys of a group but its root.
func (x *QueueIndex) every(group string) string { return glob(x.prefix+"q:{"+tag(group)+"/") + "*" }

func (x *QueueIndex) key(group string, s slot, name string) string {
	return x.prefix + "q:{" + tag(group) + "/" + tag(s.lane) + ":" + strconv.Itoa(s.h) + "}:" + name
}

func (x *QueueIndex) lineKey(group string, s slot, l lineName) string {
	return x.key(group, s, "t:"+l.tenant().String()+":"+strconv.Itoa(int(l.band()))+":"+l.needHex())
}

// goneKeys are the removals of this half and of the one before.
func (x *QueueIndex) goneKeys(group string, s slot) (now, before string) {
	n := x.now().Unix() / int64(goneLife/time.Second)
	return x.key(group, s, "gone:"+strconv.FormatInt(n, 10)), x.key(group, s, "gone:"+strconv.FormatInt(n-1, 10))
}

// tag keeps the signs of a code from ending a hash tag early.
func tag(code string) string { return url.PathEscape(code) }

// glob takes the meaning of a pattern from the signs of a name.
func glob(name string) string {
	out := make([]byte, 0, len(name)+8)
	for i := range len(name) {
		switch name[i] {
		case '*', '?', '[', ']', '\\', '^':
			out = append(out, '\\')
		}
		out = append(out, name[i])
	}
	return string(out)
}

// lineName names a line inside a slot: tenant, band, hash of the need.
type lineName string

func nameLine(tenant uuid.UUID, band control.Band, need needHash) lineName {
	out := make([]byte, 0, 25)
	out = append(out, tenant[:]...)
	out = append(out, byte(band))
	return lineName(append(out, need[:]...))
}

func (l lineName) whole() bool        { return len(l) == 25 }
func (l lineName) tenant() uuid.UUID  { return uuid.UUID([]byte(l[:16])) }
func (l lineName) band() control.Band { return control.Band(l[16]) }
func (l lineName) need() needHash     { return needHash([]byte(l[17:])) }
func (l lineName) needHex() string {
	n := l.need()
	return n.String()
}
