package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fairlane/policy"
)

// scenario is a golden case: a text that a person can read, with its answer after "-- expect".
type scenario struct {
	set     map[string]int64
	pools   []gPool
	lanes   []gLane
	tenants []gTenant
	tasks   []gTask
	events  []gEvent
	until   int64 // -1: until nothing happens any more
	expect  []gStarts
	never   []gNever
	// for own cases: lines of the file in the order of one instant
	order []gLine
}

type (
	gPool struct {
		name     string
		capacity int64
		parents  []string
		lanes    []string // dedicated
		minimums []policy.LaneMinimum
	}
	gLane struct {
		name string
		num  map[string]int64
	}
	gTenant struct {
		name, lane string
		num        map[string]int64
	}
	gTask struct {
		name, tenant, user string
		pools              []string
		num                map[string]int64
		copies             int
	}
	gEvent struct {
		at   int64
		what []string // pool NAME units, cancel TASK, wake, lane NAME key=value, tenant NAME key=value, set key=value,
		// drop LANE, breaker POOL open or closed, limit POOL units, settle TENANT units (below 0: credit)
	}
	gLine   struct{ task, event int } // one of them, from 1
	gStarts struct {
		at     int64
		starts []gStart
	}
	gStart struct{ task, pool, account string }
	gNever struct{ task, gate string }
)

var (
	setKeys    = []string{"base", "burst_rounds", "repay", "max_skips", "earmark_timeout", "aging_step", "aging_cap", "common", "credit", "fit_scan", "running", "earmark_after"}
	laneKeys   = []string{"w", "own", "headroom", "lendable", "borrow_limit", "borrow_timeout", "cooldown", "wrr", "paused"}
	tenantKeys = []string{"w", "reserve", "burst", "max", "max_tasks", "user_cap", "debt"}
	taskKeys   = []string{"band", "cost", "slots", "run", "at", "since"}
)

func parse(text string) (*scenario, error) {
	s := &scenario{set: map[string]int64{}, until: -1}
	expecting := false
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var err error
		switch {
		case strings.TrimSpace(line) == "-- expect" && !expecting:
			expecting = true
		case expecting:
			err = s.answer(words)
		default:
			err = s.input(words)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if !expecting {
		return nil, errors.New("there is no -- expect")
	}
	return s, nil
}

func (s *scenario) input(w []string) error {
	switch {
	case w[0] == "set":
		return pairs(w[1:], s.set, setKeys)
	case w[0] == "pool" && len(w) >= 3:
		n, err := number(w[2])
		if err != nil {
			return err
		}
		p := gPool{name: w[1], capacity: n}
		for _, x := range w[3:] {
			k, v, _ := strings.Cut(x, "=")
			switch k {
			case "in":
				p.parents = strings.Split(v, ",")
			case "lanes":
				p.lanes = strings.Split(v, ",")
			case "min":
				lane, units, _ := strings.Cut(v, ":")
				n, err := number(units)
				if err != nil {
					return err
				}
				p.minimums = append(p.minimums, policy.LaneMinimum{Lane: lane, Units: n})
			default:
				return fmt.Errorf("a pool has no %q", x)
			}
		}
		s.pools = append(s.pools, p)
	case w[0] == "lane" && len(w) >= 2:
		l := gLane{name: w[1], num: map[string]int64{}}
		s.lanes = append(s.lanes, l)
		return pairs(w[2:], l.num, laneKeys)
	case w[0] == "tenant" && len(w) >= 3 && strings.HasPrefix(w[2], "lane="):
		t := gTenant{name: w[1], lane: w[2][5:], num: map[string]int64{}}
		s.tenants = append(s.tenants, t)
		return pairs(w[3:], t.num, tenantKeys)
	case w[0] == "task" && len(w) >= 3:
		return s.task(w)
	case w[0] == "at" && len(w) >= 3:
		n, err := number(w[1])
		if err != nil {
			return err
		}
		s.events = append(s.events, gEvent{n, w[2:]})
		s.order = append(s.order, gLine{event: len(s.events)})
		return checkEvent(w[2:])
	case w[0] == "until" && len(w) == 2:
		n, err := number(w[1])
		s.until = n
		return err
	default:
		return fmt.Errorf("%q is not understood", strings.Join(w, " "))
	}
	return nil
}

func (s *scenario) task(w []string) error {
	t := gTask{name: w[1], tenant: w[2], user: w[2], num: map[string]int64{}}
	var rest []string
	for _, x := range w[3:] {
		k, v, _ := strings.Cut(x, "=")
		switch k {
		case "pools":
			t.pools = strings.Split(v, ",")
		case "user":
			t.user = v
		case "x":
			n, err := number(v)
			if err != nil || n < 1 || n > 99 {
				return fmt.Errorf("x=%s is not 1 to 99", v)
			}
			t.copies = int(n)
		default:
			rest = append(rest, x)
		}
	}
	if len(t.pools) == 0 {
		return fmt.Errorf("task %s names no pools", t.name)
	}
	s.tasks = append(s.tasks, t)
	s.order = append(s.order, gLine{task: len(s.tasks)})
	return pairs(rest, t.num, taskKeys)
}

func checkEvent(w []string) error {
	switch {
	case w[0] == "pool" && len(w) == 3:
		_, err := number(w[2])
		return err
	case w[0] == "limit" && len(w) == 3:
		_, err := number(w[2])
		return err
	case w[0] == "settle" && len(w) == 3:
		_, err := number(strings.TrimPrefix(w[2], "-"))
		return err
	case w[0] == "breaker" && len(w) == 3 && (w[2] == "open" || w[2] == "closed"):
		return nil
	case w[0] == "cancel" && len(w) == 2, w[0] == "drop" && len(w) == 2, w[0] == "wake" && len(w) == 1:
		return nil
	case w[0] == "lane" && len(w) >= 3:
		return pairs(w[2:], map[string]int64{}, laneKeys)
	case w[0] == "tenant" && len(w) >= 3:
		return pairs(w[2:], map[string]int64{}, tenantKeys)
	case w[0] == "set" && len(w) >= 2:
		return pairs(w[1:], map[string]int64{}, setKeys)
	}
	return fmt.Errorf("event %q is not understood", strings.Join(w, " "))
}

func (s *scenario) answer(w []string) error {
	if w[0] == "never:" && len(w) == 3 {
		s.never = append(s.never, gNever{w[1], strings.Trim(w[2], "()")})
		return nil
	}
	at, ok := strings.CutPrefix(strings.TrimSuffix(w[0], ":"), "t=")
	n, err := number(at)
	if !ok || err != nil {
		return fmt.Errorf("answer %q is not understood", w[0])
	}
	out := gStarts{at: n}
	for _, x := range w[1:] {
		task, rest, _ := strings.Cut(x, "@")
		pool, account, _ := strings.Cut(rest, ":")
		out.starts = append(out.starts, gStart{task, pool, account})
	}
	s.expect = append(s.expect, out)
	return nil
}

// dedicated lists the lanes that a pool of the text is for; none: every lane.
func (s *scenario) dedicated(pool string) []string {
	i := slices.IndexFunc(s.pools, func(p gPool) bool { return p.name == pool })
	if i < 0 {
		return nil
	}
	return s.pools[i].lanes
}

func pairs(words []string, into map[string]int64, known []string) error {
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || !slices.Contains(known, k) {
			return fmt.Errorf("%q is not one of %v", w, known)
		}
		n, err := number(v)
		if err != nil {
			return err
		}
		into[k] = n
	}
	return nil
}

func number(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1_000_000_000 {
		return 0, fmt.Errorf("%q is not a number from 0 to 1000000000", s)
	}
	return n, nil
}

func FuzzParse(f *testing.F) {
	for _, text := range goldenTexts(f) {
		f.Add(text)
	}
	f.Add("task a A x=0 pools=X\n-- expect\n")
	f.Add("set base=-1\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse(text)
		if err != nil {
			return
		}
		for _, k := range s.tasks {
			if len(k.pools) == 0 || k.copies < 0 || k.copies > 99 {
				t.Errorf("task %q came through with pools %v, %d copies", k.name, k.pools, k.copies)
			}
		}
		for _, e := range s.events {
			if e.at < 0 || len(e.what) == 0 {
				t.Errorf("event %v came through", e)
			}
		}
	})
}
