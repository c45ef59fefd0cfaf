package speed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"fairlane/control"
)

// QueueIndex is the queue index on one Redis, for all pool groups. It is written by the indexer (the
// scheduler's term, from the outbox) and by the rebuilder. Every write compares and sets on what it has
// seen of the task, so that repetition, reordering and two writers at once end in the same index.
//
// An index has an epoch. It is in the root and in every slot, and every script looks for it: where it is
// missing the slot has been lost, and with it the right to trust anything else.
type QueueIndex struct {
	client *Client
	prefix string
	now    func() time.Time
	log    *slog.Logger
	sizes  sizes
}

// NewQueueIndex makes the index of all groups. prefix begins every key: several
// installations may share a server.
func NewQueueIndex(client *Client, prefix string, log *slog.Logger, now func() time.Time) *QueueIndex {
	if now == nil {
		now = time.Now
	}
	return &QueueIndex{client: client, prefix: prefix, now: now, log: log, sizes: sizes{first: 2, more: 48, keep: 4}}
}

const (
	stateBuilding = "building"
	stateReady    = "ready"
	lanePrefix    = "lane:"

	// answerTime bounds one round trip; the index of a group is given up after it.
	answerTime = 500 * time.Millisecond
)

// errLost says that the index of a group is not there, or not whole. The caller goes on from PostgreSQL.
func errLost(why string) error {
	return control.Errorf(control.CodeNotFound, "the queue index must be built anew: %s", why)
}

// indexError tells a lost index from a Redis that does not answer.
func indexError(err error) error {
	switch {
	case err == nil:
		return nil
	case redis.HasErrorPrefix(err, "LOST"), redis.HasErrorPrefix(err, "WRONGTYPE"):
		return errLost(err.Error())
	case control.CodeOf(err) == control.CodeNotFound, control.CodeOf(err) == control.CodeUnavailable:
		return err
	}
	return control.Errorf(control.CodeUnavailable, "redis: %v", err)
}

// catalog is what the root of a group's index says.
type catalog struct {
	epoch string
	ready bool
	lanes []string
}

func (x *QueueIndex) catalog(ctx context.Context, group string) (catalog, error) {
	all, err := x.client.rdb.HGetAll(ctx, x.root(group)).Result()
	if err != nil {
		return catalog{}, err
	}
	c := catalog{epoch: all["epoch"], ready: all["state"] == stateReady}
	for field := range all {
		if lane, ok := strings.CutPrefix(field, lanePrefix); ok {
			c.lanes = append(c.lanes, lane)
		}
	}
	slices.Sort(c.lanes)
	return c, nil
}

func (c *catalog) slots() []slot {
	out := make([]slot, 0, len(c.lanes)*slotsPerLane)
	for _, lane := range c.lanes {
		for h := range slotsPerLane {
			out = append(out, slot{lane, h})
		}
	}
	return out
}

// Ping tells whether Redis answers.
func (x *QueueIndex) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return indexError(x.client.rdb.Ping(ctx).Err())
}

// Ready tells whether a group's index is there and may be read.
func (x *QueueIndex) Ready(ctx context.Context, group string) (bool, error) {
	c, err := x.catalog(ctx, group)
	if err == nil && c.epoch != "" && c.ready {
		err = x.whole(ctx, group, &c)
	}
	if err = indexError(err); control.CodeOf(err) == control.CodeNotFound {
		return false, nil
	}
	return err == nil && c.epoch != "" && c.ready, err
}

// Begin makes a group's index ready to be written, and not yet to be read. What is whole is kept, so that
// a rebuild only corrects it; of anything else, or with anew, all keys are deleted.
func (x *QueueIndex) Begin(ctx context.Context, group string, anew bool) error {
	c, err := x.catalog(ctx, group)
	if err == nil && c.epoch != "" {
		err = x.whole(ctx, group, &c)
	}
	if err == nil && c.epoch != "" && !anew {
		return indexError(x.client.rdb.HSet(ctx, x.root(group), "state", stateBuilding).Err())
	}
	if err = indexError(err); err != nil && control.CodeOf(err) != control.CodeNotFound {
		return err
	}
	if err := x.wipe(ctx, group); err != nil {
		return indexError(err)
	}
	return indexError(x.client.rdb.HSet(ctx, x.root(group), "epoch", uuid.NewString(), "state", stateBuilding).Err())
}

// Finish says that a group's index holds all that waits.
func (x *QueueIndex) Finish(ctx context.Context, group string) error {
	c, err := x.catalog(ctx, group)
	if err != nil {
		return indexError(err)
	}
	if c.epoch == "" {
		return errLost("its root has gone")
	}
	if err := x.whole(ctx, group, &c); err != nil {
		return indexError(err)
	}
	return indexError(x.client.rdb.HSet(ctx, x.root(group), "state", stateReady).Err())
}

// whole tells whether every slot has the epoch of the root.
func (x *QueueIndex) whole(ctx context.Context, group string, c *catalog) error {
	slots := c.slots()
	answers := make([]*redis.StringCmd, len(slots))
	pipe := x.client.rdb.Pipeline()
	for i, s := range slots {
		answers[i] = pipe.HGet(ctx, x.key(group, s, "units"), "epoch")
	}
	if len(slots) > 0 {
		_, _ = pipe.Exec(ctx) // each command has its error
	}
	for i, a := range answers {
		epoch, err := a.Result()
		switch {
		case errors.Is(err, redis.Nil) || err == nil && epoch != c.epoch:
			return errLost(fmt.Sprintf("slot %d of lane %s is empty or another's", slots[i].h, slots[i].lane))
		case err != nil:
			return err
		}
	}
	return nil
}

// wipe deletes all keys of a group, in steps of 1,000.
func (x *QueueIndex) wipe(ctx context.Context, group string) error {
	var cursor uint64
	for {
		keys, next, err := x.client.rdb.Scan(ctx, cursor, x.every(group), 1000).Result()
		if err != nil {
			return err
		}
		if err := x.unlink(ctx, keys); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return x.unlink(ctx, []string{x.root(group)})
		}
	}
}

// unlink deletes keys of any slots.
func (x *QueueIndex) unlink(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	pipe := x.client.rdb.Pipeline()
	for _, k := range keys {
		pipe.Unlink(ctx, k)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// addLane gives a lane its slots. A crash in between leaves slots without epoch: a lost index.
func (x *QueueIndex) addLane(ctx context.Context, group, epoch, lane string) error {
	if err := x.client.rdb.HSet(ctx, x.root(group), lanePrefix+lane, 1).Err(); err != nil {
		return err
	}
	pipe := x.client.rdb.Pipeline()
	for h := range slotsPerLane {
		pipe.HSetNX(ctx, x.key(group, slot{lane, h}, "units"), "epoch", epoch)
	}
	_, err := pipe.Exec(ctx)
	return err
}
