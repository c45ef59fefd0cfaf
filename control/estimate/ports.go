package estimate

import "context"

// Source has the published versions. They never change.
type Source interface {
	// HeadVersion is the number of the newest.
	HeadVersion(ctx context.Context) (int64, error)
	// Book reads that version whole; control.CodeNotFound when there is none.
	Book(ctx context.Context, version int64) (*Book, error)
}
