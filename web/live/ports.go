package live

import (
	"context"

	"github.com/google/uuid"

	"fairlane/control/monitor"
	"fairlane/policy/access"
)

// Feed is where snapshots and patches come from.
type Feed interface {
	// Attach calls fn with the snapshot of now and then with every update, in order; ok is false for an unknown topic.
	Attach(t monitor.Topic, fn func(monitor.Update)) (detach func(), ok bool)
	// Watch keeps the topic fresh until release is called.
	Watch(t monitor.Topic) (release func())
}

// Rights tells what an operator may do now.
type Rights interface {
	Rights(operator uuid.UUID) (access.Rights, error)
	Version() int64
}

// Objects tells which tenant an object is of, and that tenant's home lane; control.CodeNotFound when there
// is no such object.
type Objects interface {
	Object(ctx context.Context, t monitor.Topic) (access.Object, error)
}

// Sessions tells which of some sessions still live; the others are left out.
type Sessions interface {
	Alive(ctx context.Context, sessions []string) (map[string]bool, error)
}

// Meter counts.
type Meter interface {
	SocketOpened()
	SocketClosed(code int) // code that the server sent; 0: the client went by itself
	FrameWritten(kind string)
}
