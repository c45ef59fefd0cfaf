package dispatch

import (
	"context"
	"time"

	"fairlane/control"
	"fairlane/control/crashpoint"
	"fairlane/control/provider"
)

// writeWait bounds the wait for room in a collector that does not get rid of what it has.
const writeWait = 10 * time.Second

// record hands what came of a submit to the collectors.
func (s *Service) record(ctx context.Context, o Order, a provider.Answer) {
	crashpoint.Hit("submit.answered")
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	switch a.Outcome {
	case provider.Accepted:
		s.moves.add(ctx, Move{Ref: o.Ref, To: control.AttemptAccepted, JobID: a.JobID, Raw: a.Raw, Next: s.pace.first(s.Rand()), Lease: s.Lease})
	case provider.SurelyNot:
		s.endings.add(ctx, Ending{
			Ref: o.Ref, State: control.AttemptRejected, Retry: a.Retry, Uncounted: true, RetryAfter: s.pace.retry(o.AttemptNo, a.RetryAfter, s.Rand()),
			ErrorClass: string(a.Class), ErrorCode: code(a.Code, a.Class), ErrorMessage: provider.Clean(a.Message, 500), RawAnswer: a.Raw,
		})
	case provider.Unknown:
		s.Log.Warn("submit unknown", "attempt", o.AttemptID, "provider", o.Provider, "class", a.Class, "status", a.Status)
		s.unknown(ctx, o.Ref, a.Class, a.Code, a.Raw)
	}
}

func (s *Service) unknown(ctx context.Context, ref Ref, class provider.Class, code, raw string) {
	s.moves.add(ctx, Move{Ref: ref, To: control.AttemptUnknown, Class: class, Code: provider.Clean(code, 100), Raw: raw, Next: s.pace.unknown(1, s.Rand())})
}

// end hands the last word of a provider to the collector.
func (s *Service) end(ctx context.Context, c Check, st provider.Status) {
	e := Ending{
		Ref: c.Ref, RawAnswer: st.Raw, ActualSeconds: max(st.Seconds, 0), ActualCost: st.CostMicro,
		ErrorClass: string(st.Class), ErrorCode: code(st.Code, st.Class), ErrorMessage: provider.Clean(st.Message, 500),
	}
	switch st.State {
	case provider.JobSucceeded:
		e.State, e.Result = control.AttemptSucceeded, st.Result
		e.ErrorClass, e.ErrorCode, e.ErrorMessage = "", "", ""
	case provider.JobCanceled:
		e.State = control.AttemptCanceled
		if !c.CancelRequested { // nobody here asked for it
			e.State, e.Retry = control.AttemptFailed, true
			e.ErrorClass, e.ErrorCode = string(provider.ClassCanceled), string(provider.ClassCanceled)
		}
	case provider.JobFailed:
		e.State, e.Retry = control.AttemptFailed, st.Retry
	case provider.JobQueued, provider.JobRunning, provider.JobAbsent:
		return
	}
	e.RetryAfter = s.pace.retry(c.AttemptNo, 0, s.Rand())
	s.endings.add(ctx, e)
}

func code(code string, class provider.Class) string {
	if code = provider.Clean(code, 100); code == "" {
		return string(class)
	}
	return code
}
