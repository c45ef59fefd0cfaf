package provider_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairlane/control/provider"
)

func newClient(t *testing.T, cfg provider.ClientConfig) *provider.Client {
	t.Helper()
	if cfg.Allow == nil {
		cfg.Allow = provider.Loopback()
	}
	c := provider.NewClient(cfg)
	t.Cleanup(c.Close)
	return c
}

// rawServer hands every connection, with the request already read, to answer.
func rawServer(t *testing.T, answer func(conn net.Conn, r *http.Request)) (url string, requests *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = &atomic.Int64{}
	var open sync.WaitGroup
	var conns sync.Map
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Store(conn, true)
			open.Go(func() {
				defer func() { _ = conn.Close() }()
				in := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return
					}
					requests.Add(1)
					answer(conn, r)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		open.Wait()
	})
	return "http://" + l.Addr().String(), requests
}

func deadAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return "http://" + l.Addr().String()
}

// Every failure of D21 is told to be certainly not sent, or open; and nothing is ever sent twice.
func TestTrap_D21_AmbiguousAndCertainlyNotSent(t *testing.T) {
	t.Parallel()
	hang := func(t *testing.T) (string, *atomic.Int64) {
		over := make(chan struct{})
		url, n := rawServer(t, func(net.Conn, *http.Request) { <-over })
		t.Cleanup(func() { close(over) })
		return url, n
	}
	for name, c := range map[string]struct {
		url   func(t *testing.T) (string, *atomic.Int64)
		body  int
		bound time.Duration
		want  provider.Outcome
		class provider.Class
		sends int64 // requests that reached the server whole
	}{
		"name": {url: func(*testing.T) (string, *atomic.Int64) { return "http://no-such-host.invalid", nil },
			want: provider.SurelyNot, class: provider.ClassUnreachable},
		"connect refused": {url: func(t *testing.T) (string, *atomic.Int64) { return deadAddress(t), nil },
			want: provider.SurelyNot, class: provider.ClassUnreachable},
		"TLS": {url: func(t *testing.T) (string, *atomic.Int64) {
			s := httptest.NewTLSServer(http.NotFoundHandler())
			s.Config.ErrorLog = nil
			t.Cleanup(s.Close)
			return s.URL, nil // its certificate is nobody's we know
		}, want: provider.SurelyNot, class: provider.ClassUnreachable},
		"TLS never ends": {url: func(t *testing.T) (string, *atomic.Int64) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			return "https://" + l.Addr().String(), nil
		}, bound: 150 * time.Millisecond, want: provider.SurelyNot, class: provider.ClassUnreachable},
		"write timeout": {url: func(t *testing.T) (string, *atomic.Int64) {
			l, err := net.Listen("tcp", "127.0.0.1:0") // accepts nothing: the kernel takes the first bytes
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			return "http://" + l.Addr().String(), nil
		}, body: 64 << 20, bound: 300 * time.Millisecond, want: provider.Unknown, class: provider.ClassTimeout},
		"read timeout": {url: hang, bound: 150 * time.Millisecond, want: provider.Unknown, class: provider.ClassTimeout, sends: 1},
		"500 after accept": {url: func(t *testing.T) (string, *atomic.Int64) {
			return rawServer(t, func(c net.Conn, _ *http.Request) {
				_, _ = fmt.Fprint(c, "HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}")
			})
		}, want: provider.Unknown, class: provider.ClassInternal, sends: 1},
		"closed without an answer": {url: func(t *testing.T) (string, *atomic.Int64) {
			return rawServer(t, func(c net.Conn, _ *http.Request) { _ = c.Close() })
		}, want: provider.Unknown, class: provider.ClassConnection, sends: 1},
		"reset mid-body": {url: func(t *testing.T) (string, *atomic.Int64) {
			return rawServer(t, func(c net.Conn, _ *http.Request) {
				_, _ = fmt.Fprint(c, "HTTP/1.1 201 Created\r\nContent-Length: 200\r\n\r\n{\"id\":\"j")
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			})
		}, want: provider.Unknown, class: provider.ClassBadAnswer, sends: 1},
		"no HTTP": {url: func(t *testing.T) (string, *atomic.Int64) {
			return rawServer(t, func(c net.Conn, _ *http.Request) { _, _ = fmt.Fprint(c, "SSH-2.0-what\r\n"); _ = c.Close() })
		}, want: provider.Unknown, class: provider.ClassConnection, sends: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := c.url(t)
			bound := c.bound
			if bound == 0 {
				bound = 10 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			body := []byte(`{"prompt":"x"}`)
			if c.body > 0 {
				body = make([]byte, c.body)
			}
			sent := newClient(t, provider.ClientConfig{}).Submit(ctx, url+"/jobs", nil, body)
			got := provider.Classify(provider.Capabilities{}, sent, parseID)
			if got.Outcome != c.want || got.Class != c.class {
				t.Errorf("got %v %v (%v), want %v %v", got.Outcome, got.Class, sent.Err, c.want, c.class)
			}
			if got.Outcome == provider.SurelyNot && !got.Retry {
				t.Error("never sent, and yet not to be tried again")
			}
			if requests != nil && requests.Load() != c.sends {
				t.Errorf("%d requests reached the server, want %d", requests.Load(), c.sends)
			}
		})
	}
}

// A connection that the other side has closed must neither make a submit unknown nor send it twice.
func TestTrap_D20_SubmitsUseNoKeptConnection(t *testing.T) {
	t.Parallel()
	var conns atomic.Int64
	url, requests := rawServer(t, func(c net.Conn, _ *http.Request) {
		conns.Add(1)
		// Offers to keep the connection, and cuts it as soon as it is idle.
		_, _ = fmt.Fprint(c, "HTTP/1.1 201 Created\r\nConnection: keep-alive\r\nContent-Length: 10\r\n\r\n{\"id\":\"j\"}")
		_ = c.Close()
	})
	client := newClient(t, provider.ClientConfig{})
	for i := range 20 {
		header := http.Header{"Idempotency-Key": {"k"}} // net/http resends such requests when it can
		sent := client.Submit(t.Context(), url, header, []byte(`{}`))
		if a := provider.Classify(provider.Capabilities{}, sent, parseID); a.Outcome != provider.Accepted {
			t.Fatalf("submit %d: %+v (%v)", i, a, sent.Err)
		}
	}
	if requests.Load() != 20 {
		t.Errorf("%d requests for 20 submits", requests.Load())
	}
}

func TestSubmitFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(s.Close)
	sent := newClient(t, provider.ClientConfig{}).Submit(t.Context(), s.URL, nil, []byte(`{}`))
	if sent.Status != http.StatusTemporaryRedirect || hits.Load() != 1 {
		t.Errorf("status %d after %d requests", sent.Status, hits.Load())
	}
}

func TestAnswersAreBoundedAndRedacted(t *testing.T) {
	t.Parallel()
	var body atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, body.Load().(string))
	}))
	t.Cleanup(s.Close)
	client := newClient(t, provider.ClientConfig{MaxBody: 1000, Secrets: []string{"sk-secret"}})
	body.Store(`{"id":"j","echo":"sk-secret tok-123 ` + "\\u0000" + `"}`)
	sent := client.Submit(t.Context(), s.URL, nil, []byte(`{}`), "tok-123")
	if sent.Err != nil || strings.Contains(sent.Raw, "secret") || strings.Contains(sent.Raw, "tok-123") {
		t.Errorf("raw %q, %v", sent.Raw, sent.Err)
	}
	body.Store(`{"id":"j","x":"` + strings.Repeat("a", 2000) + `"}`)
	sent = client.Submit(t.Context(), s.URL, nil, []byte(`{}`))
	if sent.Err == nil || len(sent.Body) > 1000 {
		t.Errorf("%d bytes read, %v", len(sent.Body), sent.Err)
	}
	if a := provider.Classify(provider.Capabilities{}, sent, parseID); a.Outcome != provider.Unknown {
		t.Errorf("an answer beyond the bound is %v", a.Outcome)
	}
	if _, err := client.Do(t.Context(), http.MethodGet, s.URL, nil); err == nil {
		t.Error("a read beyond the bound is no error")
	}
}

func TestSubmitTrustsGivenRoots(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":"j"}`) }))
	t.Cleanup(s.Close)
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	sent := newClient(t, provider.ClientConfig{TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}).Submit(t.Context(), s.URL, nil, []byte(`{}`))
	if a := provider.Classify(provider.Capabilities{}, sent, parseID); a.Outcome != provider.Accepted {
		t.Errorf("%+v %v", a, sent.Err)
	}
}

// The address is checked when it is dialled: what the name said earlier does not count.
func TestTrap_D58_AddressIsCheckedWhenDialled(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	strict := provider.NewClient(provider.ClientConfig{})
	t.Cleanup(strict.Close)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433"} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		sent := strict.Submit(ctx, "http://"+host+":"+port, nil, []byte(`{}`))
		cancel()
		a := provider.Classify(provider.Capabilities{}, sent, parseID)
		if a.Outcome != provider.SurelyNot {
			t.Errorf("%s: %+v", host, a)
		}
		if host == "127.0.0.1" && (a.Class != provider.ClassForbidden || !errors.Is(sent.Err, provider.ErrAddress)) {
			t.Errorf("%s: %v %v", host, a.Class, sent.Err)
		}
		if _, err := strict.Do(t.Context(), http.MethodGet, "http://"+host+":"+port, nil); err == nil {
			t.Errorf("%s could be read", host)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests reached loopback", hits.Load())
	}
	for address, ok := range map[string]bool{
		"8.8.8.8:443": true, "[2606:4700::1111]:443": true,
		"169.254.169.254:80": false, "[::ffff:169.254.169.254]:80": false, "10.0.0.1:80": false, "172.16.0.1:80": false,
		"192.168.1.1:80": false, "100.64.0.1:80": false, "0.1.2.3:80": false, "224.0.0.1:80": false, "255.255.255.255:80": false,
		"[::1]:80": false, "[::]:80": false, "[fe80::1]:80": false, "[fe80::1%eth0]:80": false, "[fd00::1]:80": false,
		"[64:ff9b::7f00:1]:80": false, "[2002:7f00:1::]:80": false, "[::127.0.0.1]:80": false, "[2001:db8::1]:80": false,
		"198.18.0.1:80": false, "nonsense": false, "": false,
	} {
		if err := provider.CheckAddress(address, nil); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
	if err := provider.CheckAddress("[::ffff:127.0.0.1]:80", provider.Loopback()); err != nil {
		t.Errorf("allowed, and yet %v", err)
	}
	if err := provider.CheckAddress("10.0.0.1:80", provider.Loopback()); err == nil {
		t.Error("the allow-list allows more than it says")
	}
}
