package dispatch

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/provider"
)

// MaxCallback bounds the body of a callback, in bytes.
const MaxCallback = 256 << 10

// unmatchedAfter is how long a callback waits for the attempt or job that it names.
const unmatchedAfter = time.Hour

// The outcomes of callbacks.
const (
	outcomeEnded     = "ENDED"     // it was the last word
	outcomeProgress  = "PROGRESS"  // it told how far the job is
	outcomeHint      = "HINT"      // not signed: the job was asked for instead
	outcomeLate      = "LATE"      // the attempt had ended before
	outcomeOther     = "OTHER_JOB" // it is about another job than the attempt's
	outcomeUnmatched = "UNMATCHED" // nothing that it names turned up
)

// Receive checks and stores a callback. Once it returns nil the provider may be told that all is well;
// handling comes afterwards. A repeat of a stored one is nil too and changes nothing.
// Errors: control.CodeNotFound (provider, attempt or token), CodeUnauthorized (signature),
// CodeTooLarge, CodeInvalid (body).
func (s *Service) Receive(ctx context.Context, providerCode string, attempt uuid.UUID, token string, header http.Header, body []byte) error {
	p, err := s.Providers.Find(providerCode)
	if err != nil {
		return err
	}
	if len(body) > MaxCallback {
		return control.Errorf(control.CodeTooLarge, "a callback has at most %d bytes", MaxCallback)
	}
	if !utf8.Valid(body) {
		return control.Errorf(control.CodeInvalid, "a callback's body is UTF-8")
	}
	cb, err := p.Adapter.ParseCallback(provider.CallbackRequest{Header: header, Body: body, At: s.Now()})
	switch {
	case errors.Is(err, provider.ErrSignature):
		return control.Errorf(control.CodeUnauthorized, "%v", provider.ErrSignature)
	case err != nil:
		return control.Errorf(control.CodeInvalid, "the callback cannot be read: %s", provider.Clean(err.Error(), 200))
	case cb.Status.JobID != "" && !provider.GoodJobID(cb.Status.JobID):
		return control.Errorf(control.CodeInvalid, "the callback names a job in a way that no provider does")
	case attempt == uuid.Nil && (!cb.Signed || cb.Status.JobID == ""):
		return control.Errorf(control.CodeNotFound, "no such callback address")
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	cb.Status.Raw = provider.Redact(cb.Status.Raw, []string{token})
	err = s.Callbacks.Store(ctx, StoredCallback{
		ID: id, Provider: providerCode, AttemptID: attempt, Token: token, Signed: cb.Signed, Event: cb.Status,
		Body: provider.Redact(string(body), []string{token}), Digest: digest(providerCode, attempt, body),
	})
	if err != nil {
		return err
	}
	s.counts.callbacks.Add(1)
	signal(s.called)
	return nil
}

func digest(providerCode string, attempt uuid.UUID, body []byte) []byte {
	sum := sha256.New()
	sum.Write([]byte(providerCode))
	sum.Write([]byte{0})
	sum.Write(attempt[:])
	sum.Write(body)
	return sum.Sum(nil)
}

// handleCallbacks works off what is stored until ctx ends.
func (s *Service) handleCallbacks(ctx context.Context) {
	const most = 100
	hold := 4 * s.ReadTimeout
	for ctx.Err() == nil {
		open, err := s.Callbacks.Open(ctx, most, hold)
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("callbacks could not be read", "error", err)
		}
		outcomes := make([]CallbackOutcome, 0, len(open))
		for _, c := range open {
			outcome, again := s.handle(ctx, c)
			if ctx.Err() != nil {
				return
			}
			outcomes = append(outcomes, CallbackOutcome{ID: c.ID, Outcome: outcome, Again: again})
		}
		if len(outcomes) > 0 {
			if err := s.Callbacks.Settle(ctx, outcomes); err != nil && ctx.Err() == nil {
				s.Log.Warn("callbacks could not be settled", "error", err)
			}
		}
		if len(open) == most && err == nil {
			continue
		}
		timer := time.NewTimer(s.Poll)
		select {
		case <-ctx.Done():
		case <-s.called:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// handle says what becomes of a callback; an empty outcome puts it off by again.
func (s *Service) handle(ctx context.Context, cb OpenCallback) (outcome string, again time.Duration) {
	c, st := cb.Check, cb.Event
	early := min(cb.Age/2+100*time.Millisecond, time.Minute)
	switch {
	case !cb.Matched && cb.Age > unmatchedAfter:
		return outcomeUnmatched, 0
	case !cb.Matched:
		return "", early
	case !c.State.Live():
		if c.State == control.AttemptRejected || c.State == control.AttemptAbandoned {
			s.Log.Error("callback of a job whose attempt was given up", "attempt", c.AttemptID, "job", st.JobID)
		}
		return outcomeLate, 0
	case c.State == control.AttemptCreated || c.State == control.AttemptSubmitting:
		return "", early // it overtook the answer of the submit, which names the job
	case c.State == control.AttemptUnknown:
		if st.JobID == "" || !s.proves(ctx, cb) {
			s.hasten(ctx, c)
			return outcomeHint, 0
		}
		s.accept(ctx, c, st.JobID)
		return "", 100 * time.Millisecond
	case st.JobID != "" && st.JobID != c.JobID:
		return outcomeOther, 0
	case !cb.Signed:
		s.hasten(ctx, c)
		return outcomeHint, 0
	case st.State.Ended():
		s.end(ctx, c, st)
		return outcomeEnded, 0
	}
	s.notes.add(ctx, Note{Ref: c.Ref, Answered: true, Progress: st.Progress,
		Next: s.pace.next(c.Now.Sub(c.SubmitEnded), c.Expected, c.P95, s.Rand())})
	return outcomeProgress, 0
}

// proves reports whether a callback shows which job an unknown submit made. Its address was known to
// nobody but the provider; one without a signature is confirmed by asking for the job.
func (s *Service) proves(ctx context.Context, cb OpenCallback) bool {
	if cb.Signed {
		return true
	}
	p, err := s.Providers.Find(cb.Check.Provider)
	if err != nil {
		return false
	}
	c := cb.Check
	st, err := s.status(ctx, p, provider.Job{ID: cb.Event.JobID, Key: c.Key, Account: c.Account, Model: c.Model})
	return err == nil && st.State != provider.JobAbsent && (st.Key == "" || st.Key == c.Key)
}

func (s *Service) hasten(ctx context.Context, c Check) {
	if err := s.Checks.Hasten(ctx, []uuid.UUID{c.AttemptID}); err != nil && ctx.Err() == nil {
		s.Log.Warn("attempt could not be made due", "error", err)
	}
	signal(s.looked)
}
