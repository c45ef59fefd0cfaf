package speed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client is one connection pool to Redis.
type Client struct {
	rdb *redis.Client
}

// Open prepares a client for the Redis at url (redis://, rediss://, unix://). It does not connect: Redis
// may come later, and may go. Commands are never sent twice by themselves: a lost answer does not tell
// whether a script has run.
func Open(url string) (*Client, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redis url: %s", strings.TrimPrefix(err.Error(), "redis: "))
	}
	options.MaxRetries = -1
	options.DialTimeout = 2 * time.Second
	options.ReadTimeout = 2 * time.Second
	options.WriteTimeout = 2 * time.Second
	options.PoolTimeout = 2 * time.Second
	options.PoolSize = 16
	options.ContextTimeoutEnabled = true // the deadline of a call bounds it
	options.ClientName = "fairlane"
	options.DialerRetries = 1
	silence.Do(func() { redis.SetLogger(quiet{}) })
	return &Client{rdb: redis.NewClient(options)}, nil
}

// The library writes plain lines to standard error on its own. What it would say comes back as errors,
// which callers log once in their own form.
var silence sync.Once

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// Ping tells whether Redis answers.
func (c *Client) Ping(ctx context.Context) error { return c.rdb.Ping(ctx).Err() }

// Eviction is what the server does when its memory is full; "noeviction" is what a queue index needs.
func (c *Client) Eviction(ctx context.Context) (string, error) {
	info, err := c.rdb.Info(ctx, "memory").Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if policy, ok := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:"); ok {
			return policy, nil
		}
	}
	return "", errors.New("redis does not tell its maxmemory policy")
}

// Close closes all connections.
func (c *Client) Close() error { return c.rdb.Close() }
