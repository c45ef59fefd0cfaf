package plan

import (
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/fair"
)

// Planner keeps what outlives a cycle: rings, cursors, open visits and streaks, and a mirror of the
// counters. It belongs to one goroutine, together with its queue. The calls of one cycle, in order:
//
//	needs := p.Needs(now)               // which tenants' and users' counters to read
//	snapshot := …                       // read them, with all lanes and pools of the group
//	plan := p.Cycle(now, snapshot, max)
//	…                                   // claim plan.Starts in one transaction
//	p.Confirm(id) or p.Refuse(id, …)    // for every start, best in the order of the plan
//	p.Settle()                          // then take the claimed tasks out of the queue
//
// The queue must not be changed between Cycle and Settle.
type Planner struct {
	group    string
	policy   *Policy
	rules    *groupRule
	queue    Queue
	now      time.Time
	micro    int64 // now
	lanes    map[string]*lane
	order    []*lane // policy order
	ring     *fair.Ring
	zero     int64    // place of the lane of weight 0 that started last
	backlog  []*party // by the queue's number; nil: empty
	tenants  map[uuid.UUID]*tenant
	users    map[TenantUser]*user
	pools    map[string]*pool
	common   int64 // common units used
	pending  []pick
	hint     int // where the next answer is looked for
	last     int // starts of the last cycle
	refused  map[uuid.UUID]*refusal
	moved    []*party // read since the last cycle: they may have to join or leave their ring
	watched  []*stand // while they have room, something is passed over
	agings   agings
	asking   []*tenant // whose counters the next snapshots should hold
	askUsers []*user
	from     int // where the next snapshot starts, when there are too many for one
	fromUser int
	reading  *party         // what skip and take are about
	full     []*user        // users at a cap that were met
	was      []head         // of the party being read, before
	skip     func(int) bool // skips and takes, made once
	take     func(control.Head)
	asked    Needs
	inLane   map[TenantLane]Use // of the snapshot being taken over, for tenants that turn up meanwhile
	debts    map[TenantLane]int64
	passed   map[uuid.UUID]*passed // heads that were passed over
	tickets  int64                 // last ticket given
	holds    []*passed             // those that hold units, by ticket
	queues   []*stand              // with tickets
	most     int64                 // largest slots that a task was met with
	freed    bool                  // units that were kept are free again within a cycle
	taken    int64                 // units taken or kept so far, by whomever
	seq      int64                 // starts so far
	looks    int64                 // looks at tickets so far
	classes  map[string]int        // of tenants, by the keys of their dedicated pools
	loans    []Loan
	relabels []Loan
	partly   bool      // more counters should be read than one snapshot is asked for
	wake     time.Time // when the queue's next delayed task becomes eligible
}

// lane is a lane of the group with its ring of tenants.
type lane struct {
	fair.Member
	rule    laneRule
	ring    *fair.Ring
	parties []*party   // members of the ring
	places  []*party   // the same by place
	needs   [][]*stand // by the queue's number of the need
	met     []*stand
	fulls   []*stand // those of them that were found full in this cycle
	use     LaneUse
	costs   costs
	live    int   // parties with heads
	busy    bool  // some are live and it may start, so that it gets its rounds
	streak  int   // reserve starts in a row
	cursor  int64 // place of the last start by reserve, or by a tenant of weight 0
	lending
	turns
	offer   choice
	offered bool // offer is what the lane would start now, if it still fits
}

// tenant is a tenant with its counters over all lanes.
type tenant struct {
	id      uuid.UUID
	rule    *tenantRule // nil: the policy does not know it
	used    Use
	known   bool // used was read, and no claim has contradicted it
	parties []*party
	ask     int // place in asking, from 1
	class   int // by dedicated pools; 0: not looked at since the last publish
}

// party is a tenant inside a lane; it is in the lane's ring while it has unparked heads.
type party struct {
	fair.Member
	code    string // of the lane
	lane    *lane  // nil: the policy does not have it in this group
	who     *tenant
	backlog int     // the queue's number; -1: nothing waits
	used    Use     // in this lane
	heads   []head  // by effective band, queued_since, id
	entries []entry // the first head of each need, up to the tenant's maximum
	largest int64   // cost of the most expensive head, milli-units
	live    bool    // in the ring, with heads
	moved   bool    // in Planner.moved
	urgent  int     // P0 starts in a row
	at      int     // place in lane.parties
	noted   int64   // cost noted in the lane's costs
	ages    int64   // time noted in the planner's agings
	owed    int64   // debt in milli-units as PostgreSQL has it
}

// head is an unparked task that may be its tenant's next.
type head struct {
	control.Head
	stand     *stand // of its need
	passed    *passed
	marked    bool // its turn came, it did not fit, and that has not been counted
	turned    bool // the ring has passed it while it was beyond its tenant's soft share
	effective int
}

type user struct {
	UserUse
	id    TenantUser
	known bool // the counters were read, and no claim has contradicted them
	ask   int  // place in askUsers, from 1
}

// pick is a start whose claim has not been answered.
type pick struct {
	Start
	party   *party
	user    *user // nil: no cap can bind
	ref     int
	stand   *stand
	from    *lane // that lends
	cost    int64 // milli-units
	charged bool  // the tenant's deficit has paid
	paid    bool  // the lane's deficit has paid
	done    bool
}

// NewPlanner makes the planner of a pool group. A group that the policy does not name has no lanes.
func NewPlanner(group string, policy *Policy, queue Queue) *Planner {
	p := &Planner{
		group: group, queue: queue, lanes: map[string]*lane{}, tenants: map[uuid.UUID]*tenant{}, users: map[TenantUser]*user{},
		pools: map[string]*pool{}, refused: map[uuid.UUID]*refusal{}, passed: map[uuid.UUID]*passed{},
	}
	p.skip, p.take = p.skips, p.takes
	p.Publish(policy)
	return p
}

// Policy returns the policy in force.
func (p *Planner) Policy() *Policy { return p.policy }
