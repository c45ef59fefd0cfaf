package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"fairlane/control/monitor"
	"fairlane/policy/access"
	"fairlane/web/live"
)

func TestMain(m *testing.M) { gin.SetMode(gin.ReleaseMode); goleak.VerifyTestMain(m) }

// feed is a source of topics that a test moves.
type feed struct {
	mu        sync.Mutex
	snaps     map[monitor.Topic]monitor.Snapshot
	followers map[monitor.Topic][]func(monitor.Update)
	watched   map[monitor.Topic]int
}

func newFeed(epoch string) *feed {
	f := &feed{snaps: map[monitor.Topic]monitor.Snapshot{}, followers: map[monitor.Topic][]func(monitor.Update){}, watched: map[monitor.Topic]int{}}
	for _, t := range monitor.Topics {
		f.snaps[t] = monitor.Snapshot{Topic: t, Epoch: epoch, AsOf: time.Now()}
	}
	return f
}

func (f *feed) Attach(t monitor.Topic, fn func(monitor.Update)) (func(), bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.snaps[t]
	if !ok {
		return nil, false
	}
	f.followers[t] = append(f.followers[t], fn)
	fn(monitor.Update{Snapshot: s})
	return func() {}, true
}

func (f *feed) Watch(t monitor.Topic) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watched[t]++
	return sync.OnceFunc(func() { f.mu.Lock(); defer f.mu.Unlock(); f.watched[t]-- })
}

func (f *feed) watchers(t monitor.Topic) int { f.mu.Lock(); defer f.mu.Unlock(); return f.watched[t] }

// set makes a row of the topic say text, as the next number.
func (f *feed) set(t monitor.Topic, key, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row := monitor.Row{Key: key, JSON: json.RawMessage(`{"text":` + quote(text) + `}`)}
	s := f.snaps[t]
	rows := append([]monitor.Row(nil), s.Rows...)
	found := false
	for i := range rows {
		if rows[i].Key == key {
			rows[i], found = row, true
		}
	}
	if !found {
		rows = append(rows, row)
	}
	s.Rows, s.AsOf = rows, time.Now()
	s.Seq++
	f.snaps[t] = s
	for _, fn := range f.followers[t] {
		fn(monitor.Update{Snapshot: s, Patch: &monitor.Patch{Set: []monitor.Row{row}}})
	}
}

func quote(s string) string { raw, _ := json.Marshal(s); return string(raw) }

// people decides who may what; a session lives until it is ended.
type people struct {
	mu      sync.Mutex
	rights  map[uuid.UUID]access.Rights
	ended   map[string]bool
	version atomic.Int64
	down    error
}

func (p *people) set(fn func()) { p.mu.Lock(); defer p.mu.Unlock(); fn() }

func (p *people) Rights(id uuid.UUID) (access.Rights, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rights[id], p.down
}

func (p *people) Version() int64 { return p.version.Load() }

func (p *people) Alive(_ context.Context, sessions []string) (map[string]bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]bool{}
	for _, s := range sessions {
		if !p.ended[s] {
			out[s] = true
		}
	}
	return out, p.down
}

var topics = map[string]access.Permission{
	"overview": access.LiveOverview, "lanes": access.LiveLanes, "pools": access.LivePools, "tenants": access.LiveTenants, "queue": access.LiveQueue, "health": access.LiveHealth,
}

// stand is a hub behind a real server. The cookie "who" names operator and session.
type stand struct {
	hub    *live.Hub
	feed   *feed
	people *people
	url    string
	server *httptest.Server
}

var operatorID = uuid.MustParse("00000000-0000-7000-8000-000000000001")

// rightsOf builds rights as the enforcer does, from grants over the shipped rules.
func rightsOf(t testing.TB, grants ...access.Grant) access.Rights {
	t.Helper()
	e, err := access.NewEnforcer(t.Context(), access.Config{Source: rules{grants}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Rights(operatorID)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type rules struct{ grants []access.Grant }

func (rules) AccessVersion(context.Context) (int64, error) { return 1, nil }
func (r rules) LoadAccess(context.Context) (access.Ruleset, error) {
	return access.Ruleset{Version: 1, Rules: access.Shipped(), Grants: r.grants}, nil
}

func newStand(t testing.TB, change func(*live.Config)) *stand {
	t.Helper()
	s := &stand{feed: newFeed("e1"), people: &people{ended: map[string]bool{}, rights: map[uuid.UUID]access.Rights{}}}
	s.people.rights[operatorID] = rightsOf(t, access.Grant{Operator: operatorID, Role: access.Viewer})
	s.feed.set(monitor.TopicLanes, "STANDARD", "one")
	cfg := live.Config{Feed: s.feed, Rights: s.people, Sessions: s.people, Topics: topics, Log: slog.New(slog.DiscardHandler),
		BeatEvery: 100 * time.Millisecond, CheckEvery: 100 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	var err error
	if s.hub, err = live.New(cfg); err != nil {
		t.Fatal(err)
	}
	engine := gin.New()
	engine.GET("/live", func(c *gin.Context) {
		session, err := c.Cookie("who")
		if err == nil {
			c.Request = c.Request.WithContext(access.WithSubject(c.Request.Context(), access.Subject{Operator: operatorID, Session: session}))
		}
	}, s.hub.Handle)
	s.server = httptest.NewServer(engine)
	s.url = s.server.URL
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.hub.Run(ctx) })
	t.Cleanup(func() {
		shut, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_ = s.hub.Shutdown(shut)
		stop()
		running.Wait()
		s.server.Close()
	})
	return s
}

// dial opens a socket as a browser on this host does; headers replace those of the handshake.
func (s *stand) dial(session string, headers http.Header) (*websocket.Conn, *http.Response, error) {
	h := http.Header{"Origin": {s.url}, "Cookie": {"who=" + session}}
	for name, values := range headers {
		h[name] = values
		if len(values) == 0 {
			delete(h, name)
		}
	}
	d := websocket.Dialer{HandshakeTimeout: 5 * time.Second, EnableCompression: true}
	return d.Dial("ws"+strings.TrimPrefix(s.url, "http")+"/live", h)
}

type client struct {
	t    testing.TB
	conn *websocket.Conn
	seq  map[string]int64
	rows map[string]map[string]string // topic → key → text
	snap int                          // snapshots seen
}

func (s *stand) client(t testing.TB, session string) *client {
	t.Helper()
	conn, answer, err := s.dial(session, nil)
	if err != nil {
		t.Fatalf("dial: %v %+v", err, answer)
	}
	_ = answer.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn, seq: map[string]int64{}, rows: map[string]map[string]string{}}
}

func (c *client) say(text string) {
	c.t.Helper()
	if err := c.conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) hello(names ...string) {
	c.t.Helper()
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = `{"topic":"` + n + `","epoch":"","seq":0}`
	}
	c.say(`{"hello":{"topics":[` + strings.Join(parts, ",") + `]}}`)
}

type frame struct {
	Topic    string `json:"topic"`
	Epoch    string `json:"epoch"`
	Seq      int64  `json:"seq"`
	AsOf     int64  `json:"as_of"`
	Now      int64  `json:"now"`
	Resumed  bool   `json:"resumed"`
	Snapshot *struct {
		Order []string `json:"order"`
		Rows  map[string]struct {
			Text string `json:"text"`
		} `json:"rows"`
	} `json:"snapshot"`
	Patch *struct {
		Set map[string]struct {
			Text string `json:"text"`
		} `json:"set"`
		Gone []string `json:"gone"`
	} `json:"patch"`
	Beat *struct {
		Epoch  string `json:"epoch"`
		Now    int64  `json:"now"`
		Topics map[string]struct {
			Seq  int64 `json:"seq"`
			AsOf int64 `json:"as_of"`
		} `json:"topics"`
	} `json:"beat"`
}

// next returns the next frame and applies it; an error is that of the connection.
func (c *client) next() (frame, error) {
	var f frame
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, text, err := c.conn.ReadMessage()
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		c.t.Fatalf("%v in %s", err, text)
	}
	switch {
	case f.Snapshot != nil:
		c.snap++
		c.rows[f.Topic] = map[string]string{}
		for k, r := range f.Snapshot.Rows {
			c.rows[f.Topic][k] = r.Text
		}
		c.seq[f.Topic] = f.Seq
	case f.Resumed:
		if f.Seq != c.seq[f.Topic] {
			c.t.Errorf("resumed at %d, had %d", f.Seq, c.seq[f.Topic])
		}
	case f.Patch != nil:
		if f.Seq != c.seq[f.Topic]+1 {
			c.t.Errorf("patch %d after %d", f.Seq, c.seq[f.Topic])
		}
		for k, r := range f.Patch.Set {
			c.rows[f.Topic][k] = r.Text
		}
		c.seq[f.Topic] = f.Seq
	}
	return f, nil
}

// until reads until is; it fails the test when the connection ends first.
func (c *client) until(what string, is func(frame) bool) frame {
	c.t.Helper()
	for {
		f, err := c.next()
		if err != nil {
			c.t.Fatalf("waiting for %s: %v", what, err)
		}
		if is(f) {
			return f
		}
	}
}

// closeCode reads to the end and returns the code.
func (c *client) closeCode() int {
	c.t.Helper()
	for {
		if _, err := c.next(); err != nil {
			var closed *websocket.CloseError
			if !errors.As(err, &closed) {
				c.t.Fatalf("ended with %v", err)
			}
			return closed.Code
		}
	}
}

func snapshotOf(topic string) func(frame) bool {
	return func(f frame) bool { return f.Topic == topic && f.Snapshot != nil }
}

func TestSnapshotThenPatchesThenBeats(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	c := s.client(t, "a")
	c.hello("lanes", "pools")
	f := c.until("the snapshot", snapshotOf("lanes"))
	if f.Epoch != "e1" || f.Seq != 1 || f.AsOf == 0 || f.Now == 0 || c.rows["lanes"]["STANDARD"] != "one" {
		t.Errorf("%+v", f)
	}
	s.feed.set(monitor.TopicLanes, "STANDARD", "two")
	s.feed.set(monitor.TopicTenants, "x", "not asked for")
	c.until("the patch", func(f frame) bool { return f.Patch != nil && f.Seq == 2 })
	if c.rows["lanes"]["STANDARD"] != "two" || c.rows["tenants"] != nil {
		t.Errorf("%+v", c.rows)
	}
	b := c.until("a beat", func(f frame) bool { return f.Beat != nil && f.Beat.Topics["lanes"].Seq == 2 })
	if b.Beat.Epoch != "e1" || b.Beat.Topics["lanes"].AsOf == 0 || b.Beat.Now == 0 {
		t.Errorf("%+v", b.Beat)
	}
	if s.feed.watchers(monitor.TopicLanes) != 1 {
		t.Error("the topic is not watched")
	}
	_ = c.conn.Close()
	for deadline := time.Now().Add(5 * time.Second); s.feed.watchers(monitor.TopicLanes) != 0 || s.hub.Open() != 0; {
		if time.Now().After(deadline) {
			t.Fatal("a socket that is gone is still counted")
		}
		runtime.Gosched()
	}
}

// TestE21_ResumeWithoutGapOrDoubleCount cuts the connection while changes flow.
func TestE21_ResumeWithoutGapOrDoubleCount(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	c := s.client(t, "a")
	c.hello("lanes")
	c.until("the snapshot", snapshotOf("lanes"))
	for i := range 10 {
		s.feed.set(monitor.TopicLanes, "STANDARD", fmt.Sprint(i))
	}
	c.until("the last", func(f frame) bool { return f.Seq == 11 })
	_ = c.conn.Close()
	for i := range 30 {
		s.feed.set(monitor.TopicLanes, fmt.Sprint("k", i%5), fmt.Sprint(i))
	}
	back := s.client(t, "a")
	back.seq, back.rows = c.seq, c.rows
	back.say(`{"hello":{"topics":[{"topic":"lanes","epoch":"e1","seq":11}]}}`)
	back.until("the last", func(f frame) bool { return f.Seq == 41 })
	if back.snap != 0 {
		t.Error("30 patches were known, yet a snapshot came")
	}
	fresh := s.client(t, "a")
	fresh.hello("lanes")
	fresh.until("the snapshot", snapshotOf("lanes"))
	if fmt.Sprint(back.rows) != fmt.Sprint(fresh.rows) {
		t.Errorf("resumed: %v, fresh: %v", back.rows, fresh.rows)
	}

	// Too long away, from another process, or ahead of it: a fresh snapshot.
	for i := range 200 {
		s.feed.set(monitor.TopicLanes, "STANDARD", fmt.Sprint(i))
	}
	for name, hello := range map[string]string{"long away": `"epoch":"e1","seq":41`, "other epoch": `"epoch":"e0","seq":241`, "ahead": `"epoch":"e1","seq":9999`} {
		x := s.client(t, "a")
		x.say(`{"hello":{"topics":[{"topic":"lanes",` + hello + `}]}}`)
		f := x.until("an answer", func(f frame) bool { return f.Topic == "lanes" })
		if f.Snapshot == nil || f.Seq != 241 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestResyncGivesAFreshSnapshot(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	c := s.client(t, "a")
	c.hello("lanes")
	c.until("the snapshot", snapshotOf("lanes"))
	c.say(`{"resync":["lanes"]}`)
	c.until("another", snapshotOf("lanes"))
	c.say(`{"resync":["pools"]}`)
	if code := c.closeCode(); code != websocket.ClosePolicyViolation {
		t.Errorf("a resync of what was not asked for: closed with %d", code)
	}
}

func TestTrap_D53_ForeignOriginsAreRefused(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *live.Config) { c.Origins = []string{"https://console.example"} })
	host := strings.TrimPrefix(s.url, "http://")
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]int{
		"https://evil.example": 403, "null": 403, "http://" + name + ":1": 403, "http://" + name: 403, "": 403, "none": 403,
		"http://" + host + ".evil.example": 403, "http://" + host + "@evil.example": 403, "file://": 403, "ftp://" + host: 403, "http://" + host + "/": 403,
		"http://evil.example/http://" + host: 403, "https://console.example.evil": 403, "http://console.example": 403,
		"https://console.example": 101, "http://" + host: 101, "http://localhost:" + port: 403,
	} {
		h := http.Header{"Origin": {origin}}
		if origin == "none" {
			h["Origin"] = nil
		}
		conn, answer, err := s.dial("a", h)
		if conn != nil {
			_ = conn.Close()
		}
		if answer == nil {
			t.Fatalf("origin %q: %v", origin, err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("origin %q: %d, want %d", origin, answer.StatusCode, want)
		}
	}
	two := http.Header{"Origin": {s.url, "https://evil.example"}}
	if conn, answer, _ := s.dial("a", two); conn != nil || answer.StatusCode != http.StatusForbidden {
		t.Error("two origins were let in")
	}
}

func TestTrap_D54_SocketEndsWithItsSession(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	mine, other := s.client(t, "mine"), s.client(t, "other")
	mine.hello("lanes")
	other.hello("lanes")
	mine.until("the snapshot", snapshotOf("lanes"))
	other.until("the snapshot", snapshotOf("lanes"))
	began := time.Now()
	s.people.set(func() { s.people.ended["mine"] = true })
	if code := mine.closeCode(); code != live.CloseSession {
		t.Errorf("closed with %d, want 4001", code)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("closed after %v", took)
	}
	s.feed.set(monitor.TopicLanes, "STANDARD", "still here")
	other.until("a patch", func(f frame) bool { return f.Patch != nil })
}

func TestRightsAreCheckedOnSubscribeAndWhenTheyMove(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *live.Config) { c.CheckEvery = 2 * time.Second })
	wall := rightsOf(t, access.Grant{Operator: operatorID, Role: access.Wall})
	scoped := rightsOf(t, access.Grant{Operator: operatorID, Role: access.Viewer, Lanes: []string{"STANDARD"}})
	for name, c := range map[string]struct {
		rights access.Rights
		hello  []string
		want   int
	}{
		"nobody":                          {access.Rights{}, []string{"lanes"}, live.CloseForbidden},
		"unknown topic":                   {wall, []string{"lanes", "secrets"}, websocket.ClosePolicyViolation},
		"single tenants for a lane's eye": {scoped, []string{"lanes", "tenants"}, live.CloseForbidden},
	} {
		s.people.set(func() { s.people.rights[operatorID] = c.rights })
		x := s.client(t, name)
		x.hello(c.hello...)
		if code := x.closeCode(); code != c.want {
			t.Errorf("%s: closed with %d, want %d", name, code, c.want)
		}
	}
	s.people.set(func() { s.people.rights[operatorID] = scoped })
	x := s.client(t, "a")
	x.hello("lanes", "pools")
	x.until("sums", snapshotOf("lanes"))
	s.people.set(func() { s.people.rights[operatorID] = access.Rights{} })
	s.people.version.Add(1)
	began := time.Now()
	if code := x.closeCode(); code != live.CloseForbidden {
		t.Errorf("a right was taken away: closed with %d", code)
	}
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("the access version moved, but it took %v", took)
	}
}

func TestSocketsStayOpenOnlySoLongWhileRightsAreUnknown(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *live.Config) { c.Unsure = 400 * time.Millisecond })
	c := s.client(t, "a")
	c.hello("lanes")
	c.until("the snapshot", snapshotOf("lanes"))
	s.people.set(func() { s.people.down = errors.New("no database") })
	began := time.Now()
	if code := c.closeCode(); code != live.CloseRestart {
		t.Errorf("closed with %d", code)
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("closed after %v although it might have come back", took)
	}
}

func TestMessagesThatNoClientOfOursSendsEndTheSocket(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	long := `{"hello":{"topics":[` + strings.Repeat(`{"topic":"lanes"},`, 20) + `{"topic":"lanes"}]}}`
	for _, text := range []string{``, `{}`, `[]`, `null`, `1`, `{"hello":{}}`, `{"hello":{"topics":[]}}`, `{"hello":{"topics":"x"}}`, `{"hi":1}`,
		`{"hello":{"topics":[{"topic":"lanes","seq":-1}]}}`, `{"hello":{"topics":[{"topic":"lanes","seq":1e99}]}}`, `{"resync":[]}`, `{"resync":["lanes"]} {}`,
		`{"hello":{"topics":[{"topic":"lanes"}]},"resync":["lanes"]}`, `{"hello":{"topics":[{"topic":"` + strings.Repeat("x", 100) + `"}]}}`, "\x00\xff", long} {
		c := s.client(t, "a")
		c.say(text)
		if code := c.closeCode(); code != websocket.ClosePolicyViolation {
			t.Errorf("%.60q: closed with %d", text, code)
		}
	}
	c := s.client(t, "a")
	if err := c.conn.WriteMessage(websocket.BinaryMessage, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if code := c.closeCode(); code != websocket.ClosePolicyViolation {
		t.Errorf("binary: closed with %d", code)
	}
	big := s.client(t, "a")
	big.say(`{"hello":{"topics":[{"topic":"` + strings.Repeat("x", 10_000) + `"}]}}`)
	if code := big.closeCode(); code != websocket.CloseMessageTooBig {
		t.Errorf("10 KB: closed with %d", code)
	}
	flood := s.client(t, "a")
	flood.hello("lanes")
	go func() {
		for range 100 {
			if flood.conn.WriteMessage(websocket.TextMessage, []byte(`{"resync":["lanes"]}`)) != nil {
				return
			}
		}
	}()
	if code := flood.closeCode(); code != websocket.ClosePolicyViolation {
		t.Errorf("a flood: closed with %d", code)
	}
}

func FuzzMessages(f *testing.F) {
	s := newStand(f, func(c *live.Config) { c.UpgradeRate = 100_000 })
	for _, seed := range []string{`{"hello":{"topics":[{"topic":"lanes","epoch":"","seq":0}]}}`, `{"resync":["lanes"]}`, `{"hello":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		conn, answer, err := s.dial("a", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		defer conn.Close() //nolint:errcheck // its end is what is looked at
		_ = conn.WriteMessage(websocket.TextMessage, text)
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, _, err := conn.ReadMessage(); err != nil && !websocket.IsCloseError(err, websocket.ClosePolicyViolation, websocket.CloseMessageTooBig) {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func TestTrap_D65_StuckSocketsCostNothingAndDelayNobody(t *testing.T) {
	s := newStand(t, func(c *live.Config) { c.WriteTimeout, c.SlowAfter = 2*time.Second, 2*time.Second })
	base := runtime.NumGoroutine()
	reader := s.client(t, "reader")
	reader.hello("lanes")
	reader.until("the snapshot", snapshotOf("lanes"))
	alone, _ := s.storm(t, reader, 1000)

	const stuck = 200
	var cut []net.Conn
	for range stuck {
		conn, answer, err := s.dial("stuck", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if err := conn.NetConn().(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"hello":{"topics":[{"topic":"lanes"},{"topic":"pools"}]}}`)); err != nil {
			t.Fatal(err)
		}
		cut = append(cut, conn.NetConn())
	}
	early := heap()
	beside, worst := s.storm(t, reader, 3000)
	late := heap()
	t.Logf("a patch reaches a reader after %v alone, %v (worst %v) beside %d stuck sockets; heap %d KB → %d KB", alone, beside, worst, stuck, early>>10, late>>10)
	if beside > 10*alone+50*time.Millisecond {
		t.Errorf("stuck sockets delay the others: %v, alone %v", beside, alone)
	}
	if late > early+(16<<20) {
		t.Errorf("heap grew from %d to %d bytes", early, late)
	}
	await(t, "stuck sockets to be cut", func() bool { return s.hub.Open() == 1 })
	_ = reader.conn.Close()
	await(t, "goroutines to return to their base", func() bool { return s.hub.Open() == 0 && runtime.NumGoroutine() <= base+4 })
	for _, c := range cut {
		_ = c.Close()
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// storm sends n messages of 2 KB, a thousand a second where the machine can, and measures how long every
// tenth takes to reach the reader. Beats come from another goroutine meanwhile.
func (s *stand) storm(t *testing.T, reader *client, n int) (mean, worst time.Duration) {
	noise := strings.Repeat("0123456789abcdef", 128)
	sent := make(chan time.Time, n)
	done := make(chan struct{})
	var sum time.Duration
	got := 0
	go func() {
		defer close(done)
		for at := range sent {
			f := reader.until("a patch", func(f frame) bool { return f.Topic == "lanes" })
			if f.Snapshot != nil {
				t.Error("a client that reads lost patches")
			}
			d := time.Since(at)
			worst, sum, got = max(worst, d), sum+d, got+1
		}
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		s.feed.set(monitor.TopicPools, "p", noise+fmt.Sprint(i))
		if i%10 == 0 {
			sent <- time.Now()
			s.feed.set(monitor.TopicLanes, "STANDARD", noise+fmt.Sprint(i))
		}
	}
	close(sent)
	<-done
	return (sum / time.Duration(got)).Round(time.Microsecond), worst.Round(time.Microsecond)
}

// await polls with a deadline; what it waits for has no signal of its own.
func await(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(15 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestASlowClientGetsOneSnapshotInsteadOfEveryPatch(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *live.Config) { c.QueueFrames, c.WriteTimeout, c.SlowAfter = 4, time.Minute, time.Minute })
	c := s.client(t, "a")
	if err := c.conn.NetConn().(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	c.hello("lanes")
	c.until("the snapshot", snapshotOf("lanes"))
	noise := make([]byte, 64<<10)
	for i := range noise {
		noise[i] = "0123456789abcdefghijklmnopqrstuv"[(i*7919+i>>5)%32]
	}
	for i := range 120 {
		s.feed.set(monitor.TopicLanes, "STANDARD", string(noise[i:])+fmt.Sprint(i))
	}
	s.feed.set(monitor.TopicLanes, "STANDARD", "last")
	c.until("the end", func(f frame) bool { return f.Topic == "lanes" && c.rows["lanes"]["STANDARD"] == "last" })
	if c.snap < 2 {
		t.Errorf("%d snapshots: the queue of 4 frames cannot have held 120", c.snap)
	}
}

func TestTrap_D66_UpgradesAreAdmittedAtARateAndUpToANumber(t *testing.T) {
	t.Parallel()
	s := newStand(t, func(c *live.Config) { c.UpgradeRate = 20 })
	var in, out int
	began := time.Now()
	for range 100 {
		conn, answer, err := s.dial("a", nil)
		if answer == nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if conn != nil {
			in++
			_ = conn.Close()
			continue
		}
		out++
		if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
			t.Errorf("turned away with %d", answer.StatusCode)
		}
	}
	if most := 22 + int(20*time.Since(began).Seconds()); in < 20 || in > most {
		t.Errorf("%d of 100 let in, %d turned away; at most %d in that time", in, out, most)
	}

	few := newStand(t, func(c *live.Config) { c.MaxSockets = 3 })
	for i := range 4 {
		conn, answer, err := few.dial("a", nil)
		if answer == nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if (conn != nil) != (i < 3) {
			t.Errorf("socket %d: %d", i, answer.StatusCode)
		}
		if conn != nil {
			defer conn.Close() //nolint:errcheck // the test is over
		}
	}
}

func TestShutdownTellsEverybodyAndWaits(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	clients := make([]*client, 20)
	for i := range clients {
		clients[i] = s.client(t, "a")
		clients[i].hello("lanes")
		clients[i].until("the snapshot", snapshotOf("lanes"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	began := time.Now()
	if err := s.hub.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.hub.Open(); n != 0 {
		t.Errorf("%d sockets after the end", n)
	}
	t.Logf("20 sockets ended in %v", time.Since(began))
	for _, c := range clients {
		if code := c.closeCode(); code != live.CloseRestart {
			t.Errorf("closed with %d", code)
		}
	}
	if conn, answer, _ := s.dial("a", nil); conn != nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Error("a socket was opened after the end")
	}
}

func TestNobodyGetsInWithoutBeingKnown(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	conn, answer, _ := s.dial("a", http.Header{"Cookie": nil})
	if conn != nil || answer.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%+v", answer)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || len(body) > 100 {
		t.Errorf("%q %v", body, err)
	}
}

func TestAWrongConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	good := live.Config{Feed: newFeed("e"), Rights: &people{}, Sessions: &people{}, Topics: topics, Log: slog.New(slog.DiscardHandler)}
	for name, spoil := range map[string]func(*live.Config){
		"no feed": func(c *live.Config) { c.Feed = nil }, "no rights": func(c *live.Config) { c.Rights = nil },
		"no sessions": func(c *live.Config) { c.Sessions = nil }, "no topics": func(c *live.Config) { c.Topics = nil },
		"seldom checked": func(c *live.Config) { c.CheckEvery = 6 * time.Second },
	} {
		c := good
		spoil(&c)
		if _, err := live.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
