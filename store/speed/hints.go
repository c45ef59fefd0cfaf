package speed

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Hints carries "look at the facts" between replicas over pub/sub. It loses hints whenever Redis does,
// and says so by a resync: whoever hears "" looks for himself.
type Hints struct {
	client *Client
	log    *slog.Logger
	topics []string
	heard  func(topic string)
	up     func(bool)
	out    chan string
	every  time.Duration
}

// NewHints prepares hints of those topics. heard is called for each hint of any replica, this one
// included, and with "" after every (re)subscription; up is called when Redis comes and goes. Neither
// may block.
func NewHints(client *Client, log *slog.Logger, topics []string, heard func(topic string), up func(bool)) *Hints {
	return &Hints{client: client, log: log, topics: topics, heard: heard, up: up, out: make(chan string, 64), every: 250 * time.Millisecond}
}

// Tell publishes a hint soon. It never blocks; a hint that finds the queue full is one of many.
func (h *Hints) Tell(topic string) {
	select {
	case h.out <- topic:
	default:
	}
}

// Run publishes and listens until ctx ends.
func (h *Hints) Run(ctx context.Context) error {
	published := make(chan struct{})
	go func() { defer close(published); h.publish(ctx) }()
	h.listen(ctx)
	<-published
	return nil
}

// publish sends each topic at most once in every interval, whatever the number of hints.
func (h *Hints) publish(ctx context.Context) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	pending := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case topic := <-h.out:
			pending[topic] = true
			continue
		case <-tick.C:
		}
		for topic := range pending {
			// What cannot be said is not kept: the floor of every reader finds it.
			_ = h.client.rdb.Publish(ctx, channel(topic), "").Err()
		}
		clear(pending)
	}
}

// listen subscribes again and again. A silent connection is probed, so that a Redis that vanished
// without a word is noticed within a few seconds.
func (h *Hints) listen(ctx context.Context) {
	pause, told := 100*time.Millisecond, false
	for ctx.Err() == nil {
		connected, err := h.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		h.up(false)
		if connected {
			pause, told = 100*time.Millisecond, false
		}
		if !told { // once an absence, however long it is
			h.log.Warn("hints of other replicas interrupted", "error", err)
			told = true
		}
		wait := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		pause = min(2*pause, 2*time.Second)
	}
}

const probeAfter = 2 * time.Second

func (h *Hints) hear(ctx context.Context) (connected bool, err error) {
	channels := make([]string, len(h.topics))
	for i, t := range h.topics {
		channels[i] = channel(t)
	}
	sub := h.client.rdb.Subscribe(ctx, channels...)
	defer sub.Close() //nolint:errcheck // a new one is made
	// A receive does not end with its context, only with its connection.
	defer context.AfterFunc(ctx, func() { _ = sub.Close() })()
	confirmed, probed := 0, false
	for {
		got, err := sub.ReceiveTimeout(ctx, probeAfter)
		if err != nil {
			var timeout interface{ Timeout() bool }
			if probed || !connected || !errors.As(err, &timeout) || !timeout.Timeout() {
				return connected, err
			}
			probed = true
			if err := sub.Ping(ctx); err != nil {
				return connected, err
			}
			continue
		}
		probed = false
		switch m := got.(type) {
		case *redis.Subscription:
			if confirmed++; confirmed == len(channels) {
				connected = true
				h.up(true)
				h.heard("") // hints before this one may be lost
			}
		case *redis.Message:
			h.heard(strings.TrimPrefix(m.Channel, channelPrefix))
		}
	}
}
