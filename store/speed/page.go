package speed

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"fairlane/control"
)

// ensure reads on in a line until it has n visible tasks or nothing is left.
func (q *Queue) ensure(l *line, n int) {
	have := 0
	for at := q.visible(l, 0); at < len(l.first) && have < n; at = q.visible(l, at+1) {
		have++
	}
	for have < n && !l.complete() && q.err == nil {
		from := len(l.first)
		ctx, cancel := context.WithTimeout(q.ctx, answerTime)
		answers, err := q.x.client.eval(ctx, []call{q.pageCall(l, from, max(q.x.sizes.more, n))})
		cancel()
		if err == nil {
			err = q.takePage(l, from, answers[0])
		}
		if err != nil {
			_ = q.fail(indexError(err))
			return
		}
		have = 0
		for at := q.visible(l, 0); at < len(l.first) && have < n; at = q.visible(l, at+1) {
			have++
		}
	}
}

func (q *Queue) pageCall(l *line, from, count int) call {
	s := q.backlogs[l.backlog].slot
	return call{pageScript, []string{q.x.key(q.group, s, "units"), q.x.lineKey(q.group, s, l.name), q.x.key(q.group, s, "items")},
		[]any{q.w.epoch, from, min(count, mostPage)}}
}

// takePage adds a page to a line's first part. What stands in the line and is not held as that is taken
// out of it and looked at: it holds up nobody.
func (q *Queue) takePage(l *line, from int, a *redis.Cmd) error {
	reply, err := a.Slice()
	if err != nil {
		return err
	}
	if len(reply)%2 != 1 {
		return errLost("a page has no end")
	}
	total, _ := reply[0].(int64)
	if int(total) < l.total { // all that took tasks out went through this queue, or a repair that is seldom
		return errLost("a line has fewer tasks than it should")
	}
	l.total = int(total)
	var strays []string
	for i := 1; i < len(reply); i += 2 {
		member, _ := reply[i].(string)
		text, _ := reply[i+1].(string)
		p, ok := unpack(text)
		if len(member) != 16 {
			strays = append(strays, member)
			continue
		}
		id := uuid.UUID([]byte(member))
		if _, there := q.byID[id]; there {
			continue
		}
		if !ok || p.delayed || p.line() != l.name {
			strays = append(strays, member)
			q.suspects = append(q.suspects, id)
			continue
		}
		l.first = slices.Insert(l.first, q.placeIn(l, p.since, id), q.load(l, id, &p))
	}
	if len(strays) > 0 {
		if err := q.dropStrays(l, strays); err != nil {
			return err
		}
		l.total -= len(strays)
	}
	if len(reply) == 1 || len(l.first) <= from && len(strays) == 0 { // nothing more is to be had
		l.total = len(l.first)
	}
	l.total = max(l.total, len(l.first))
	if l.total == 0 {
		l.total = 1
		q.shrink(l)
	}
	return nil
}

func (q *Queue) dropStrays(l *line, members []string) error {
	ctx, cancel := context.WithTimeout(q.ctx, answerTime)
	defer cancel()
	list := make([]any, len(members))
	for i, m := range members {
		list[i] = m
	}
	return q.x.client.rdb.ZRem(ctx, q.x.lineKey(q.group, q.backlogs[l.backlog].slot, l.name), list...).Err()
}

// readNeed reads what the hash of a need stands for.
func (q *Queue) readNeed(s slot, hash needHash) (control.Need, error) {
	if n, ok := q.byNeed[hash]; ok {
		return q.needs[n].Need, nil
	}
	ctx, cancel := context.WithTimeout(q.ctx, answerTime)
	defer cancel()
	text, err := q.x.client.rdb.HGet(ctx, q.x.key(q.group, s, "needs"), string(hash[:])).Result()
	if errors.Is(err, redis.Nil) {
		return control.Need{}, control.Errorf(control.CodeNotFound, "need %s is not in the queue index", hash)
	}
	if err != nil {
		return control.Need{}, q.fail(indexError(err))
	}
	n, ok := parseNeed(hash, text)
	if !ok {
		return control.Need{}, control.Errorf(control.CodeNotFound, "need %s cannot be read", hash)
	}
	return n, nil
}

// locate looks for a task in all slots.
func (q *Queue) locate(task uuid.UUID) (slot, packed, error) {
	if q.err != nil {
		return slot{}, packed{}, q.err
	}
	ctx, cancel := context.WithTimeout(q.ctx, answerTime)
	defer cancel()
	var slots []slot
	var answers []*redis.StringCmd
	pipe := q.x.client.rdb.Pipeline()
	for lane := range q.w.lanes {
		for h := range slotsPerLane {
			s := slot{lane, h}
			slots = append(slots, s)
			answers = append(answers, pipe.HGet(ctx, q.x.key(q.group, s, "items"), string(task[:])))
		}
	}
	if len(slots) > 0 {
		_, _ = pipe.Exec(ctx) // each command has its error
	}
	for i, a := range answers {
		text, err := a.Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return slot{}, packed{}, q.fail(indexError(err))
		}
		if p, ok := unpack(text); ok {
			return slots[i], p, nil
		}
	}
	return slot{}, packed{}, control.Errorf(control.CodeNotFound, "task %s is not in the queue", task)
}
