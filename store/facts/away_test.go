package facts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"fairlane/control"
)

func TestAwayIsTheDatabaseAndNotTheRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		gone bool
	}{
		"a backend was killed":     {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true},
		"connection reset":         {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		"too slow":                 {context.DeadlineExceeded, true},
		"shutting down":            {&pgconn.PgError{Code: "57P01"}, true},
		"the request was given up": {context.Canceled, false},
		"a broken rule":            {&pgconn.PgError{Code: "23505"}, false},
		"a fault of ours":          {errors.New("boom"), false},
	} {
		if gone := control.CodeOf(away(c.err)) == control.CodeUnavailable; gone != c.gone {
			t.Errorf("%s: away is %v", name, gone)
		}
	}
}
