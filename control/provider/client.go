package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"sync/atomic"
	"time"

	"fairlane/control/crashpoint"
)

// Client is the HTTP side of one provider. Submits go over connections of their own: a kept
// connection that the other side has just closed makes an error after the request was written, and
// that would turn a plain submit into an unknown one. Reads share kept connections.
type Client struct {
	submit, read *http.Client
	maxBody      int64
	secrets      []string
	now          func() time.Time
}

// ClientConfig says how a provider is reached.
type ClientConfig struct {
	Allow       []netip.Prefix // addresses that may be dialled though they are not public
	TLS         *tls.Config    // nil: the system's
	DialTimeout time.Duration  // of name, dial and TLS each; default 5 s
	MaxBody     int64          // bytes read of an answer; default 1 MiB
	MaxConns    int            // kept and open connections for reads; default 32
	Secrets     []string       // never shown in raw answers
	Now         func() time.Time
}

// NewClient makes a client. Close it when done.
func NewClient(cfg ClientConfig) *Client {
	if cfg.DialTimeout <= 0 {
		cfg.DialTimeout = 5 * time.Second
	}
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = 1 << 20
	}
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = 32
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Client{
		submit: cfg.http(true), read: cfg.http(false),
		maxBody: cfg.MaxBody, secrets: cfg.Secrets, now: cfg.Now,
	}
}

func (cfg ClientConfig) http(fresh bool) *http.Client {
	dialer := &net.Dialer{Timeout: cfg.DialTimeout, KeepAlive: 30 * time.Second, ControlContext: DialControl(cfg.Allow)}
	return &http.Client{
		// No proxy: it would dial in our place and the address check would see only the proxy.
		Transport: &http.Transport{
			DialContext:           dialer.DialContext,
			TLSClientConfig:       cfg.TLS.Clone(),
			TLSHandshakeTimeout:   cfg.DialTimeout,
			DisableKeepAlives:     fresh,
			MaxIdleConnsPerHost:   cfg.MaxConns,
			MaxConnsPerHost:       limitUnless(fresh, cfg.MaxConns),
			IdleConnTimeout:       60 * time.Second,
			ExpectContinueTimeout: time.Second,
			DisableCompression:    true, // a bomb must not grow behind the bound on the body
			TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func limitUnless(fresh bool, n int) int {
	if fresh {
		return 0 // dispatch bounds the submits; waiting here would eat their deadline
	}
	return n
}

// Close drops kept connections.
func (c *Client) Close() {
	c.submit.CloseIdleConnections()
	c.read.CloseIdleConnections()
}

// Sent is how far a request came and what was answered.
type Sent struct {
	MayHaveLeft bool // a connection was there: bytes of the request may have reached the provider
	Status      int  // 0: no answer came
	Header      http.Header
	Body        []byte
	RetryAfter  time.Duration
	Raw         string // body without secrets, cut
	Err         error  // also when the status came and the body broke
}

// Submit sends body by POST over a connection of its own, once. secrets are added to those of the
// client and never shown in Raw.
func (c *Client) Submit(ctx context.Context, url string, header http.Header, body []byte, secrets ...string) Sent {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { connected.Store(true) },
		WroteRequest: func(httptrace.WroteRequestInfo) { crashpoint.Hit("submit.sent") },
	})
	// A reader that net/http does not know: no GetBody, so nothing can be sent again behind our back.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, struct{ io.Reader }{bytes.NewReader(body)})
	if err != nil {
		return Sent{Err: err}
	}
	req.ContentLength = int64(len(body))
	req.GetBody = nil
	setHeader(req, header)
	s := c.do(c.submit, req, append(secrets, c.secrets...))
	s.MayHaveLeft = connected.Load()
	return s
}

// Do sends a request that may be repeated without harm: reads, look-ups, cancels. The error names
// what broke; an answer of any status is no error.
func (c *Client) Do(ctx context.Context, method, url string, header http.Header) (Sent, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return Sent{Err: err}, err
	}
	setHeader(req, header)
	s := c.do(c.read, req, c.secrets)
	return s, s.Err
}

func setHeader(req *http.Request, header http.Header) {
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", "fairlane")
}

var errBodyTooLarge = errors.New("the answer is larger than the bound")

func (c *Client) do(client *http.Client, req *http.Request, secrets []string) Sent {
	resp, err := client.Do(req)
	if err != nil {
		return Sent{Err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	s := Sent{Status: resp.StatusCode, Header: resp.Header, MayHaveLeft: true}
	s.RetryAfter = RetryAfter(resp.Header, c.now())
	s.Body, err = io.ReadAll(io.LimitReader(resp.Body, c.maxBody+1))
	if err != nil {
		s.Err = fmt.Errorf("reading the answer: %w", err)
	} else if int64(len(s.Body)) > c.maxBody {
		s.Body, s.Err = s.Body[:c.maxBody], errBodyTooLarge
	}
	s.Raw = Redact(string(s.Body), secrets)
	return s
}
