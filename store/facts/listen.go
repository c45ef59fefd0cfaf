package facts

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Listener hears the database's notifications on one connection of its own and hands them on. They
// are hints: each subscriber gets one when it is ready, those that come while one is pending are
// dropped, and after every (re)connection everyone gets "" and should look for itself.
type Listener struct {
	url      string
	channels []string
	log      *slog.Logger
	mu       sync.Mutex
	subs     map[string][]chan string
}

// NewListener prepares a listener for those channels.
func NewListener(url string, log *slog.Logger, channels ...string) *Listener {
	return &Listener{url: url, channels: channels, log: log, subs: map[string][]chan string{}}
}

// Subscribe returns a channel that holds at most one pending hint.
func (l *Listener) Subscribe(channel string) <-chan string {
	c := make(chan string, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subs[channel] = append(l.subs[channel], c)
	return c
}

// Run listens until ctx ends, and reconnects with a pause of at most two seconds.
func (l *Listener) Run(ctx context.Context) error {
	pause := 50 * time.Millisecond
	for {
		connected, err := l.listen(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end was asked for
		}
		if connected {
			pause = 50 * time.Millisecond
		}
		l.log.Warn("database notifications interrupted", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, 2*time.Second)
	}
}

// listen serves one connection; connected tells whether it ever listened.
func (l *Listener) listen(ctx context.Context) (connected bool, err error) {
	cfg, err := pgx.ParseConfig(l.url)
	if err != nil {
		return false, err
	}
	cfg.ConnectTimeout = 5 * time.Second
	cfg.RuntimeParams["application_name"] = "fairlane-listen"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer func() {
		live, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(live)
	}()
	for _, channel := range l.channels {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return false, err
		}
	}
	for _, channel := range l.channels {
		l.hand(channel, "")
	}
	for {
		note, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, err
		}
		l.hand(note.Channel, note.Payload)
	}
}

func (l *Listener) hand(channel, payload string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.subs[channel] {
		select {
		case c <- payload:
		default: // a hint is pending already
		}
	}
}
