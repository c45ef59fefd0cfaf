package queuetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/queue"
)

// Queue is both sides of the port.
type Queue interface {
	queue.Index
	queue.Reader
}

var start = time.Unix(1_700_000_000, 0).UTC()

func id(space byte, n int) uuid.UUID {
	return uuid.UUID{0: space, 14: byte(n >> 8), 15: byte(n)}
}

// item is task n of tenant 1 and user 1, eligible at once.
func item(n int, change ...func(*queue.Item)) queue.Item {
	it := queue.Item{
		TaskID: id('k', n), Version: 1, TenantID: id('t', 1), UserID: id('u', 1), Lane: "L", Group: "G", Band: 2, Route: "r", Model: "m",
		Kind: control.KindVideo, SlotUnits: 1, CostMilli: 1000, P95: time.Minute, QueuedSince: start.Add(time.Duration(n) * time.Second), EligibleAt: start,
	}
	for _, c := range change {
		c(&it)
	}
	return it
}

// view is what the planner sees: the heads of each backlog, by lane and tenant.
type view struct {
	t      *testing.T
	q      Queue
	number map[string]int
	calls  map[string]int // how often the last Advance reported a backlog
	wake   time.Time
}

func look(t *testing.T, q Queue) *view {
	t.Helper()
	return &view{t: t, q: q, number: map[string]int{}}
}

func (v *view) advance(at time.Time) {
	v.calls = map[string]int{}
	v.wake = v.q.Advance(at, func(backlog int, lane string, tenant uuid.UUID, empty bool) {
		key := fmt.Sprint(lane, tenant[15])
		v.calls[key]++
		v.number[key] = backlog
		if empty {
			delete(v.number, key)
		}
	})
}

// heads lists the numbers of the tasks that Heads yields for a backlog, those that are first marked.
func (v *view) heads(key string, scan int, skip ...string) []string {
	v.t.Helper()
	b, ok := v.number[key]
	if !ok {
		return nil
	}
	var out []string
	v.q.Heads(b, scan, func(need int) bool { return slices.Contains(skip, fmt.Sprint(v.q.Need(need).SlotUnits)) }, func(h control.Head) {
		name := fmt.Sprint(int(h.TaskID[14])<<8 | int(h.TaskID[15]))
		if !h.First {
			name += "+"
		}
		out = append(out, name)
	})
	slices.Sort(out)
	return out
}

func (v *view) ref(key string, n int) (ref int) {
	ref = -1
	v.q.Heads(v.number[key], 256, func(int) bool { return false }, func(h control.Head) {
		if h.TaskID == id('k', n) {
			ref = h.Ref
		}
	})
	return ref
}

func put(t *testing.T, q Queue, items ...queue.Item) {
	t.Helper()
	for _, it := range items {
		if err := q.Upsert(it); err != nil {
			t.Fatal(err)
		}
	}
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: heads are %v, want %v", what, got, want)
	}
}

// Run holds an adapter against the promises of the port. fresh returns an empty queue.
func Run(t *testing.T, fresh func(t *testing.T) Queue) {
	for name, test := range map[string]func(*testing.T, Queue){
		"versions":             versions,
		"removed stays away":   removed,
		"not found":            notFound,
		"wrong items":          wrongItems,
		"heads":                heads,
		"scan window":          window,
		"skipped needs":        skipped,
		"hidden tasks":         hidden,
		"parked users":         parked,
		"delayed tasks":        delayed,
		"reported once":        reported,
		"depth":                depths,
		"one like a list":      likeAList,
		"requeue keeps place":  requeue,
		"order of equal times": equalTimes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

func versions(t *testing.T, q Queue) {
	put(t, q, item(1), item(1), item(1, func(i *queue.Item) { i.Version = 3; i.Band = 1 }), item(1, func(i *queue.Item) { i.Version = 2; i.Band = 4 }))
	got, err := q.ByID(id('k', 1))
	if err != nil || got.Version != 3 || got.Band != 1 {
		t.Errorf("version %d with band %d is kept (%v), want 3 with 1", got.Version, got.Band, err)
	}
	if d := q.Depth("L"); d.Tasks != 1 || d.Milli != 1000 {
		t.Errorf("depth is %+v, want one task", d)
	}
	want := item(1, func(i *queue.Item) { i.Version = 3; i.Band = 1 })
	if got != want {
		t.Errorf("it comes back as\n%+v, want\n%+v", got, want)
	}
}

func removed(t *testing.T, q Queue) {
	put(t, q, item(1, func(i *queue.Item) { i.Version = 5 }))
	q.Remove(id('k', 1), 4)
	if _, err := q.ByID(id('k', 1)); err != nil {
		t.Errorf("removing version 4 took version 5 out: %v", err)
	}
	q.Remove(id('k', 1), 6)
	q.Remove(id('k', 1), 6)
	put(t, q, item(1, func(i *queue.Item) { i.Version = 6 }))
	if _, err := q.ByID(id('k', 1)); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("a late version 6 came back: %v", err)
	}
	put(t, q, item(1, func(i *queue.Item) { i.Version = 7 }))
	if _, err := q.ByID(id('k', 1)); err != nil {
		t.Errorf("version 7 was kept away: %v", err)
	}
}

func notFound(t *testing.T, q Queue) {
	if _, err := q.ByID(id('k', 1)); control.CodeOf(err) != control.CodeNotFound {
		t.Errorf("a task that is not there gives %v", err)
	}
	if d := q.Depth("L"); d != (queue.Depth{}) {
		t.Errorf("depth of an unknown lane is %+v", d)
	}
	q.Hide(7, id('k', 1), true)
	q.Hide(-1, id('k', 1), false)
	q.Park(id('t', 1), id('u', 1), control.KindVideo)
}

func wrongItems(t *testing.T, q Queue) {
	for field, change := range map[string]func(*queue.Item){
		"task_id":    func(i *queue.Item) { i.TaskID = uuid.Nil },
		"lane":       func(i *queue.Item) { i.Lane = "" },
		"cost_milli": func(i *queue.Item) { i.CostMilli = -5 },
		"slot_units": func(i *queue.Item) { i.SlotUnits = 0 },
		"band":       func(i *queue.Item) { i.Band = 5 },
	} {
		if err := q.Upsert(item(1, change)); control.CodeOf(err) != control.CodeInvalid {
			t.Errorf("a wrong %s gives %v", field, err)
		}
	}
	for _, cost := range []int64{0, 999, 10_000_001, 1 << 62} {
		if err := q.Upsert(item(1, func(i *queue.Item) { i.CostMilli = cost })); control.CodeOf(err) != control.CodeInvalid {
			t.Errorf("cost %d gives %v", cost, err)
		}
	}
	if d := q.Depth("L"); d.Tasks != 0 {
		t.Errorf("%d wrong items went in", d.Tasks)
	}
}

func heads(t *testing.T, q Queue) {
	v := look(t, q)
	route := func(r string, band control.Band) func(*queue.Item) {
		return func(i *queue.Item) { i.Route, i.Model, i.Band = r, r, band }
	}
	put(t, q, item(9), item(2), item(5), item(7, route("x", 2)), item(3, route("x", 2)), item(8, route("r", 0)),
		item(1, func(i *queue.Item) { i.TenantID = id('t', 2) }), item(4, func(i *queue.Item) { i.Lane = "M" }))
	v.advance(start)
	same(t, "tenant 1", v.heads("L1", 16), "2", "3", "8")
	same(t, "tenant 2", v.heads("L2", 16), "1")
	same(t, "other lane", v.heads("M1", 16), "4")
	q.Remove(id('k', 2), 1)
	v.advance(start)
	same(t, "after the first has gone", v.heads("L1", 16), "3", "5", "8")
}

func window(t *testing.T, q Queue) {
	v := look(t, q)
	size := func(n int64) func(*queue.Item) { return func(i *queue.Item) { i.SlotUnits = n } }
	put(t, q, item(1, size(3)), item(2, size(3)), item(3, size(3)), item(4, size(2)), item(5, size(2)), item(6), item(7))
	v.advance(start)
	for scan, want := range map[int][]string{0: {"1"}, 2: {"1"}, 3: {"1", "4+"}, 4: {"1", "4+"}, 5: {"1", "4+", "6+"}, 256: {"1", "4+", "6+"}} {
		same(t, fmt.Sprint("window ", scan), v.heads("L1", scan), want...)
	}
}

func skipped(t *testing.T, q Queue) {
	v := look(t, q)
	size := func(n int64) func(*queue.Item) { return func(i *queue.Item) { i.SlotUnits = n } }
	put(t, q, item(1, size(9)), item(2, size(9)), item(3, size(2)), item(4))
	v.advance(start)
	same(t, "without size 9, which does not count in the window", v.heads("L1", 1, "9"), "3", "4+")
	same(t, "without any", v.heads("L1", 16, "9", "2", "1"))
}

func hidden(t *testing.T, q Queue) {
	v := look(t, q)
	put(t, q, item(1), item(2))
	v.advance(start)
	ref := v.ref("L1", 1)
	q.Hide(ref, id('k', 1), true)
	q.Hide(ref, id('k', 1), true)
	if v.advance(start); len(v.calls) != 0 {
		t.Errorf("hiding is reported: %v", v.calls)
	}
	same(t, "hidden", v.heads("L1", 16), "2")
	if d := q.Depth("L"); d.Tasks != 2 {
		t.Errorf("depth is %d while one is hidden, want 2", d.Tasks)
	}
	q.Hide(ref, id('k', 1), false)
	v.advance(start)
	same(t, "brought back", v.heads("L1", 16), "1")
	q.Hide(ref, id('k', 1), true)
	q.Remove(id('k', 1), 1)
	put(t, q, item(3))
	q.Hide(ref, id('k', 1), false) // its place may be another's by now
	v.advance(start)
	same(t, "after it has gone", v.heads("L1", 16), "2")
}

func parked(t *testing.T, q Queue) {
	v := look(t, q)
	by := func(u int, k control.Kind) func(*queue.Item) {
		return func(i *queue.Item) { i.UserID, i.Kind, i.Route, i.Model = id('u', u), k, string(k), string(k) }
	}
	put(t, q, item(1, by(1, control.KindVideo)), item(2, by(2, control.KindVideo)), item(3, by(1, control.KindImage)), item(4, by(2, control.KindImage)))
	v.advance(start)
	same(t, "nobody parked", v.heads("L1", 16), "1", "3")
	q.Park(id('t', 1), id('u', 1), control.KindVideo)
	v.advance(start)
	same(t, "videos of user 1 parked", v.heads("L1", 16), "2", "3")
	q.Park(id('t', 1), id('u', 1), control.KindVideo, control.KindImage)
	v.advance(start)
	same(t, "user 1 parked", v.heads("L1", 16), "2", "4")
	put(t, q, item(5, by(1, control.KindVideo), func(i *queue.Item) { i.QueuedSince = start }))
	v.advance(start)
	same(t, "a new task of user 1 is parked as well", v.heads("L1", 16), "2", "4")
	q.Park(id('t', 1), id('u', 1))
	v.advance(start)
	if v.calls["L1"] != 1 {
		t.Errorf("unparking is reported %d times, want once", v.calls["L1"])
	}
	same(t, "nobody parked again", v.heads("L1", 16), "3", "5")
}

func delayed(t *testing.T, q Queue) {
	v := look(t, q)
	at := func(s int) func(*queue.Item) {
		return func(i *queue.Item) { i.EligibleAt = start.Add(time.Duration(s) * time.Second) }
	}
	put(t, q, item(1, at(50)), item(2, at(20)), item(3, at(20)))
	v.advance(start)
	same(t, "too early", v.heads("L1", 16))
	if want := start.Add(20 * time.Second); !v.wake.Equal(want) {
		t.Errorf("the next is eligible at %v, want %v", v.wake, want)
	}
	v.advance(start.Add(20 * time.Second))
	same(t, "after 20 s", v.heads("L1", 16), "2")
	q.Remove(id('k', 1), 1)
	v.advance(start.Add(21 * time.Second))
	if !v.wake.IsZero() {
		t.Errorf("nothing is delayed, but %v is given", v.wake)
	}
}

func reported(t *testing.T, q Queue) {
	v := look(t, q)
	put(t, q, item(1), item(2), item(3, func(i *queue.Item) { i.Lane = "M" }))
	v.advance(start)
	if len(v.calls) != 2 || v.calls["L1"] != 1 || v.calls["M1"] != 1 {
		t.Errorf("reported %v, want L1 and M1 once each", v.calls)
	}
	v.advance(start)
	if len(v.calls) != 0 {
		t.Errorf("reported %v although nothing has changed", v.calls)
	}
	q.Remove(id('k', 3), 1)
	v.advance(start)
	if _, there := v.number["M1"]; there || len(v.calls) != 1 {
		t.Errorf("reported %v, want M1 as empty", v.calls)
	}
	put(t, q, item(4, func(i *queue.Item) { i.Lane, i.TenantID = "N", id('t', 9) }))
	v.advance(start)
	same(t, "a new backlog", v.heads("N9", 16), "4")
	same(t, "the old one", v.heads("L1", 16), "1")
}

func depths(t *testing.T, q Queue) {
	put(t, q, item(5, func(i *queue.Item) { i.CostMilli = 2500 }), item(3), item(4, func(i *queue.Item) { i.EligibleAt = start.Add(time.Hour) }),
		item(1, func(i *queue.Item) { i.Lane = "M" }))
	check := func(what string, want queue.Depth) {
		t.Helper()
		if got := q.Depth("L"); got != want {
			t.Errorf("%s: depth is %+v, want %+v", what, got, want)
		}
	}
	check("three", queue.Depth{Tasks: 3, Milli: 4500, Oldest: start.Add(3 * time.Second)})
	q.Remove(id('k', 3), 1)
	check("without the oldest", queue.Depth{Tasks: 2, Milli: 3500, Oldest: start.Add(4 * time.Second)})
	q.Remove(id('k', 4), 1)
	q.Remove(id('k', 5), 1)
	check("none", queue.Depth{})
}

func requeue(t *testing.T, q Queue) {
	v := look(t, q)
	put(t, q, item(1), item(2))
	v.advance(start)
	q.Remove(id('k', 1), 2) // claimed
	v.advance(start)
	same(t, "while it runs", v.heads("L1", 16), "2")
	put(t, q, item(1, func(i *queue.Item) { i.Version = 3 }))
	v.advance(start)
	same(t, "a retry keeps its queued_since and stands first again", v.heads("L1", 16), "1")
}

func equalTimes(t *testing.T, q Queue) {
	v := look(t, q)
	now := func(i *queue.Item) { i.QueuedSince = start }
	put(t, q, item(7, now), item(300, now), item(2, now), item(9, now))
	var got []string
	v.advance(start)
	for len(v.number) > 0 {
		h := v.heads("L1", 0)
		got = append(got, h...)
		var n int
		if _, err := fmt.Sscan(h[0], &n); err != nil {
			t.Fatal(err)
		}
		q.Remove(id('k', n), 1)
		v.advance(start)
	}
	same(t, "by id", got, "2", "7", "9", "300")
}
