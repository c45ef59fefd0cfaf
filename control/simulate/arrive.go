package simulate

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/admit"
	"fairlane/control/estimate"
	"fairlane/control/plan"
	"fairlane/policy"
)

// arriving is the task that stands at the gate.
type arriving struct {
	from   *Arrival
	user   *user
	tenant *tenant
	model  *model
	id     uuid.UUID
	task   *task // set when it was let in
}

// newGate makes the product's gate over the run's counters and clock.
func (w *world) newGate() *admit.Gate {
	doc := w.doc
	if !w.cfg.Admission {
		doc = openGate(doc)
	}
	version := &policy.Version{Number: 1, Document: doc}
	return admit.NewGate(admit.Config{
		Policies: inForce{version}, Store: w, Loads: w, Estimates: w, Now: w.time,
		NewID: func() (uuid.UUID, error) { return w.arriving.id, nil },
	})
}

type inForce struct{ version *policy.Version }

func (f inForce) Current() *policy.Version { return f.version }

// openGate returns the document without what turns tasks away for their number: only what can never run
// is left to refuse.
func openGate(doc *policy.Document) *policy.Document {
	const most = math.MaxInt32
	d := doc.Clone()
	for i := range d.Lanes {
		d.Lanes[i].MaxQueuedTasks, d.Lanes[i].MaxQueuedUnits, d.Lanes[i].MaxWaitSeconds = most, most, 0
	}
	for i := range d.Plans {
		s := &d.Plans[i].Settings
		s.MaxWaitSeconds, s.SubmitsPerMinute, s.UserSubmitsPerMin = 0, most, most
	}
	d.Limits.MaxQueuedTasks, d.Limits.MaxQueuedUnits = most, most
	return d
}

func (w *world) arrive(ctx context.Context, a *Arrival) error {
	u := w.users[a.User]
	m := w.models[a.Model]
	w.tasks++
	w.arriving = &arriving{from: a, user: u, tenant: u.tenant, model: m, id: numbered(idTask, w.tasks)}
	t := u.tenant
	t.tally.arrivals++
	_, err := w.gate.Submit(ctx, admit.Principal{
		TenantID: t.account.ID, TenantCode: t.account.Code, PlanCode: t.account.PlanCode, TokenName: "trace",
		Suspended: !t.account.Active(),
	}, admit.Request{User: u.name, Model: m.code, Prompt: "simulated"}, strconv.FormatUint(w.tasks, 10))
	var no *admit.Refusal
	switch {
	case errors.As(err, &no):
		t.tally.rejected++
		w.result.refused(string(no.Decision))
		return nil
	case err != nil && control.CodeOf(err) == control.CodeForbidden:
		t.tally.rejected++
		w.result.refused(string(control.CodeForbidden))
		return nil
	case err != nil:
		return fault("task %d of tenant %s: %w", w.tasks, t.account.Code, err)
	}
	return w.enqueue(w.arriving.task)
}

// StoredAnswer says that no key was used before: every task of a trace is a new one.
func (w *world) StoredAnswer(context.Context, uuid.UUID, string) (admit.StoredAnswer, error) {
	return admit.StoredAnswer{}, errNoAnswer
}

var errNoAnswer = control.Errorf(control.CodeNotFound, "no such key")

// Standing knows the tenant's factor and blocks nobody.
func (w *world) Standing(context.Context, uuid.UUID, string) (admit.Standing, error) {
	return admit.Standing{Factor: w.arriving.tenant.factor}, nil
}

// Load returns what waits now.
func (w *world) Load(context.Context) (*admit.Load, error) {
	w.load.At = w.time()
	return w.load, nil
}

// InsertTasks is the last look, at the caps that count exactly; the facts' transaction has the same.
func (w *world) InsertTasks(_ context.Context, tasks []admit.NewTask) ([]admit.Inserted, error) {
	out := make([]admit.Inserted, len(tasks))
	for i := range tasks {
		n, a := &tasks[i], w.arriving
		if err := w.room(a, n); err != nil {
			out[i].Err = err
			continue
		}
		l := w.lanes[n.Lane]
		if l == nil || w.accounts[plan.LaneGroup{Lane: n.Lane, Group: n.Group}] == nil {
			return nil, fault("the gate sent a task to lane %q in group %q, which the policy does not have", n.Lane, n.Group)
		}
		t := &task{
			id: n.TaskID, user: a.user, model: a.model, kind: kindOf(n.Kind), party: w.party(a.tenant, l),
			at: w.now, duration: a.from.Duration, p95: seconds(n.P95Seconds), route: n.Route, band: n.Band,
			charge: estimate.Charge{
				Milli: n.FairnessMilli, Base: n.BaseMilli, SlotUnits: n.SlotUnits, Seconds: n.MeanSeconds,
				GPUSeconds: n.GPUSeconds, CostMicro: n.CostMicro, Bases: n.Bases,
			},
		}
		t.account = w.accounts[plan.LaneGroup{Lane: n.Lane, Group: n.Group}]
		if n.DeadlineSeconds > 0 {
			t.until = w.now + n.DeadlineSeconds*secondsInMicro
		}
		took := float64(t.duration) / float64(secondsInMicro)
		t.actual = estimate.Settle(t.charge, estimate.Finish{
			From: control.AttemptAccepted, To: control.AttemptSucceeded, Seconds: took, CostMicro: -1, Accepted: took, Held: took,
		})
		a.task = t
	}
	return out, nil
}

func (w *world) room(a *arriving, n *admit.NewTask) error {
	if !w.cfg.Admission {
		return nil
	}
	s := &a.tenant.settings
	switch maxMilli := admit.Milli(s.MaxQueuedUnits); {
	case a.user.queued+1 > s.UserMaxQueuedTasks:
		return admit.QueueFull(admit.UserQueueFull, "user", "", admit.UnitTasks, s.UserMaxQueuedTasks, a.user.queued, 1)
	case a.tenant.queued+1 > s.MaxQueuedTasks:
		return admit.QueueFull(admit.TenantQueueFull, "tenant", "", admit.UnitTasks, s.MaxQueuedTasks, a.tenant.queued, 1)
	case a.tenant.milli+n.FairnessMilli > maxMilli:
		return admit.QueueFull(admit.TenantQueueFull, "tenant", "", admit.UnitFairness, maxMilli, a.tenant.milli, n.FairnessMilli)
	case n.Crowded != nil && a.tenant.queued >= n.Guaranteed:
		return n.Crowded
	}
	return nil
}

func (w *world) enqueue(t *task) error {
	w.waiting[t.id] = t
	if t.until > 0 {
		heap.Push(&w.patient, patient{t.until, t.id})
	}
	t.lent = t.account.shortTime(w.now)
	t.party.lane.fluid.ask(&t.party.fluidShare, float64(t.actual.Milli))
	w.waits(t, 1)
	return w.decider.add(t)
}

// waits counts a task among those that wait, or out of them.
func (w *world) waits(t *task, by int64) {
	u, p := t.user, t.party
	u.queued += by
	p.tenant.queued += by
	p.tenant.milli += by * t.charge.Milli
	w.load.Tasks += by
	w.load.Milli += by * t.charge.Milli
	in := p.lane.load
	in.Tasks += by
	in.Milli += by * t.charge.Milli
	in.SampleMilli += by * t.charge.Milli
	in.SlotSeconds += float64(by) * float64(t.charge.SlotUnits) * t.charge.Seconds
	if in.Tasks == 0 {
		in.SlotSeconds = 0
	}
	own := in.Tenants[p.tenant.account.ID]
	own.Tasks += by
	own.Milli += by * t.charge.Milli
	own.Weight = p.tenant.settings.Weight
	if own.Tasks == 0 {
		delete(in.Tenants, p.tenant.account.ID)
	} else {
		in.Tenants[p.tenant.account.ID] = own
	}
	p.waiting += by
	if !u.capped[t.kind] {
		p.runnable += by
	}
	u.wait(p).n[t.kind] += by
	p.lane.sizes.count(t.charge.SlotUnits, by)
	t.account.waiting.count(t.charge.SlotUnits, by)
	w.settleStand(p)
}

// wait finds a user's counters in a lane; the pointer is good until the next call.
func (u *user) wait(p *party) *userWait {
	for i := range u.waits {
		if u.waits[i].party == p {
			return &u.waits[i]
		}
	}
	u.waits = append(u.waits, userWait{party: p})
	return &u.waits[len(u.waits)-1]
}

// expire ends the patience of a task that waits.
func (w *world) expire(t *task) {
	w.leaveQueue(t)
	w.decider.remove(t)
	t.party.lane.fluid.ask(&t.party.fluidShare, -float64(t.actual.Milli))
	t.party.tally.expired++
}

func (w *world) leaveQueue(t *task) {
	delete(w.waiting, t.id)
	w.waits(t, -1)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
