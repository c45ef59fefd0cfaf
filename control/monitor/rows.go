package monitor

import (
	"time"

	"github.com/google/uuid"
)

// Topic names a live view.
type Topic string

// The topics. Each is a set of keyed rows in a stated order.
const (
	TopicOverview Topic = "overview" // one row, key OverviewKey
	TopicLanes    Topic = "lanes"    // LaneRow by lane, AccountRow by lane and pool group
	TopicPools    Topic = "pools"    // PoolRow by resource key
	TopicTenants  Topic = "tenants"  // TenantRow by tenant, at most MaxTenantRows, and a TenantSum
	TopicQueue    Topic = "queue"    // QueueRow by lane
	TopicHealth   Topic = "health"   // HealthRow by part
)

// Topics lists every topic.
var Topics = []Topic{TopicOverview, TopicLanes, TopicPools, TopicTenants, TopicQueue, TopicHealth}

// Topics of single objects: the prefix and the object's id.
const (
	TaskPrefix   = "task:"   // one row, key TaskKey
	TenantPrefix = "tenant:" // one row, key TenantKey, and one by lane
)

// Keys of the rows that stand alone in their topic.
const (
	OverviewKey  = "overview"
	TenantSumKey = "sum"
	HistoryKey   = "history" // of the lanes and of a tenant: when the charts were last added to
	TaskKey      = "task"
	TenantKey    = "tenant"
)

// HistoryRow tells when the newest sample was taken, in Unix milliseconds.
type HistoryRow struct {
	SampledMilli int64 `json:"sampled"`
}

// TaskLive is what moves in a task. Looked changes every other second while it waits, so that what holds
// it is looked up again.
type TaskLive struct {
	State    string `json:"state"`
	Version  int64  `json:"version"`
	Attempts int64  `json:"attempts"`
	Looked   int64  `json:"looked"`
}

// TenantLive is a tenant over all its lanes, with its share in the home lane as in TenantRow.
type TenantLive struct {
	Running      int64     `json:"running"`
	RunningUnits int64     `json:"running_units"`
	QueuedTasks  int64     `json:"queued_tasks"`
	QueuedMilli  int64     `json:"queued_milli"`
	OldestAt     time.Time `json:"oldest_at,omitzero"`
	Share        int64     `json:"share"`
	Entitled     int64     `json:"entitled"`
}

// TenantLaneLive is a tenant in one lane.
type TenantLaneLive struct {
	Lane         string    `json:"lane"`
	Running      int64     `json:"running"`
	RunningUnits int64     `json:"running_units"`
	QueuedTasks  int64     `json:"queued_tasks"`
	QueuedMilli  int64     `json:"queued_milli"`
	DebtMilli    int64     `json:"debt_milli"` // below 0: credit
	OldestAt     time.Time `json:"oldest_at,omitzero"`
}

// MaxTenantRows bounds the tenants topic: those with running or queued work, the busiest first.
const MaxTenantRows = 200

// Overview sums the platform up. Slot units unless a name says otherwise.
type Overview struct {
	Capacity          int64      `json:"capacity"`
	Used              int64      `json:"used"`
	Free              int64      `json:"free"`
	Over              int64      `json:"over"` // used above capacity after it was lowered
	Own               int64      `json:"own"`
	Common            int64      `json:"common"`
	Borrowed          int64      `json:"borrowed"`
	Unknown           int64      `json:"unknown"`       // attempts whose fate is not known
	UnknownUnits      int64      `json:"unknown_units"` // slot units that they keep
	QueuedTasks       int64      `json:"queued_tasks"`
	QueuedMilli       int64      `json:"queued_milli"` // fairness milli-units
	OldestAt          time.Time  `json:"oldest_at,omitzero"`
	OldestLane        string     `json:"oldest_lane"`
	Running           int64      `json:"running"` // tasks
	StartsPerMinute   int64      `json:"starts_per_minute"`
	Succeeded         int64      `json:"succeeded"` // tasks that ended within RecentWindow
	Failed            int64      `json:"failed"`
	Canceled          int64      `json:"canceled"`
	PolicyWanted      int64      `json:"policy_wanted"`
	PolicyActive      int64      `json:"policy_active"` // of this replica
	AdmissionOpen     bool       `json:"admission_open"`
	SchedulingRunning bool       `json:"scheduling_running"`
	PausedLanes       []string   `json:"paused_lanes"`
	Degraded          []Degraded `json:"degraded"`
}

// Degraded is a degraded mode that holds now. Code names a message of the catalogue.
type Degraded struct {
	Code  string    `json:"code"`
	Since time.Time `json:"since"`
}

// LaneRow is one lane, summed over its pool groups. Slot units unless a name says otherwise.
type LaneRow struct {
	Lane          string    `json:"lane"`
	Weight        int64     `json:"weight"`
	Own           int64     `json:"own"`
	Common        int64     `json:"common"`
	Borrowed      int64     `json:"borrowed"`
	Lent          int64     `json:"lent"`
	Headroom      int64     `json:"headroom"`
	Reserved      int64     `json:"reserved"`
	Used          int64     `json:"used"`     // own + common + borrowed
	Capacity      int64     `json:"capacity"` // reserved and the common units of its groups
	Free          int64     `json:"free"`     // of its own and of the common units
	Over          int64     `json:"over"`     // own use above the reserve after it was lowered
	QueuedTasks   int64     `json:"queued_tasks"`
	QueuedMilli   int64     `json:"queued_milli"`
	OldestAt      time.Time `json:"oldest_at,omitzero"`
	TargetSeconds int64     `json:"target_seconds"` // 0: none
	Running       int64     `json:"running"`        // tasks
	Paused        bool      `json:"paused"`
	AdmissionOpen bool      `json:"admission_open"`
	Lendable      int64     `json:"lendable"`
	BorrowLimit   int64     `json:"borrow_limit"`
	Stopped       bool      `json:"stopped"`                // it lends nothing for now, in one of its groups at least
	StoppedSince  time.Time `json:"stopped_since,omitzero"` // the earliest of them
}

// AccountRow is a lane's account in one pool group, in slot units.
type AccountRow struct {
	Lane        string `json:"lane"`
	Group       string `json:"group"`
	Own         int64  `json:"own"`
	Common      int64  `json:"common"`
	Borrowed    int64  `json:"borrowed"`
	Lent        int64  `json:"lent"`
	Headroom    int64  `json:"headroom"`
	Reserved    int64  `json:"reserved"`
	CommonUnits int64  `json:"common_units"` // of the group, shared by all lanes
	CommonUsed  int64  `json:"common_used"`  // of the group, by all lanes
	Paused      bool   `json:"paused"`
	Lendable    int64  `json:"lendable"`
	BorrowLimit int64  `json:"borrow_limit"`
	Stopped     bool   `json:"stopped"`

	StoppedSince time.Time `json:"stopped_since,omitzero"`
}

// Key of an account row: lane and group.
func (a AccountRow) Key() string { return a.Lane + "@" + a.Group }

// PoolRow is one pool or cap group, in slot units.
type PoolRow struct {
	Key          string   `json:"key"`
	Title        string   `json:"title"` // model, provider and account of a leaf, else the key
	Kind         string   `json:"kind"`
	Group        string   `json:"group"`
	Parents      []string `json:"parents"`
	Provider     string   `json:"provider"`
	Account      string   `json:"account"`
	Region       string   `json:"region"`
	Model        string   `json:"model"`
	Capacity     int64    `json:"capacity"`
	Limit        int64    `json:"limit"` // adaptive limit; -1: none
	Used         int64    `json:"used"`
	Free         int64    `json:"free"`
	Over         int64    `json:"over"`
	Unknown      int64    `json:"unknown"` // attempts whose fate is not known
	UnknownUnits int64    `json:"unknown_units"`
	Paused       bool     `json:"paused"`
	Removed      bool     `json:"removed"` // no longer in the policy, drains

	OpenUntil   time.Time `json:"open_until,omitzero"`    // its breaker is open: nothing starts before
	Earmarked   int64     `json:"earmarked"`              // units kept for a task that was passed over too often
	EarmarkLane string    `json:"earmark_lane,omitempty"` // of that task
	EarmarkEnds time.Time `json:"earmark_ends,omitzero"`
}

// TenantRow is one tenant: its use and queue in all lanes, its share in its home lane.
type TenantRow struct {
	ID           uuid.UUID `json:"id"`
	Code         string    `json:"code"`
	Name         string    `json:"name"`
	Lane         string    `json:"lane"`
	Weight       int64     `json:"weight"`
	Running      int64     `json:"running"` // tasks
	RunningUnits int64     `json:"running_units"`
	QueuedTasks  int64     `json:"queued_tasks"`
	QueuedMilli  int64     `json:"queued_milli"`
	OldestAt     time.Time `json:"oldest_at,omitzero"`
	ServedMilli  int64     `json:"served_milli"` // fairness milli-units claimed in its home lane within the share window
	Share        int64     `json:"share"`        // of what its lane served, in 1/100 %; -1: nothing was served
	Entitled     int64     `json:"entitled"`     // by weight among tenants with demand, in 1/100 %; -1: no demand of its own
	Backlogged   bool      `json:"backlogged"`   // had a queue during the whole window, so that share should follow weight
}

// TenantSum says how many tenants have work, and whether the topic shows all of them.
type TenantSum struct {
	WithWork int64 `json:"with_work"`
	Complete bool  `json:"complete"` // a tenant without a row has neither running nor queued work
	Window   int64 `json:"window"`   // of the shares, seconds
}

// QueueRow is what waits for one lane.
type QueueRow struct {
	Lane     string    `json:"lane"`
	Tasks    int64     `json:"tasks"`
	Milli    int64     `json:"milli"`
	OldestAt time.Time `json:"oldest_at,omitzero"`
}

// HealthRow is one part of the machine. Its Code and Kind name messages of the catalogue.
type HealthRow struct {
	Kind   string    `json:"kind"` // store, lease, outbox, replica, reconciler, starvation
	Name   string    `json:"name"`
	Good   bool      `json:"good"`
	Code   string    `json:"code"`           // what is wrong, "" when good
	Text   string    `json:"text"`           // holder of a lease, error of a replica
	Number int64     `json:"number"`         // rows of an outbox, version of a replica, repairs of a reconciler, starved tenants of a lane
	Since  time.Time `json:"since,omitzero"` // oldest row of an outbox, last sign of life of a replica, last run of a reconciler, oldest task of a lane
	Until  time.Time `json:"until,omitzero"` // end of a lease
	Bound  int64     `json:"bound"`          // of a lane's longest wait, seconds; 0: none
}

// Key of a health row: kind and name.
func (h HealthRow) Key() string { return h.Kind + ":" + h.Name }
