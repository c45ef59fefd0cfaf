package speed

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"fairlane/control/queue"
)

// spot is a task in a slot, with what the index holds of it.
type spot struct {
	slot   slot
	id     uuid.UUID
	tenant uuid.UUID
	seen   seen
	item   packed
	held   bool // item could be read
}

// Entries returns what the index holds of tasks, in their order. Lane and tenant say where to look.
func (x *QueueIndex) Entries(ctx context.Context, group string, tasks []queue.Gone) ([]queue.Entry, error) {
	spots := make([]spot, len(tasks))
	for i, t := range tasks {
		spots[i] = spot{slot: slotOf(t.Lane, t.TenantID), id: t.TaskID, tenant: t.TenantID}
	}
	if err := x.see(ctx, group, spots); err != nil {
		return nil, indexError(err)
	}
	out, err := x.entries(ctx, group, spots)
	return out, indexError(err)
}

// Scan returns about limit tasks of the index from a cursor on, and the next cursor. A task that is
// written meanwhile may come twice, or not at all.
func (x *QueueIndex) Scan(ctx context.Context, group string, at queue.Cursor, limit int) ([]queue.Entry, queue.Cursor, error) {
	c, err := x.catalog(ctx, group)
	if err != nil {
		return nil, at, indexError(err)
	}
	slots := c.slots()
	if at.Slot >= len(slots) {
		return nil, queue.Cursor{Done: true}, nil
	}
	s := slots[at.Slot]
	if at.At == 0 {
		writes, err := x.client.rdb.HGet(ctx, x.key(group, s, "units"), "writes").Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, at, indexError(err)
		}
		at.Writes, at.Tasks, at.Milli = writes, 0, 0
	}
	pairs, next, err := x.client.rdb.HScan(ctx, x.key(group, s, "items"), at.At, "", int64(limit)).Result()
	if err != nil {
		return nil, at, indexError(err)
	}
	var spots []spot
	for i := 0; i+1 < len(pairs); i += 2 {
		if len(pairs[i]) != 16 || pairs[i+1] == "" { // no task has such a name, or is nothing
			if err := x.client.rdb.HDel(ctx, x.key(group, s, "items"), pairs[i]).Err(); err != nil {
				return nil, at, indexError(err)
			}
			continue
		}
		spots = append(spots, spot{slot: s, id: uuid.UUID([]byte(pairs[i]))})
	}
	if err := x.see(ctx, group, spots); err != nil {
		return nil, at, indexError(err)
	}
	for i := range spots {
		at.Tasks++
		at.Milli += int64(spots[i].item.cost)
		spots[i].tenant = spots[i].item.tenant
	}
	out, err := x.entries(ctx, group, spots)
	if err != nil {
		return nil, at, indexError(err)
	}
	if at.At = next; next != 0 {
		return out, at, nil
	}
	if err := x.recount(ctx, group, c.epoch, s, at); err != nil {
		return nil, at, indexError(err)
	}
	return out, queue.Cursor{Slot: at.Slot + 1, Done: at.Slot+1 == len(slots)}, nil
}

// recount corrects the sum of what waits in a slot that was walked while nobody wrote it.
func (x *QueueIndex) recount(ctx context.Context, group, epoch string, s slot, at queue.Cursor) error {
	n, err := x.client.rdb.HLen(ctx, x.key(group, s, "items")).Result()
	if err != nil || n != at.Tasks { // some came twice
		return err
	}
	answers, err := x.client.eval(ctx, []call{{recountScript, []string{x.key(group, s, "units")},
		[]any{epoch, strconv.FormatInt(at.Writes, 10), strconv.FormatInt(at.Milli, 10)}}})
	if err != nil {
		return err
	}
	return answers[0].Err()
}

// see reads what the index holds of tasks.
func (x *QueueIndex) see(ctx context.Context, group string, spots []spot) error {
	bySlot := map[slot][]int{}
	for i, p := range spots {
		bySlot[p.slot] = append(bySlot[p.slot], i)
	}
	type answer struct {
		at                 []int
		item, gone, before *redis.SliceCmd
	}
	pipe := x.client.rdb.Pipeline()
	answers := make([]answer, 0, len(bySlot))
	for s, at := range bySlot {
		ids := make([]string, len(at))
		for j, i := range at {
			ids[j] = string(spots[i].id[:])
		}
		gone, before := x.goneKeys(group, s)
		answers = append(answers, answer{at, pipe.HMGet(ctx, x.key(group, s, "items"), ids...), pipe.HMGet(ctx, gone, ids...), pipe.HMGet(ctx, before, ids...)})
	}
	if len(answers) == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for _, a := range answers {
		for j, i := range a.at {
			p := &spots[i]
			p.seen = newSeen(a.item.Val()[j], a.gone.Val()[j], a.before.Val()[j])
			p.item, p.held = unpack(p.seen.item)
		}
	}
	return nil
}

// entries looks whether tasks stand where their items say, and puts all in the words of the port. A line
// whose key is of another type is deleted: its tasks are then not in their place.
func (x *QueueIndex) entries(ctx context.Context, group string, spots []spot) ([]queue.Entry, error) {
	pipe := x.client.rdb.Pipeline()
	scores, needs := make([]*redis.FloatCmd, len(spots)), map[slot]*redis.MapStringStringCmd{}
	for i, p := range spots {
		if !p.held {
			continue
		}
		key := x.lineKey(group, p.slot, p.item.line())
		if p.item.delayed {
			key = x.key(group, p.slot, "delayed")
		}
		scores[i] = pipe.ZScore(ctx, key, string(p.id[:]))
		if needs[p.slot] == nil {
			needs[p.slot] = pipe.HGetAll(ctx, x.key(group, p.slot, "needs"))
		}
	}
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx) // each command has its error
	}
	out := make([]queue.Entry, len(spots))
	for i, p := range spots {
		e := queue.Entry{TaskID: p.id, Lane: p.slot.lane, TenantID: p.tenant, Place: p.slot.h, Held: p.seen.item != "", Gone: p.seen.goneUpTo(), Mark: p.seen.mark()}
		if p.held {
			var err error
			if e.Whole, err = x.stands(ctx, group, &p, scores[i]); err != nil {
				return nil, err
			}
			n, ok := parseNeed(p.item.need, needs[p.slot].Val()[string(p.item.need[:])])
			e.Whole = e.Whole && ok
			e.Item = p.item.item(p.id, p.slot.lane, group, n)
		}
		out[i] = e
	}
	return out, nil
}

func (x *QueueIndex) stands(ctx context.Context, group string, p *spot, score *redis.FloatCmd) (bool, error) {
	at, err := score.Result()
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE") && !p.item.delayed:
		return false, x.client.rdb.Unlink(ctx, x.lineKey(group, p.slot, p.item.line())).Err()
	case errors.Is(err, redis.Nil):
		return false, nil
	case err != nil:
		return false, err
	case p.item.delayed:
		return int64(at) == p.item.eligible, nil
	}
	return int64(at) == p.item.since, nil
}

// Write brings tasks that wait and tasks that have gone to the index, for whoever reads them elsewhere:
// the indexer while Redis is being filled.
func (x *QueueIndex) Write(ctx context.Context, group string, waits []queue.Item, gone []queue.Gone) error {
	changes := make([]change, 0, len(waits)+len(gone))
	for i := range waits {
		changes = append(changes, change{id: waits[i].TaskID, slot: slotOf(waits[i].Lane, waits[i].TenantID), item: &waits[i]})
	}
	for _, g := range gone {
		changes = append(changes, change{id: g.TaskID, slot: slotOf(g.Lane, g.TenantID), version: g.Version})
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime+time.Duration(len(changes))*time.Millisecond)
	defer cancel()
	_, err := x.write(ctx, group, changes)
	return err
}

// Repair sets what differs, each only if it is still as its entry has shown, and returns how many were.
func (x *QueueIndex) Repair(ctx context.Context, group string, repairs []queue.Repair) (int, error) {
	changes := repairChanges(repairs)
	effects, err := x.write(ctx, group, changes)
	done := map[uuid.UUID]bool{}
	for i, e := range effects {
		if e.wrote {
			done[changes[i].id] = true
		}
	}
	return len(done), err
}

func repairChanges(repairs []queue.Repair) []change {
	var changes []change
	for _, r := range repairs {
		seen := slot{r.Lane, r.Place}
		if r.Held && (r.Present == nil || seen != slotOf(r.Present.Lane, r.Present.TenantID)) {
			changes = append(changes, change{id: r.TaskID, slot: seen, force: true, expect: r.Mark})
		}
		if r.Present == nil {
			continue
		}
		c := change{id: r.TaskID, slot: slotOf(r.Present.Lane, r.Present.TenantID), item: r.Present}
		if seen == c.slot {
			c.force, c.expect = true, r.Mark
		}
		changes = append(changes, c)
	}
	return changes
}

// eligibleMargin keeps tasks that are about to become eligible among the delayed, where the clock of
// whoever writes is not the one of whoever reads.
const eligibleMargin = 2_000_000 // microseconds

func (x *QueueIndex) write(ctx context.Context, group string, changes []change) ([]effect, error) {
	c, err := x.catalog(ctx, group)
	if err != nil {
		return nil, indexError(err)
	}
	if c.epoch == "" {
		return nil, errLost("it was not begun")
	}
	return x.writer(group, c, x.now().UnixMicro()-eligibleMargin).write(ctx, changes)
}

// Examine returns what the index holds of tasks that a claim has refused, and of those that the queue
// itself has found out of place since the last call.
func (q *Queue) Examine(tasks []uuid.UUID) ([]queue.Entry, error) {
	tasks = append(tasks, q.suspects...)
	q.suspects = nil
	if len(tasks) == 0 || q.err != nil {
		return nil, q.err
	}
	var ask []queue.Gone
	var out []queue.Entry
	for _, id := range tasks {
		if ref, ok := q.byID[id]; ok {
			key := q.backlogs[q.tasks[ref].line.backlog].key
			ask = append(ask, queue.Gone{TaskID: id, Lane: key.lane, TenantID: key.tenant})
			continue
		}
		s, p, err := q.locate(id)
		switch {
		case q.err != nil:
			return nil, q.err
		case err != nil:
			out = append(out, queue.Entry{TaskID: id, Gone: -1})
		default:
			ask = append(ask, queue.Gone{TaskID: id, Lane: s.lane, TenantID: p.tenant})
		}
	}
	ctx, cancel := context.WithTimeout(q.ctx, 2*answerTime)
	defer cancel()
	found, err := q.x.Entries(ctx, q.group, ask)
	return append(out, found...), q.fail(err)
}

// Repair sets what differs, in the index and in the heads.
func (q *Queue) Repair(repairs []queue.Repair) error {
	if q.err != nil {
		return q.err
	}
	return q.write(repairChanges(repairs))
}
