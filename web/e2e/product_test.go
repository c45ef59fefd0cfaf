package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"fairlane/control/run"
	"fairlane/store/storetest"
)

const (
	password     = "correct horse battery"
	startTimeout = 60 * time.Second
	stopTimeout  = 30 * time.Second
)

// product is one life of the demo in this process.
type product struct {
	t    testing.TB
	url  string
	db   *storetest.Database
	dir  string // its data directory
	stop func() // idempotent; fails the test when the product does not end well
}

// start begins a life of the demo on a database, new or not, and waits until it answers.
func start(t testing.TB, db *storetest.Database, dir string, flags ...string) *product {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, errOut := newOutput(), newOutput()
	args := append([]string{
		"demo", "--database-url", db.URL, "--redis-url", storetest.Redis(t).URL, "--data-dir", dir, "--password", password,
	}, flags...)
	if !strings.Contains(strings.Join(flags, " "), "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	ended := make(chan int, 1)
	go func() { ended <- run.MainContext(ctx, args, out, errOut) }()
	var once sync.Once
	p := &product{t: t, db: db, dir: dir}
	p.stop = func() {
		once.Do(func() {
			cancel()
			select {
			case code := <-ended:
				if code != 0 {
					t.Errorf("the product ended with %d:\n%s", code, errOut)
				}
			case <-time.After(stopTimeout):
				t.Errorf("the product does not stop within %s:\n%s", stopTimeout, errOut)
			}
			for _, line := range errOut.failures() {
				t.Errorf("the product says: %s", line)
			}
		})
	}
	t.Cleanup(p.stop)
	select {
	case p.url = <-out.address:
	case code := <-ended:
		ended <- code
		t.Fatalf("the product ended with %d:\n%s", code, errOut)
	case <-time.After(startTimeout):
		t.Fatalf("the product does not answer within %s:\n%s%s", startTimeout, out, errOut)
	}
	return p
}

// in is the product for a test below the one that started it.
func (p *product) in(t testing.TB) *product {
	own := *p
	own.t = t
	return &own
}

// output keeps what the product prints and tells its address.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	told    bool
	address chan string
}

func newOutput() *output { return &output{address: make(chan string, 1)} }

var addressLine = regexp.MustCompile(`Fairlane demo: (http://\S+)\n`)

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(p)
	if m := addressLine.FindSubmatch(o.text.Bytes()); m != nil && !o.told {
		o.told = true
		o.address <- string(m[1])
	}
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// failures are the lines of the log that a healthy product does not write.
func (o *output) failures() []string {
	var out []string
	for line := range strings.SplitSeq(o.String(), "\n") {
		var entry struct{ Level, Msg string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Level == "ERROR" {
			out = append(out, line)
		}
	}
	return out
}

// row reads one row of the product's database.
func row[T any](p *product, query string, args ...any) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	var value T
	if err := p.db.Pool.QueryRow(ctx, query, args...).Scan(&value); err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	return value
}

// head is the number of the newest policy version.
func (p *product) head() int64 {
	return row[int64](p, `SELECT max(version) FROM policy_version`)
}
