package speed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/control/queue"
	"fairlane/store/speed"
)

// hashSlot is the slot of a Redis Cluster that a key lies in: CRC16 (XMODEM) of its hash tag, modulo 16384.
func hashSlot(key string) int {
	if i := strings.IndexByte(key, '{'); i >= 0 {
		if j := strings.IndexByte(key[i+1:], '}'); j > 0 {
			key = key[i+1 : i+1+j]
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % 16384)
}

func TestHashSlotIsThatOfACluster(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{"123456789": 12739, "foo": 12182, "{foo}.bar": 12182, "a{}b": hashSlot("a{}b")} {
		if got := hashSlot(key); got != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
	}
}

// Every script and every command with keys stays inside of one slot of a cluster, whatever the codes of
// lanes and groups look like.
func TestEveryCommandOfTheIndexStaysInOneHashSlot(t *testing.T) {
	t.Parallel()
	x := index(t)
	var mu sync.Mutex
	scripts, commands := map[string]int{}, 0
	speed.Spy(x, func(args []any) {
		mu.Lock()
		defer mu.Unlock()
		var keys []any
		switch name := strings.ToLower(fmt.Sprint(args[0])); name {
		case "eval", "evalsha":
			keys = args[3 : 3+args[2].(int)]
			scripts[name]++
		case "hello", "client", "ping", "scan", "multi", "exec":
			return
		case "unlink", "del":
			keys = args[1:]
		default:
			keys = args[1:2]
		}
		commands++
		for _, k := range keys {
			if hashSlot(fmt.Sprint(k)) != hashSlot(fmt.Sprint(keys[0])) {
				t.Errorf("%v touches keys of several slots: %v", args[0], keys)
			}
			if !strings.Contains(fmt.Sprint(k), "{") {
				t.Errorf("key %v has no hash tag", k)
			}
		}
	})
	for _, codes := range [][2]string{{"L", "G"}, {"odd}lane{", "g {x} /%"}} {
		work(t, x, codes[0], codes[1])
	}
	if scripts["evalsha"] < 20 || commands < 100 {
		t.Errorf("only %v and %d commands were seen", scripts, commands)
	}
}

// work uses everything of an index once.
func work(t *testing.T, x *speed.QueueIndex, lane, group string) {
	t.Helper()
	q := built(t, x, group)
	now := time.Unix(1_700_000_000, 0).UTC()
	var items []queue.Item
	for i := range 50 {
		it := waiting(i, i%7)
		it.Lane, it.Group = lane, group
		if i%5 == 0 {
			it.EligibleAt = now.Add(time.Duration(i+1) * time.Second)
		}
		items = append(items, it)
	}
	if err := q.Apply(items, nil); err != nil {
		t.Fatal(err)
	}
	q.Advance(now.Add(time.Minute), func(int, string, uuid.UUID, bool) {})
	q.Depth(lane)
	q.Remove(items[3].TaskID, 9)
	if err := q.Verify(); err != nil {
		t.Fatal(err)
	}
	if entries, err := q.Examine([]uuid.UUID{items[1].TaskID, uuid.New()}); err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	for at := (queue.Cursor{}); !at.Done; {
		entries, next, err := x.Scan(t.Context(), group, at, 10)
		if err != nil {
			t.Fatal(err)
		}
		var repairs []queue.Repair
		for _, e := range entries {
			repairs = append(repairs, queue.Repair{Entry: e})
		}
		if n, err := x.Repair(t.Context(), group, repairs); err != nil || n != len(repairs) {
			t.Fatal(n, err)
		}
		at = next
	}
	if d := open(t, x, group).Depth(lane); d != (queue.Depth{}) {
		t.Errorf("after all was repaired away: %+v", d)
	}
	if err := x.Begin(t.Context(), group, true); err != nil {
		t.Fatal(err)
	}
}

// waiting is task n of a tenant, eligible since long.
func waiting(n, tenant int) queue.Item {
	since := time.Unix(1_700_000_000, 0).UTC()
	return queue.Item{
		TaskID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n)), Version: 1, TenantID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, "t", tenant)),
		UserID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, "u", tenant)), Lane: "L", Group: "G", Band: 2, Route: "r", Model: "m", Kind: "VIDEO",
		SlotUnits: 1, CostMilli: 1000, P95: time.Minute, QueuedSince: since.Add(time.Duration(n) * time.Millisecond), EligibleAt: since,
	}
}

// Scripts build no keys: everything that they touch is in KEYS.
func TestScriptsDeclareTheirKeys(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("lua/*.lua")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	call := regexp.MustCompile(`redis\.call\('[A-Z]+', ([^,)]+)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(m[1], "KEYS[") {
				t.Errorf("%s: %s", file, m[0])
			}
		}
		for _, head := range []string{"-- KEYS", "-- ARGV", "-- Reply", "-- Bound"} {
			if !strings.Contains(string(text), head) {
				t.Errorf("%s does not say %s", file, head)
			}
		}
	}
}
