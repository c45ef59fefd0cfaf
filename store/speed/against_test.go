package speed_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"fairlane/control"
	"fairlane/control/queue"
	"fairlane/store/speed"
	"fairlane/store/storetest"
)

// pair is a queue on Redis beside one in memory; both are told the same.
type pair struct {
	x      *speed.QueueIndex
	group  string
	redis  *speed.Queue
	memory *queue.Memory
	now    time.Time
	at     [2]map[string]int // numbers of backlogs by lane and tenant
	hidden map[uuid.UUID][2]int
	known  []queue.Item
}

// Random histories of three tenants in two lanes give the same heads in both, over new terms, with
// versions that come late and twice.
func TestQueueShowsWhatMemoryShows(t *testing.T) {
	t.Parallel()
	var sequences, actions atomic.Int64
	for name, make := range map[string]func(*testing.T) *speed.QueueIndex{
		"ample": index, "small": func(t *testing.T) *speed.QueueIndex { return speed.Small(index(t)) }, "small again": func(t *testing.T) *speed.QueueIndex { return speed.Small(index(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			x := make(t)
			rapid.Check(t, func(rt *rapid.T) {
				p := &pair{x: x, group: fmt.Sprint("g", sequences.Add(1)), memory: queue.NewMemory(), now: time.Unix(1_700_000_000, 0).UTC(), hidden: map[uuid.UUID][2]int{}}
				p.at = [2]map[string]int{{}, {}}
				p.redis = built(t, x, p.group)
				for range rapid.IntRange(1, 40).Draw(rt, "actions") {
					actions.Add(1)
					p.act(rt, t)
					p.compare(rt)
				}
			})
		})
	}
	storetest.Figure(t, "queue on Redis against memory: %d sequences, %d actions", sequences.Load(), actions.Load())
}

func (p *pair) act(t *rapid.T, tt *testing.T) {
	switch rapid.SampledFrom([]string{"put", "put", "put", "put", "again", "remove", "hide", "show", "park", "wait", "term"}).Draw(t, "act") {
	case "put":
		n := rapid.IntRange(0, 40).Draw(t, "task")
		it := waiting(n, n%3)
		it.Group, it.Lane = p.group, []string{"L", "M"}[n%2]
		it.UserID = uuid.NewSHA1(it.TenantID, fmt.Append(nil, rapid.IntRange(0, 2).Draw(t, "user")))
		it.SlotUnits, it.Band = rapid.Int64Range(1, 3).Draw(t, "slots"), control.Band(rapid.IntRange(1, 2).Draw(t, "band"))
		it.Version = int64(rapid.IntRange(0, 4).Draw(t, "version"))
		it.QueuedSince = p.now.Add(time.Duration(rapid.IntRange(-20, 0).Draw(t, "age")) * time.Second)
		it.EligibleAt = p.now.Add(time.Duration(rapid.IntRange(-9, 5).Draw(t, "delay")) * time.Second)
		p.put(t, it)
		p.known = append(p.known, it)
	case "again": // an event comes twice, or late
		if len(p.known) > 0 {
			p.put(t, rapid.SampledFrom(p.known).Draw(t, "which"))
		}
	case "remove":
		if len(p.known) > 0 {
			it := rapid.SampledFrom(p.known).Draw(t, "which")
			version := int64(rapid.IntRange(0, 5).Draw(t, "version"))
			if err := p.redis.Apply(nil, []queue.Gone{{TaskID: it.TaskID, Version: version, Lane: it.Lane, TenantID: it.TenantID}}); err != nil {
				t.Fatal(err)
			}
			p.memory.Remove(it.TaskID, version)
		}
	case "hide":
		seen := p.heads(t)
		if len(seen) > 0 {
			one := rapid.SampledFrom(seen).Draw(t, "which")
			p.redis.Hide(one.refs[0], one.task, true)
			p.memory.Hide(one.refs[1], one.task, true)
			p.hidden[one.task] = one.refs
		}
	case "show":
		p.show()
	case "park":
		n := rapid.IntRange(0, 2).Draw(t, "tenant")
		tenant := waiting(0, n).TenantID
		user := uuid.NewSHA1(tenant, fmt.Append(nil, rapid.IntRange(0, 2).Draw(t, "user")))
		var kinds []control.Kind
		if rapid.Bool().Draw(t, "parked") {
			kinds = []control.Kind{control.KindVideo}
		}
		if len(kinds) == 0 || p.has(user) { // whoever has no task may be forgotten
			p.redis.Park(tenant, user, kinds...)
			p.memory.Park(tenant, user, kinds...)
		}
	case "wait":
		p.now = p.now.Add(time.Duration(rapid.IntRange(1, 4).Draw(t, "seconds")) * time.Second)
	case "term": // the next holder begins with what is on the server; memory keeps its parked users, so all come back
		p.show()
		for n := range 3 {
			tenant := waiting(0, n).TenantID
			for u := range 3 {
				p.memory.Park(tenant, uuid.NewSHA1(tenant, fmt.Append(nil, u)))
			}
		}
		q, err := p.x.Open(tt.Context(), p.group, p.now)
		if err != nil {
			t.Fatal(err)
		}
		p.redis, p.at[0] = q, map[string]int{}
	}
	p.unpark()
}

func (p *pair) put(t *rapid.T, it queue.Item) {
	if err := p.redis.Upsert(it); err != nil {
		t.Fatal(err)
	}
	if err := p.memory.Upsert(it); err != nil {
		t.Fatal(err)
	}
}

func (p *pair) show() {
	for task, refs := range p.hidden {
		p.redis.Hide(refs[0], task, false)
		p.memory.Hide(refs[1], task, false)
	}
	clear(p.hidden)
}

func (p *pair) has(user uuid.UUID) bool {
	return slices.ContainsFunc(p.known, func(it queue.Item) bool {
		now, err := p.memory.ByID(it.TaskID)
		return err == nil && now.UserID == user
	})
}

// unpark brings back users who have no task, whom memory has forgotten.
func (p *pair) unpark() {
	for n := range 3 {
		tenant := waiting(0, n).TenantID
		for u := range 3 {
			if user := uuid.NewSHA1(tenant, fmt.Append(nil, u)); !p.has(user) {
				p.redis.Park(tenant, user)
				p.memory.Park(tenant, user)
			}
		}
	}
}

type both struct {
	task uuid.UUID
	refs [2]int
}

// heads are the tasks that both show, with the handles of each.
func (p *pair) heads(t *rapid.T) []both {
	refs := [2]map[uuid.UUID]int{{}, {}}
	for i := range 2 {
		p.advance(i)
		for _, b := range p.at[i] {
			p.reader(i).Heads(b, 16, func(int) bool { return false }, func(h control.Head) { refs[i][h.TaskID] = h.Ref })
		}
	}
	var out []both
	for task, ref := range refs[0] {
		if other, ok := refs[1][task]; ok {
			out = append(out, both{task, [2]int{ref, other}})
		}
	}
	slices.SortFunc(out, func(a, b both) int { return slices.Compare(a.task[:], b.task[:]) })
	return out
}

func (p *pair) reader(i int) queue.Reader {
	if i == 0 {
		return p.redis
	}
	return p.memory
}

func (p *pair) advance(i int) {
	p.reader(i).Advance(p.now, func(b int, lane string, tenant uuid.UUID, empty bool) {
		key := lane + tenant.String()
		p.at[i][key] = b
		if empty {
			delete(p.at[i], key)
		}
	})
}

func (p *pair) compare(t *rapid.T) {
	scan := rapid.IntRange(0, 4).Draw(t, "scan")
	var shown [2][]string
	for i := range 2 {
		p.advance(i)
		for key, b := range p.at[i] {
			p.reader(i).Heads(b, scan, func(int) bool { return false }, func(h control.Head) {
				n := p.reader(i).Need(h.Need)
				shown[i] = append(shown[i], fmt.Sprint(key, h.TaskID, h.Version, h.Band, h.CostMilli, h.QueuedSince, h.First, n))
			})
		}
		slices.Sort(shown[i])
	}
	if !slices.Equal(shown[0], shown[1]) {
		t.Fatalf("Redis shows\n%v\nmemory\n%v", shown[0], shown[1])
	}
	for _, lane := range []string{"L", "M"} {
		if a, b := p.redis.Depth(lane), p.memory.Depth(lane); a != b {
			t.Fatalf("lane %s: Redis holds %+v, memory %+v", lane, a, b)
		}
	}
	if p.redis.Len() != p.memory.Len() {
		t.Fatalf("Redis holds %d tasks, memory %d", p.redis.Len(), p.memory.Len())
	}
	if err := p.redis.Err(); err != nil {
		t.Fatal(err)
	}
}
