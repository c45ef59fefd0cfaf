package speed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"fairlane/control"
	"fairlane/control/queue"
	"fairlane/store/speed"
	"fairlane/store/storetest"
)

// private is an index on a server of the test's own.
func private(t *testing.T, args ...string) *speed.QueueIndex {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "r.sock")
	cmd := exec.Command("redis-server", append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	client, err := speed.Open("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for range 200 {
		if err = client.Ping(t.Context()); err == nil {
			return speed.NewQueueIndex(client, "", slog.New(slog.DiscardHandler), nil)
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatal(err)
	return nil
}

// A server that has forgotten its scripts gets them again with the next call.
func TestTrap_D35_ForgottenScriptsComeBackWithTheNextCall(t *testing.T) {
	t.Parallel()
	x := private(t)
	q := built(t, x, "G")
	for i := range 50 {
		if err := speed.Redis(x).ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := q.Upsert(waiting(i, i%3)); err != nil {
			t.Fatal(err)
		}
	}
	if err := speed.Redis(x).ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if n := open(t, x, "G").Len(); n != 50 || q.Len() != 50 {
		t.Errorf("%d and %d tasks, want 50", n, q.Len())
	}
}

// cut loses the answer of the next command after it has reached the server.
type cut struct{ now atomic.Bool }

func (c *cut) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}
func (c *cut) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (c *cut) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if name := fmt.Sprint(cmds[0].Args()[0]); strings.EqualFold(name, "evalsha") && c.now.Swap(false) {
			err = errors.New("connection lost after the command was sent")
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// An answer that is lost after the script has run: whoever applies the same events again counts nothing twice.
func TestTrap_D34_LostAnswerIsHarmless(t *testing.T) {
	t.Parallel()
	x := private(t)
	lost := &cut{}
	build(t, x, "G")
	q := begin(t, x, "G")
	if err := q.Upsert(waiting(1, 1)); err != nil { // the server knows the script
		t.Fatal(err)
	}
	speed.Redis(x).AddHook(lost)
	batch := []queue.Item{waiting(2, 1), waiting(3, 1), waiting(4, 2)}
	lost.now.Store(true)
	if err := q.Apply(batch, nil); control.CodeOf(err) != control.CodeUnavailable {
		t.Fatalf("a lost answer gives %v", err)
	}
	if q.Err() == nil {
		t.Error("the queue goes on though it does not know what was written")
	}
	q2 := open(t, x, "G")
	if err := q2.Apply(batch, nil); err != nil {
		t.Fatal(err)
	}
	if d := q2.Depth("L"); d.Tasks != 4 || d.Milli != 4000 {
		t.Errorf("depth is %+v after the same events came twice", d)
	}
}

// A server that evicts: what it drops is noticed, and the queue never shows less without saying so.
func TestTrap_D36_EvictionIsNoticed(t *testing.T) {
	t.Parallel()
	x := private(t, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru")
	if policy := eviction(t, x); policy != "allkeys-lru" {
		t.Errorf("the policy is %q", policy)
	}
	build(t, x, "G")
	q := begin(t, x, "G")
	var err error
	for i := 0; i < 400 && err == nil; i++ {
		var batch []queue.Item
		for j := range 100 {
			batch = append(batch, waiting(100*i+j, i%40))
		}
		if err = q.Apply(batch, nil); err == nil {
			err = q.Verify()
		}
	}
	if err == nil {
		t.Fatal("40,000 tasks in 3 MB, and nothing was noticed")
	}
	if code := control.CodeOf(err); code != control.CodeNotFound && code != control.CodeUnavailable {
		t.Errorf("it was noticed as %v", err)
	}
	if err := x.Begin(t.Context(), "G", true); err != nil {
		t.Errorf("the index cannot be begun anew: %v", err)
	}
}

func eviction(t *testing.T, x *speed.QueueIndex) string {
	t.Helper()
	client, err := speed.Open("unix://" + speed.Redis(x).Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // of the test
	policy, err := client.Eviction(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// Lost keys and wrong types, one by one, while a queue reads on: either it goes on with what is left, or
// it ends and says why. It never shows a task in a wrong place.
func TestQueueWithoutOneOfItsKeys(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"units", "items", "active", "delayed", "oldest", "needs", "t:*"} {
		for _, spoil := range []string{"lost", "wrong type"} {
			t.Run(name+" "+spoil, func(t *testing.T) {
				t.Parallel()
				x := speed.Small(private(t))
				build(t, x, "G")
				q := begin(t, x, "G")
				var items []queue.Item
				for i := range 60 {
					it := waiting(i, i%3)
					if i%4 == 0 {
						it.EligibleAt = it.EligibleAt.Add(time.Hour)
					}
					items = append(items, it)
				}
				if err := q.Apply(items, nil); err != nil {
					t.Fatal(err)
				}
				now := items[1].EligibleAt.Add(time.Minute)
				at := map[string]int{}
				q.Advance(now, numbers(at))
				ctx := t.Context()
				for it := speed.Redis(x).Scan(ctx, 0, "q:*:"+name, 1000).Iterator(); it.Next(ctx); {
					speed.Redis(x).Del(ctx, it.Val())
					if spoil == "wrong type" {
						speed.Redis(x).SetNX(ctx, it.Val(), "x", 0)
					}
				}
				shown := drainHeads(q, at, now.Add(2*time.Hour))
				if q.Err() == nil {
					_ = q.Verify() // which may end it
				}
				if code := control.CodeOf(q.Err()); q.Err() != nil && code != control.CodeNotFound {
					t.Errorf("it ended with %v", q.Err())
				}
				for _, id := range shown {
					if !slices.ContainsFunc(items, func(it queue.Item) bool { return it.TaskID == id }) {
						t.Errorf("it shows %v, which was never there", id)
					}
				}
				if len(shown) < len(items) && q.Err() == nil {
					t.Errorf("%d of %d shown, and nothing is said", len(shown), len(items))
				}
			})
		}
	}
}

// numbers keeps the numbers of backlogs.
func numbers(at map[string]int) func(int, string, uuid.UUID, bool) {
	return func(b int, lane string, tenant uuid.UUID, empty bool) {
		at[lane+tenant.String()] = b
		if empty {
			delete(at, lane+tenant.String())
		}
	}
}

// drainHeads takes heads as a scheduler does, until none is left.
func drainHeads(q *speed.Queue, at map[string]int, now time.Time) []uuid.UUID {
	var out []uuid.UUID
	for {
		q.Advance(now, numbers(at))
		var heads []queue.Gone
		for _, b := range at {
			q.Heads(b, 4, func(int) bool { return false }, func(h control.Head) {
				heads = append(heads, queue.Gone{TaskID: h.TaskID, Version: h.Version + 1})
			})
		}
		if len(heads) == 0 {
			return out
		}
		for _, h := range heads {
			out = append(out, h.TaskID)
		}
		if q.Apply(nil, heads) != nil {
			return out
		}
	}
}

// 100,000 tasks of 10,000 tenants, FAIRLANE_TEST_SCALE times as many where it is set: what Redis and the process
// hold of it, and how long a new term takes to begin.
func TestMemoryOfALongBacklog(t *testing.T) {
	tasks := 100_000
	if n, err := strconv.Atoi(os.Getenv("FAIRLANE_TEST_SCALE")); err == nil && n > 0 {
		tasks *= n
	}
	tenants := tasks / 10
	x := private(t)
	build(t, x, "G")
	q := begin(t, x, "G")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	batch := make([]queue.Item, 0, 2000)
	start := time.Unix(1_700_000_000, 0).UTC()
	q.Advance(start, func(int, string, uuid.UUID, bool) {})
	for i := range tasks {
		batch = append(batch, waiting(i, i%tenants))
		if len(batch) == cap(batch) || i == tasks-1 {
			if err := q.Apply(batch, nil); err != nil {
				t.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	wrote, followed := time.Since(began), speed.Loaded(q)
	q = nil
	began = time.Now()
	q = begin(t, x, "G")
	opened := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	info, err := speed.Redis(x).Info(t.Context(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "used_memory:")
	number, _, _ := strings.Cut(rest, "\r\n")
	redisBytes, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatal(err)
	}
	if q.Len() != tasks {
		t.Errorf("%d of %d tasks are held", q.Len(), tasks)
	}
	if n := speed.Loaded(q); n > 4*tenants {
		t.Errorf("the process holds %d tasks of %d tenants", n, tenants)
	}
	const mb = 1e6
	process := float64(after.HeapAlloc) - float64(before.HeapAlloc)
	storetest.Figure(t, "queue on Redis: %d tasks of %d tenants take %.0f MB on Redis and %.0f MB in the process, which holds %d of them (%d when it has followed them all); written in %.1f s, a new term begins after %.2f s",
		tasks, tenants, redisBytes/mb, process/mb, speed.Loaded(q), followed, wrote.Seconds(), opened.Seconds())
	runtime.KeepAlive(q)
}
