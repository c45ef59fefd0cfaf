package speed

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"fairlane/control/queue"
)

const (
	linePage  = 5000 // lines of a slot that are read at a time
	loadCalls = 500  // first pages of lines in one round trip
)

// Open reads the heads of a group's index, for a term that begins or a Redis that has come back. ctx is
// that of the term, now the clock by which tasks are eligible. CodeNotFound: the index is not there, or
// not whole, and must be built; CodeUnavailable: Redis does not answer.
func (x *QueueIndex) Open(ctx context.Context, group string, now time.Time) (*Queue, error) {
	c, err := x.catalog(ctx, group)
	if err != nil {
		return nil, indexError(err)
	}
	if c.epoch == "" || !c.ready {
		return nil, errLost("it was not finished")
	}
	q := &Queue{
		x: x, w: x.writer(group, c, now.UnixMicro()), ctx: ctx, group: group,
		byID: map[uuid.UUID]int32{}, byBacklog: map[backlogKey]int{}, byTenant: map[uuid.UUID][]int{},
		byUser: map[userKey]int32{}, byNeed: map[needHash]int{}, routes: map[string]int{},
	}
	if err := q.open(&c); err != nil {
		return nil, indexError(err)
	}
	return q, nil
}

// waiting is a line with the time that orders it among all.
type waiting struct {
	slot  slot
	name  lineName
	since float64
}

func (q *Queue) open(c *catalog) error {
	if err := q.x.whole(q.ctx, q.group, c); err != nil {
		return err
	}
	if err := q.openSlots(c.slots()); err != nil {
		return err
	}
	var lines []waiting
	for _, s := range c.slots() {
		if q.w.slots[s].tasks == 0 {
			continue
		}
		for from := int64(0); ; from += linePage {
			page, err := q.x.client.rdb.ZRangeWithScores(q.ctx, q.x.key(q.group, s, "active"), from, from+linePage-1).Result()
			if err != nil {
				return err
			}
			for _, z := range page {
				member, _ := z.Member.(string)
				if name := lineName(member); name.whole() {
					lines = append(lines, waiting{s, name, z.Score})
				}
			}
			if len(page) < linePage {
				break
			}
		}
	}
	// Tenants join their ring in the order of their oldest task.
	slices.SortFunc(lines, func(a, b waiting) int {
		if d := cmp.Compare(a.since, b.since); d != 0 {
			return d
		}
		return cmp.Compare(a.name, b.name)
	})
	for part := range slices.Chunk(lines, loadCalls) {
		if err := q.openLines(part); err != nil {
			return err
		}
	}
	return q.err
}

// openSlots reads how many tasks each slot has, when its first delayed one comes, and its needs.
func (q *Queue) openSlots(slots []slot) error {
	pipe := q.x.client.rdb.Pipeline()
	counts, next := make([]*redis.IntCmd, len(slots)), make([]*redis.ZSliceCmd, len(slots))
	needs := make([]*redis.MapStringStringCmd, len(slots))
	for i, s := range slots {
		counts[i] = pipe.HLen(q.ctx, q.x.key(q.group, s, "items"))
		next[i] = pipe.ZRangeWithScores(q.ctx, q.x.key(q.group, s, "delayed"), 0, 0)
		needs[i] = pipe.HGetAll(q.ctx, q.x.key(q.group, s, "needs"))
	}
	if len(slots) > 0 {
		if _, err := pipe.Exec(q.ctx); err != nil {
			return err
		}
	}
	for i, s := range slots {
		now := slotNow{tasks: counts[i].Val()}
		if z := next[i].Val(); len(z) > 0 {
			now.next = int64(z[0].Score)
		}
		q.w.slots[s] = now
		for hash, text := range needs[i].Val() {
			if len(hash) != len(needHash{}) {
				continue
			}
			h := needHash([]byte(hash))
			if _, known := q.byNeed[h]; known {
				continue
			}
			if n, ok := parseNeed(h, text); ok {
				q.addNeed(h, n)
			}
		}
	}
	return nil
}

// openLines reads the first page of lines, in one round trip.
func (q *Queue) openLines(list []waiting) error {
	ctx, cancel := context.WithTimeout(q.ctx, 4*answerTime)
	defer cancel()
	lines, calls := make([]*line, 0, len(list)), make([]call, 0, len(list))
	for _, w := range list {
		p := packed{tenant: w.name.tenant(), band: w.name.band(), need: w.name.need()}
		l, ok := q.line(w.slot, &p)
		if !ok { // the tasks of a need that cannot be told are found by the rebuilder
			continue
		}
		lines, calls = append(lines, l), append(calls, q.pageCall(l, 0, q.x.sizes.first)) // how many it holds is told with them
	}
	answers, err := q.x.client.eval(ctx, calls)
	if err != nil {
		return err
	}
	for i, a := range answers {
		if err := q.takePage(lines[i], 0, a); err != nil {
			return err
		}
		q.touch(lines[i].backlog)
	}
	return nil
}

// Verify tells whether the index is still there, in every slot. It is one round trip.
func (q *Queue) Verify() error {
	if q.err != nil {
		return q.err
	}
	ctx, cancel := context.WithTimeout(q.ctx, answerTime)
	defer cancel()
	c := catalog{epoch: q.w.epoch}
	for lane := range q.w.lanes {
		c.lanes = append(c.lanes, lane)
	}
	if len(c.lanes) == 0 { // nothing has ever waited: the root alone
		root, err := q.x.catalog(ctx, q.group)
		if err == nil && root.epoch != c.epoch {
			err = errLost("its root has gone")
		}
		return q.fail(indexError(err))
	}
	if err := q.x.whole(ctx, q.group, &c); err != nil {
		return q.fail(indexError(err))
	}
	return q.fail(indexError(q.held(ctx)))
}

// held looks whether slots that should hold tasks do.
func (q *Queue) held(ctx context.Context) error {
	pipe := q.x.client.rdb.Pipeline()
	counts := map[slot]*redis.IntCmd{}
	for s, now := range q.w.slots {
		if now.tasks > 0 {
			counts[s] = pipe.HLen(ctx, q.x.key(q.group, s, "items"))
		}
	}
	if len(counts) == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for s, n := range counts {
		now := q.w.slots[s]
		if now.tasks = n.Val(); now.tasks == 0 {
			return errLost("a slot that held tasks is empty")
		}
		q.w.slots[s] = now
	}
	return nil
}

// Depth returns what waits in a lane, delayed and parked tasks included.
func (q *Queue) Depth(lane string) queue.Depth {
	if q.err != nil || !q.w.lanes[lane] {
		return queue.Depth{}
	}
	ctx, cancel := context.WithTimeout(q.ctx, answerTime)
	defer cancel()
	pipe := q.x.client.rdb.Pipeline()
	var counts [slotsPerLane]*redis.IntCmd
	var milli [slotsPerLane]*redis.StringCmd
	var first [slotsPerLane][2]*redis.ZSliceCmd
	for h := range slotsPerLane {
		s := slot{lane, h}
		counts[h] = pipe.HLen(ctx, q.x.key(q.group, s, "items"))
		milli[h] = pipe.HGet(ctx, q.x.key(q.group, s, "units"), "milli")
		first[h] = [2]*redis.ZSliceCmd{
			pipe.ZRangeWithScores(ctx, q.x.key(q.group, s, "active"), 0, 0), pipe.ZRangeWithScores(ctx, q.x.key(q.group, s, "oldest"), 0, 0),
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	var out queue.Depth
	for h := range slotsPerLane {
		if err := counts[h].Err(); err != nil {
			_ = q.fail(indexError(err))
			return queue.Depth{}
		}
		out.Tasks += counts[h].Val()
		n, _ := milli[h].Int64() // absent: nothing was ever written
		out.Milli += n
		for _, z := range first[h] {
			if list := z.Val(); len(list) > 0 {
				if at := time.UnixMicro(int64(list[0].Score)).UTC(); out.Oldest.IsZero() || at.Before(out.Oldest) {
					out.Oldest = at
				}
			}
		}
	}
	return out
}
