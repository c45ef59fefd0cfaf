package queue_test

import (
	"testing"

	"go.uber.org/goleak"

	"fairlane/control/queue"
	"fairlane/control/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(*testing.T) queuetest.Queue { return queue.NewMemory() })
}
