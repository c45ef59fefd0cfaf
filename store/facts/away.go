package facts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"fairlane/control"
)

// away marks errors that mean "the database is not there just now" as control.CodeUnavailable, so that
// a client is told to come back instead of being shown an internal error. Others pass unchanged.
func away(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || control.CodeOf(err) != "" {
		return err
	}
	var connect *pgconn.ConnectError
	var network net.Error
	var pg *pgconn.PgError
	gone := errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
	if errors.As(err, &pg) {
		switch pg.Code {
		case "57P01", "57P02", "57P03", "53300", "55P03", "57014", "40001", "40P01": // shutdown, too many connections, lock and statement time-outs, gave up on conflicts
			gone = true
		}
	}
	if !gone {
		return err
	}
	return fmt.Errorf("%w (%w)", control.Errorf(control.CodeUnavailable, "the database does not answer just now"), err)
}
