package schedule

import (
	"context"
	"sync"

	"fairlane/policy"
)

// Groups runs one loop per pool group of the policy in force, and starts one for each group that a
// later version adds. A group that is removed keeps its loop: what still waits there must be told so.
type Groups struct {
	policies Policies
	run      func(ctx context.Context, group string)
}

// NewGroups takes the function that runs a group's loop, under its lease, until ctx ends.
func NewGroups(policies Policies, run func(ctx context.Context, group string)) *Groups {
	return &Groups{policies: policies, run: run}
}

// Run follows the policy until ctx ends and returns after every loop has.
func (g *Groups) Run(ctx context.Context) error {
	versions := make(chan *policy.Version, 1)
	cancel := g.policies.Subscribe(func(v *policy.Version) {
		select { // only the newest matters
		case <-versions:
		default:
		}
		versions <- v
	})
	defer cancel()
	var loops sync.WaitGroup
	defer loops.Wait()
	running := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case v := <-versions:
			for _, group := range v.Document.PoolGroups {
				if code := group.Code; !running[code] {
					running[code] = true
					loops.Go(func() { g.run(ctx, code) })
				}
			}
		}
	}
}
