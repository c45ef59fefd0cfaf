package speed

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"fairlane/control"
	"fairlane/control/queue"
)

// maxOps is the number of tasks that one script writes.
const maxOps = 200

// tries is how often a write begins again when others write the same tasks at once.
const tries = 6

// change is one task to be written in its slot.
type change struct {
	id      uuid.UUID
	slot    slot
	item    *queue.Item // what waits; nil: nothing does
	version int64       // of the removal, when nothing waits
	promote bool        // a delayed task has become eligible: it moves, nothing else
	force   bool        // PostgreSQL was read after what stands in expect: versions do not count
	expect  string      // with force: the mark on which it was decided
}

// effect is what became of a change.
type effect struct {
	seen  packed // what stood there before
	held  bool   // something whole stood there
	wrote bool   // it was written, or stood there already
	now   packed // what stands there now, when item waits
	stays bool   // now is set
}

// slotNow is what a script says of its slot.
type slotNow struct {
	tasks int64
	next  int64 // microseconds; 0: nothing is delayed
}

// writer writes one group's index under the epoch that it knows.
type writer struct {
	x     *QueueIndex
	group string
	epoch string
	lanes map[string]bool
	slots map[slot]slotNow
	now   int64 // microseconds: tasks eligible by then stand in their line
}

func (x *QueueIndex) writer(group string, c catalog, now int64) *writer {
	w := &writer{x: x, group: group, epoch: c.epoch, lanes: map[string]bool{}, slots: map[slot]slotNow{}, now: now}
	for _, lane := range c.lanes {
		w.lanes[lane] = true
	}
	return w
}

// write brings the changes to the index, those of one task in their order, and tells what became of each.
func (w *writer) write(ctx context.Context, changes []change) ([]effect, error) {
	effects := make([]effect, len(changes))
	open := make([]int, len(changes))
	for i := range changes {
		open[i] = i
		if lane := changes[i].slot.lane; !w.lanes[lane] {
			if err := w.x.addLane(ctx, w.group, w.epoch, lane); err != nil {
				return nil, indexError(err)
			}
			w.lanes[lane] = true
		}
	}
	for range tries {
		if len(open) == 0 {
			return effects, nil
		}
		var err error
		if open, err = w.round(ctx, changes, effects, open); err != nil {
			return nil, indexError(err)
		}
	}
	if len(open) > 0 {
		return nil, control.Errorf(control.CodeUnavailable, "%d tasks of the queue index are written by others again and again", len(open))
	}
	return effects, nil
}

// round writes at most maxOps tasks of each slot, no task twice, and returns what is still open.
func (w *writer) round(ctx context.Context, changes []change, effects []effect, open []int) (left []int, err error) {
	batches := map[slot]*batch{}
	var order []*batch
	twice := map[uuid.UUID]bool{}
	for _, i := range open {
		c := &changes[i]
		b := batches[c.slot]
		if b == nil {
			b = &batch{w: w, slot: c.slot}
			b.gone, b.goneBefore = w.x.goneKeys(w.group, c.slot)
			batches[c.slot] = b
			order = append(order, b)
		}
		if len(b.at) == maxOps || twice[c.id] {
			left = append(left, i)
			continue
		}
		twice[c.id] = true
		b.at = append(b.at, i)
	}
	if err := w.see(ctx, changes, order); err != nil {
		return nil, err
	}
	var calls []call
	var sent []*batch
	for _, b := range order {
		b.decide(changes, effects)
		if len(b.ops) > 0 {
			calls, sent = append(calls, b.call()), append(sent, b)
		}
	}
	answers, err := w.x.client.eval(ctx, calls)
	if err != nil {
		return nil, err
	}
	for k, a := range answers {
		again, err := sent[k].take(a, effects)
		if err != nil {
			return nil, err
		}
		left = append(left, again...)
	}
	slices.Sort(left)
	return left, nil
}

// see reads what the index holds of the tasks of each batch.
func (w *writer) see(ctx context.Context, changes []change, batches []*batch) error {
	pipe := w.x.client.rdb.Pipeline()
	answers := make([][3]*redis.SliceCmd, len(batches))
	for k, b := range batches {
		ids := make([]string, len(b.at))
		for j, i := range b.at {
			ids[j] = string(changes[i].id[:])
		}
		answers[k] = [3]*redis.SliceCmd{
			pipe.HMGet(ctx, w.x.key(w.group, b.slot, "items"), ids...), pipe.HMGet(ctx, b.gone, ids...), pipe.HMGet(ctx, b.goneBefore, ids...),
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for k, b := range batches {
		b.seen = make([]seen, len(b.at))
		for j := range b.at {
			b.seen[j] = newSeen(answers[k][0].Val()[j], answers[k][1].Val()[j], answers[k][2].Val()[j])
		}
	}
	return nil
}

// seen is what the index held of one task, as it stood there.
type seen struct{ item, gone string }

func newSeen(item, gone, before any) seen {
	text := func(v any) string { s, _ := v.(string); return s }
	s := seen{text(item), text(gone)}
	if s.gone == "" {
		s.gone = text(before)
	}
	return s
}

func (s seen) mark() string { return s.gone + "/" + s.item }

// goneUpTo is the version up to which the task was removed; -1: it was not.
func (s seen) goneUpTo() int64 {
	n, err := strconv.ParseInt(s.gone, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// batch is what one script writes in one slot.
type batch struct {
	w                *writer
	slot             slot
	gone, goneBefore string
	at               []int // numbers of the changes
	seen             []seen
	ops              []op
	lines            []lineName
	needs            map[needHash]string
}

type op struct {
	change        int
	id            uuid.UUID
	seen          seen
	item, removal string
	from, to      int
	since, until  int64
	milli         int64
}

func (b *batch) decide(changes []change, effects []effect) {
	for j, i := range b.at {
		c, s := &changes[i], b.seen[j]
		e := &effects[i]
		*e = effect{wrote: true}
		e.seen, e.held = unpack(s.item)
		o := op{change: i, id: c.id, seen: s, item: s.item}
		if e.held {
			o.from = b.place(&e.seen)
			o.milli = -int64(e.seen.cost)
		}
		if b.fill(c, s, e, &o) {
			b.ops = append(b.ops, o)
		}
	}
}

// fill says what a change writes; false when nothing is to be written.
func (b *batch) fill(c *change, s seen, e *effect, o *op) bool {
	switch {
	case c.promote:
		if !e.held || !e.seen.delayed || e.seen.eligible > b.w.now {
			e.now, e.stays = e.seen, e.held
			return false
		}
		e.now, e.stays = e.seen, true
		e.now.delayed = false
	case c.item != nil:
		if c.force && s.mark() != c.expect {
			e.wrote = false
			return false
		}
		if !c.force && (s.goneUpTo() >= c.item.Version || e.held && e.seen.version >= c.item.Version) {
			e.now, e.stays = e.seen, e.held
			return false
		}
		text := needText(needOf(c.item))
		hash := hashNeed(text)
		if b.needs == nil {
			b.needs = map[needHash]string{}
		}
		b.needs[hash] = text
		e.now, e.stays = pack(c.item, hash, c.item.EligibleAt.UnixMicro() > b.w.now), true
		if s.gone != "" && s.goneUpTo() >= c.item.Version {
			o.removal = "-"
		}
	case c.force:
		if e.wrote = s.mark() == c.expect; !e.wrote || s.item == "" {
			return false
		}
		o.item = ""
		return true
	default:
		if c.version > s.goneUpTo() {
			o.removal = strconv.FormatInt(c.version, 10)
		}
		if e.held && e.seen.version > c.version { // a later life of the task stays
			e.now, e.stays = e.seen, true
			o.to, o.since, o.until, o.milli = o.from, e.seen.since, e.seen.eligible, 0
			return o.removal != ""
		}
		o.item = ""
		return o.removal != "" || s.item != ""
	}
	o.item = e.now.text()
	o.to, o.since, o.until = b.place(&e.now), e.now.since, e.now.eligible
	o.milli += int64(e.now.cost)
	return true
}

// place is the number of a place in the script: 1 for the delayed, else that of the line's key.
func (b *batch) place(p *packed) int {
	if p.delayed {
		return 1
	}
	name := p.line()
	i := slices.Index(b.lines, name)
	if i < 0 {
		i = len(b.lines)
		b.lines = append(b.lines, name)
	}
	return 9 + i
}

func (b *batch) call() call {
	x, g := b.w.x, b.w.group
	keys := []string{
		x.key(g, b.slot, "units"), x.key(g, b.slot, "items"), b.gone, b.goneBefore, x.key(g, b.slot, "delayed"),
		x.key(g, b.slot, "active"), x.key(g, b.slot, "oldest"), x.key(g, b.slot, "needs"),
	}
	args := []any{b.w.epoch, int64(2 * goneLife / time.Second), len(b.needs)}
	for hash, text := range b.needs {
		args = append(args, string(hash[:]), text)
	}
	for _, l := range b.lines {
		keys = append(keys, x.lineKey(g, b.slot, l))
		args = append(args, string(l))
	}
	for _, o := range b.ops {
		args = append(args, string(o.id[:]), o.seen.item, o.seen.gone, o.item, o.removal, o.from, o.to, o.since, o.until, o.milli)
	}
	return call{putScript, keys, args}
}

// take reads the script's answer and returns the changes that must begin again.
func (b *batch) take(a *redis.Cmd, effects []effect) (again []int, err error) {
	reply, err := a.Slice()
	if err != nil {
		return nil, err
	}
	if len(reply) < 2 {
		return nil, fmt.Errorf("a script answers with %d values", len(reply))
	}
	var now slotNow
	now.tasks, _ = reply[0].(int64)
	if left := b.w.slots[b.slot].tasks - int64(len(b.ops)); now.tasks == 0 && left > 0 {
		return nil, errLost("a slot that held tasks is empty")
	}
	if next, _ := reply[1].(string); next != "" {
		now.next = score(next)
	}
	b.w.slots[b.slot] = now
	for _, r := range reply[2:] {
		n, ok := r.(int64)
		if !ok || n < 1 || int(n) > len(b.ops) {
			return nil, fmt.Errorf("a script answers with place %v of %d", r, len(b.ops))
		}
		i := b.ops[n-1].change
		effects[i].wrote = false
		again = append(again, i)
	}
	return again, nil
}

// score reads the text of a sorted set's number.
func score(text string) int64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return int64(f)
}
