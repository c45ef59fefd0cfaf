package storetest

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// RedisSpace is one test's part of a shared server.
type RedisSpace struct {
	URL    string // for redis.ParseURL
	Prefix string // for every key and channel of the test; keys under it are deleted when it ends
}

// Redis returns a prefix of the test's own on a live server.
func Redis(t testing.TB) RedisSpace {
	t.Helper()
	space := RedisSpace{URL: variable(t, redisVariable), Prefix: "t:" + uuid.NewString() + ":"}
	options, err := redis.ParseURL(space.URL)
	if err != nil {
		t.Fatalf("%s: %v", redisVariable, err)
	}
	client := redis.NewClient(options)
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		_ = client.Close()
		t.Fatalf("%s: %v", redisVariable, err)
	}
	t.Cleanup(func() {
		defer client.Close() //nolint:errcheck // the test is over
		ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
		defer cancel()
		keys := client.Scan(ctx, 0, space.Prefix+"*", 500).Iterator()
		for keys.Next(ctx) {
			client.Del(ctx, keys.Val())
		}
		if err := keys.Err(); err != nil {
			t.Logf("keys of the test stay behind: %v", err) // it may have stopped its server on purpose
		}
	})
	return space
}
