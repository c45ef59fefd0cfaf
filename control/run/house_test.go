package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "fairlane"

// arrows says which rooms a room may import. "a/..." means a and all below it. A room may always import
// what lies in its own folder and below. The first entry that matches a room is its only one.
var arrows = []struct{ from, to string }{
	{"", "control/run"}, // main.go
	{"control/run/...", "control/... policy/... audit/... store/... migrations web/... views/..."},
	{"control", ""},
	{"control/crashpoint", ""},
	{"control/simulate/...", deciders + " control/admit"},
	{"control/admit/...", deciders},
	{"control/schedule/...", deciders},
	{"control/dispatch/...", deciders},
	{"control/worker/...", deciders},
	{"control/reconcile/...", deciders},
	{"control/explain/...", deciders},
	{"control/monitor/...", deciders},
	{"control/plan/...", words + " control/fair"},
	{"control/fair/...", words},
	{"control/queue/...", words},
	{"control/estimate/...", words},
	{"control/provider/...", words},
	{"control/lead/...", words},
	{"control/service/...", words},
	{"policy/...", "control control/crashpoint audit/..."},
	{"audit/...", "control control/crashpoint"},
	{"migrations", ""},
	{"store", ""},
	{"store/storetest/...", "store/... migrations control/... policy/... audit/..."},
	{"store/facts/...", "migrations control/... policy/... audit/..."},
	{"store/speed/...", "control/... policy/... audit/..."},
	{"store/embedded/...", "control/... policy/... audit/..."},
	{"web/e2e/...", "web/... views/... control/... policy/... audit/... store/... migrations"},
	{"web/...", "web/... views/... control/... policy/... audit/..."},
	{"views/...", "views/..."},
}

const (
	words    = "control control/crashpoint policy/... audit/..."
	deciders = words + " control/plan control/fair control/queue control/estimate control/provider/... control/lead control/service"
)

// inTests are arrows of tests alone, beside those to real stores.
var inTests = []struct{ from, to string }{
	{"control/plan/...", "control/queue/..."},                                    // golden cases run over the real queue
	{"control/dispatch/...", "control/schedule"},                                 // attempts come from real claims
	{"control/schedule/...", "control/admit control/dispatch control/reconcile"}, // a lost index is rebuilt
	{"control/reconcile/...", "control/admit"},                                   // what waits was admitted
}

// importers narrows who may import a room, whatever its own arrows say.
var importers = []struct{ to, from string }{
	{"control/run/...", "control/run/... web/e2e/..."},
	{"store/storetest/...", "store/storetest/..."}, // tests beside: see allowed
}

// pure rooms have no stores, also in their tests.
const pure = "control control/fair/... control/plan/... control/estimate/... policy/... audit/... views/... migrations"

func covers(patterns, room string) bool {
	for pattern := range strings.FieldsSeq(patterns) {
		base, deep := strings.CutSuffix(pattern, "/...")
		if room == base || deep && strings.HasPrefix(room, base+"/") {
			return true
		}
	}
	return false
}

// allowed tells whether the arrow exists; inTest adds what tests may use: real stores, never mocks of them.
func allowed(from, to string, inTest bool) (ok, known bool) {
	for _, a := range arrows {
		if a.from != from && !covers(a.from, from) {
			continue
		}
		if from == to || to != "" && strings.HasPrefix(to, from+"/") && from != "" && from != "control" {
			return true, true
		}
		for _, i := range inTests {
			if inTest && covers(i.from, from) && covers(i.to, to) {
				return true, true
			}
		}
		if inTest && covers("store/... migrations", to) && !covers(pure, from) {
			const facts, speed = "store/facts/...", "store/speed/..."
			mixed := covers(facts, from) && covers(speed, to) || covers(speed, from) && covers(facts, to)
			return !mixed, true
		}
		for _, i := range importers {
			if covers(i.to, to) && !covers(i.from, from) && from != "" {
				return false, true
			}
		}
		own, _ := strings.CutSuffix(a.from, "/...")
		return covers(a.to, to) || own != a.from && covers(own+"/...", to), true
	}
	return false, false
}

type listed struct {
	ImportPath, Dir, Doc               string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,Doc,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func room(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func TestHouseArrows(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, p := range packages(t) {
		from, _ := room(p.ImportPath)
		if _, known := allowed(from, from, false); !known {
			t.Errorf("room %q is not in the list of rooms and arrows", from)
		}
		check := func(imports []string, inTest bool) {
			for _, path := range imports {
				to, ours := room(path)
				if !ours || to == from {
					continue
				}
				seen++
				if ok, _ := allowed(from, to, inTest); !ok {
					t.Errorf("%s imports %s (in a test: %v): the house has no such arrow", p.ImportPath, path, inTest)
				}
			}
		}
		check(p.Imports, false)
		check(p.TestImports, true)
		check(p.XTestImports, true)
	}
	if seen < 20 {
		t.Errorf("only %d arrows were looked at", seen)
	}
}

// The rules themselves: what the house forbids must be forbidden here.
func TestHouseRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		inTest   bool
		want     bool
	}{
		{"", "control/run", false, true},
		{"", "web", false, false},
		{"control/run", "store/facts", false, true},
		{"control/run/demo", "policy", false, true},
		{"control/schedule", "store/facts", false, false},
		{"control/schedule", "store/facts", true, true},
		{"control/schedule", "control/plan", false, true},
		{"control/schedule", "control/dispatch", false, false},
		{"control/simulate", "control/admit", false, true},
		{"control/explain", "control/admit", false, false},
		{"control/plan", "control/fair", false, true},
		{"control/plan", "control/schedule", false, false},
		{"control/plan", "store/storetest", true, false},
		{"control/plan", "control/queue", false, false},
		{"control/plan", "control/queue", true, true},
		{"control/fair", "control/plan", false, false},
		{"control/fair", "control", false, true},
		{"control", "control/fair", false, false},
		{"control", "policy", false, false},
		{"control/monitor", "web", false, false},
		{"control/monitor", "control/run", false, false},
		{"control/provider/simulated", "control/provider", false, true},
		{"policy", "control", false, true},
		{"policy", "control/plan", false, false},
		{"policy", "audit", false, true},
		{"audit", "policy", false, false},
		{"web/console", "views/page", false, true},
		{"web/console", "store/facts", false, false},
		{"web/console", "store/storetest", true, true},
		{"web/console", "control/run", true, false},
		{"web/e2e", "control/run", true, true},
		{"views/page", "views/part", false, true},
		{"views/page", "control", false, false},
		{"store/facts", "store/speed", false, false},
		{"store/facts", "store/speed", true, false},
		{"store/facts", "control/schedule", false, true},
		{"store/facts", "control/run", false, false},
		{"store/facts", "store/storetest", false, false},
		{"store/facts", "store/storetest", true, true},
		{"store/facts", "web", false, false},
		{"store/storetest", "store/facts", false, true},
		{"control/run", "store/storetest", false, false},
		{"control/run", "store/storetest", true, true},
	} {
		if got, known := allowed(c.from, c.to, c.inTest); got != c.want || !known {
			t.Errorf("%s to %s (in a test: %v): allowed %v, want %v (known: %v)", c.from, c.to, c.inTest, got, c.want, known)
		}
	}
	if _, known := allowed("control/util", "control", false); known {
		t.Error("an unknown room passes")
	}
}

func TestHouseEveryRoomSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

func TestHouseEveryTestedRoomLooksForLeaks(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		files := slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		if len(files) == 0 {
			continue
		}
		found := slices.ContainsFunc(files, func(name string) bool {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			return err == nil && bytes.Contains(text, []byte("goleak.VerifyTestMain("))
		})
		if !found {
			t.Errorf("%s has tests and no goleak.VerifyTestMain", p.ImportPath)
		}
	}
}

func TestHouseTopLevel(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	const fixed = "go.mod go.sum main.go web views control policy store audit migrations Makefile README.md LICENSE CHANGELOG.md"
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(strings.Fields(fixed), e.Name()) {
			t.Errorf("%s lies at the top level, which is fixed", e.Name())
		}
	}
}
