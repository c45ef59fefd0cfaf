package speed

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script
	_ "embed"
	"encoding/hex"
	"errors"

	"github.com/redis/go-redis/v9"
)

// script is one act on the server. Its file says what the keys and arguments are.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see above
	return script{text, hex.EncodeToString(sum[:])}
}

var (
	//go:embed lua/put.lua
	putText string
	//go:embed lua/page.lua
	pageText string
	//go:embed lua/recount.lua
	recountText string

	putScript     = newScript(putText)
	pageScript    = newScript(pageText)
	recountScript = newScript(recountText)
)

// call is one run of a script. All its keys lie in one hash slot.
type call struct {
	script script
	keys   []string
	args   []any
}

// eval runs scripts in one round trip; a server that does not know one gets its text. Each answer has an
// error of its own; the error returned is the first that is no answer of the server.
func (c *Client) eval(ctx context.Context, calls []call) ([]*redis.Cmd, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	out := make([]*redis.Cmd, len(calls))
	pipe := c.rdb.Pipeline()
	for i, one := range calls {
		out[i] = pipe.EvalSha(ctx, one.script.sha, one.keys, one.args...)
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	again := c.rdb.Pipeline()
	for i, one := range calls {
		if redis.HasErrorPrefix(out[i].Err(), "NOSCRIPT") {
			out[i] = again.Eval(ctx, one.script.text, one.keys, one.args...)
		}
	}
	if again.Len() > 0 {
		_, _ = again.Exec(ctx)
	}
	for _, cmd := range out {
		if err := cmd.Err(); err != nil && !answered(err) {
			return nil, err
		}
	}
	return out, nil
}

// answered tells whether an error is what the server said about one command.
func answered(err error) bool {
	var said redis.Error
	return errors.As(err, &said)
}
