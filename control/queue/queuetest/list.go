package queuetest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/control/queue"
)

// likeAList compares a queue with a plain list over random steps. The queue is emptied in between.
func likeAList(t *testing.T, q Queue) {
	round, now := 0, start // time goes on over the rounds
	rapid.Check(t, func(rt *rapid.T) {
		round++
		l := &list{q: q, now: now, gone: map[uuid.UUID]int64{}, hidden: map[uuid.UUID]int{}, parked: map[int][]control.Kind{}, round: round}
		defer func() {
			l.clear()
			now = l.now
		}()
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			l.step(rt)
			l.compare(rt)
		}
	})
}

type list struct {
	q      Queue
	items  []queue.Item
	gone   map[uuid.UUID]int64
	hidden map[uuid.UUID]int
	parked map[int][]control.Kind
	now    time.Time
	count  int
	round  int
	number map[string]int
}

func (l *list) step(t *rapid.T) {
	switch rapid.SampledFrom([]string{"put", "put", "put", "remove", "hide", "show", "park", "wait"}).Draw(t, "step") {
	case "put":
		l.count++
		user := rapid.IntRange(1, 3).Draw(t, "user")
		model := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "model")
		it := item(l.count, func(i *queue.Item) {
			i.TaskID = uuid.UUID{0: 'k', 8: byte(l.round >> 16), 9: byte(l.round >> 8), 10: byte(l.round), 15: byte(rapid.IntRange(0, 255).Draw(t, "id"))}
			i.UserID, i.Band = id('u', user), control.Band(rapid.IntRange(0, 2).Draw(t, "band"))
			i.Route, i.Model, i.Kind = model, model, map[string]control.Kind{"a": control.KindImage, "b": control.KindVideo}[model]
			i.SlotUnits, i.CostMilli = rapid.Int64Range(1, 3).Draw(t, "slots"), rapid.Int64Range(1000, 9000).Draw(t, "cost")
			i.QueuedSince = start.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "since")) * time.Second)
			i.EligibleAt = l.now.Add(time.Duration(rapid.IntRange(-5, 9).Draw(t, "delay")) * time.Second)
			i.Version = int64(rapid.IntRange(1, 3).Draw(t, "version"))
		})
		if err := l.q.Upsert(it); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(l.items, func(x queue.Item) bool { return x.TaskID == it.TaskID })
		switch {
		case it.Version <= l.gone[it.TaskID]:
		case i < 0:
			l.items = append(l.items, it)
		case l.items[i].Version < it.Version:
			l.items[i] = it
			delete(l.hidden, it.TaskID)
		}
	case "remove":
		if it, ok := l.any(t); ok {
			l.drop(it.TaskID)
			l.q.Remove(it.TaskID, it.Version)
			l.gone[it.TaskID] = it.Version
		}
	case "hide":
		if it, ok := l.any(t); ok && l.sees(it) {
			ref := l.find(it)
			if ref >= 0 {
				l.q.Hide(ref, it.TaskID, true)
				l.hidden[it.TaskID] = ref
			}
		}
	case "show":
		for task, ref := range l.hidden {
			l.q.Hide(ref, task, false)
		}
		l.hidden = map[uuid.UUID]int{}
	case "park":
		user := rapid.IntRange(1, 3).Draw(t, "user")
		kinds := rapid.SampledFrom([][]control.Kind{nil, {control.KindImage}, {control.KindImage, control.KindVideo}}).Draw(t, "kinds")
		if slices.ContainsFunc(l.items, func(x queue.Item) bool { return x.UserID == id('u', user) }) {
			l.q.Park(id('t', 1), id('u', user), kinds...)
			l.parked[user] = kinds
		}
	case "wait":
		l.now = l.now.Add(time.Duration(rapid.IntRange(1, 6).Draw(t, "seconds")) * time.Second)
	}
	l.unparkGone()
}

// unparkGone brings back who is parked and has no task: the queue may have forgotten it.
func (l *list) unparkGone() {
	for user := range l.parked {
		if !slices.ContainsFunc(l.items, func(x queue.Item) bool { return x.UserID == id('u', user) }) {
			delete(l.parked, user)
			l.q.Park(id('t', 1), id('u', user))
		}
	}
}

func (l *list) any(t *rapid.T) (queue.Item, bool) {
	if len(l.items) == 0 {
		return queue.Item{}, false
	}
	return rapid.SampledFrom(l.items).Draw(t, "which"), true
}

func (l *list) drop(task uuid.UUID) {
	l.items = slices.DeleteFunc(l.items, func(x queue.Item) bool { return x.TaskID == task })
	delete(l.hidden, task)
}

func (l *list) sees(it queue.Item) bool {
	_, gone := l.hidden[it.TaskID]
	return !gone && !it.EligibleAt.After(l.now) && !slices.Contains(l.parked[int(it.UserID[15])], it.Kind)
}

// find returns the handle of an item that is a head, or -1.
func (l *list) find(it queue.Item) int {
	ref := -1
	l.read(256, func(h control.Head) {
		if h.TaskID == it.TaskID {
			ref = h.Ref
		}
	})
	return ref
}

func (l *list) read(scan int, yield func(control.Head)) {
	if l.number == nil {
		l.number = map[string]int{}
	}
	l.q.Advance(l.now, func(backlog int, lane string, _ uuid.UUID, empty bool) {
		l.number[lane] = backlog
		if empty {
			delete(l.number, lane)
		}
	})
	if b, ok := l.number["L"]; ok {
		l.q.Heads(b, scan, func(int) bool { return false }, yield)
	}
}

func (l *list) compare(t *rapid.T) {
	scan := rapid.IntRange(0, 3).Draw(t, "scan")
	var got, want []string
	l.read(scan, func(h control.Head) { got = append(got, fmt.Sprint(h.TaskID, h.First)) })
	groups := map[string][]queue.Item{}
	var milli int64
	oldest := time.Time{}
	for _, it := range l.items {
		milli += it.CostMilli
		if oldest.IsZero() || it.QueuedSince.Before(oldest) {
			oldest = it.QueuedSince
		}
		if l.sees(it) {
			key := fmt.Sprint(it.Band, it.Route)
			groups[key] = append(groups[key], it)
		}
	}
	for _, g := range groups {
		slices.SortFunc(g, func(a, b queue.Item) int {
			if c := a.QueuedSince.Compare(b.QueuedSince); c != 0 {
				return c
			}
			return bytes.Compare(a.TaskID[:], b.TaskID[:])
		})
		sizes := map[int64]bool{}
		for i, it := range g {
			if i <= scan && !sizes[it.SlotUnits] {
				sizes[it.SlotUnits] = true
				want = append(want, fmt.Sprint(it.TaskID, i == 0))
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("heads are\n%v, want\n%v", got, want)
	}
	if d := l.q.Depth("L"); d.Tasks != int64(len(l.items)) || d.Milli != milli || !d.Oldest.Equal(oldest) {
		t.Fatalf("depth is %+v, want %d tasks of %d milli-units, oldest %v", d, len(l.items), milli, oldest)
	}
}

// clear empties the queue for the next round.
func (l *list) clear() {
	for _, it := range l.items {
		l.q.Remove(it.TaskID, it.Version)
	}
	for user := range l.parked {
		l.q.Park(id('t', 1), id('u', user))
	}
	l.now = l.now.Add(time.Hour)
	l.q.Advance(l.now, func(int, string, uuid.UUID, bool) {})
}
