package speed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const (
	promotePage  = maxOps // delayed tasks of a slot that are moved at a time
	promotePages = 10     // of them in one Advance
)

// promote moves the delayed tasks whose time has come; true when more are left for the next time.
func (q *Queue) promote() (rest bool) {
	for pages := 0; q.err == nil; pages++ {
		var slots []slot
		for s, now := range q.w.slots {
			if now.next > 0 && now.next <= q.w.now {
				slots = append(slots, s)
			}
		}
		if len(slots) == 0 {
			return false
		}
		if pages == promotePages {
			return true
		}
		changes, err := q.due(slots)
		if err != nil {
			_ = q.fail(indexError(err))
			return false
		}
		if q.write(changes) != nil {
			return false
		}
	}
	return false
}

// due reads the first delayed tasks of slots whose time has come, in the order of their time. What
// stands there and is not held as delayed is taken out and looked at.
func (q *Queue) due(slots []slot) ([]change, error) {
	ctx, cancel := context.WithTimeout(q.ctx, answerTime)
	defer cancel()
	pipe := q.x.client.rdb.Pipeline()
	members, items := make([]*redis.StringSliceCmd, len(slots)), make([]*redis.SliceCmd, len(slots))
	for i, s := range slots {
		members[i] = pipe.ZRangeByScore(ctx, q.x.key(q.group, s, "delayed"), &redis.ZRangeBy{
			Min: "-inf", Max: strconv.FormatInt(q.w.now, 10), Count: promotePage,
		})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	for i, s := range slots {
		if ids := members[i].Val(); len(ids) > 0 {
			items[i] = pipe.HMGet(ctx, q.x.key(q.group, s, "items"), ids...)
		}
	}
	if pipe.Len() > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, err
		}
	}
	type ripe struct {
		change
		packed
	}
	var all []ripe
	for i, s := range slots {
		var strays []any
		for j, member := range members[i].Val() {
			text, _ := items[i].Val()[j].(string)
			p, ok := unpack(text)
			if len(member) != 16 || !ok || !p.delayed || p.eligible > q.w.now {
				strays = append(strays, member)
				if len(member) == 16 {
					q.suspects = append(q.suspects, uuid.UUID([]byte(member)))
				}
				continue
			}
			id := uuid.UUID([]byte(member))
			all = append(all, ripe{change{id: id, slot: s, promote: true}, p})
		}
		if len(members[i].Val()) == 0 {
			return nil, errLost("the delayed tasks of a slot are gone")
		}
		if len(strays) > 0 {
			if err := q.dropDelayed(ctx, s, strays); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(all, func(a, b ripe) int {
		if c := cmp.Compare(a.eligible, b.eligible); c != 0 {
			return c
		}
		if c := cmp.Compare(a.since, b.since); c != 0 {
			return c
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	changes := make([]change, len(all))
	for i := range all {
		changes[i] = all[i].change
	}
	return changes, nil
}

// dropDelayed takes members out of the delayed of a slot and reads anew when its next task comes.
func (q *Queue) dropDelayed(ctx context.Context, s slot, members []any) error {
	pipe := q.x.client.rdb.Pipeline()
	pipe.ZRem(ctx, q.x.key(q.group, s, "delayed"), members...)
	pipe.ZRem(ctx, q.x.key(q.group, s, "oldest"), members...)
	first := pipe.ZRangeWithScores(ctx, q.x.key(q.group, s, "delayed"), 0, 0)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	now := q.w.slots[s]
	now.next = 0
	if z := first.Val(); len(z) > 0 {
		now.next = int64(z[0].Score)
	}
	q.w.slots[s] = now
	return nil
}
