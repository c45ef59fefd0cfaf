package speed

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
)

// Small makes an index whose queues hold as little as they can, so that they read on all the time.
func Small(x *QueueIndex) *QueueIndex {
	x.sizes = sizes{first: 1, more: 1, keep: 1}
	return x
}

// Redis gives a test the connection below an index.
func Redis(x *QueueIndex) *redis.Client { return x.client.rdb }

// Prefix begins every key of an index.
func Prefix(x *QueueIndex) string { return x.prefix }

// Loaded is how many tasks a queue holds in the process.
func Loaded(q *Queue) int { return len(q.byID) }

// Spy shows every command of an index to the test.
func Spy(x *QueueIndex, seen func(args []any)) { x.client.rdb.AddHook(spy(seen)) }

type spy func(args []any)

func (s spy) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s(cmd.Args())
		return next(ctx, cmd)
	}
}

func (s spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			s(c.Args())
		}
		return next(ctx, cmds)
	}
}
