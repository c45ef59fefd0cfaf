package admit

import (
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"fairlane/policy"
)

// maxBuckets bounds the memory of the rate limiters: about 200 bytes each.
const maxBuckets = 65_536

// rates holds a token bucket per tenant and per user in this process. It is local: replicas do not
// share it, so that n of them let through at most n times the limit; a restart fills every bucket.
type rates struct {
	mu      sync.Mutex
	most    int
	buckets map[bucketKey]*bucket
}

type bucketKey struct {
	tenant uuid.UUID
	user   string // "": the tenant's own
}

type bucket struct {
	limiter *rate.Limiter
	seen    time.Time
}

func newRates(most int) *rates {
	return &rates{most: most, buckets: make(map[bucketKey]*bucket)}
}

// take takes one submission from the user's and the tenant's bucket, or from neither.
func (r *rates) take(now time.Time, tenant uuid.UUID, user string, s policy.TenantSettings) *Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	ofUser, no := r.reserve(now, bucketKey{tenant, user}, s.UserSubmitsPerMin, UserRateLimit, "user")
	if no != nil {
		return no
	}
	if _, no = r.reserve(now, bucketKey{tenant: tenant}, s.SubmitsPerMinute, TenantRateLimit, "tenant"); no != nil {
		ofUser.CancelAt(now)
		return no
	}
	return nil
}

func (r *rates) reserve(now time.Time, key bucketKey, perMinute int64, d Decision, scope string) (*rate.Reservation, *Refusal) {
	if perMinute <= 0 {
		return nil, refuse(d, scope, "", "this %s may not submit: its limit is 0 a minute", scope).numbers(UnitPerMinute, 0, 0, 1)
	}
	burst := int(min(perMinute, math.MaxInt32))
	limit := rate.Limit(float64(burst) / 60)
	b, ok := r.buckets[key]
	if !ok {
		r.makeRoom(now)
		b = &bucket{limiter: rate.NewLimiter(limit, burst)}
		r.buckets[key] = b
	}
	b.seen = now
	if b.limiter.Burst() != burst { // the policy moved
		b.limiter.SetLimitAt(now, limit)
		b.limiter.SetBurstAt(now, burst)
	}
	taken := b.limiter.ReserveN(now, 1)
	if delay := taken.DelayFrom(now); delay > 0 {
		taken.CancelAt(now)
		no := refuse(d, scope, "", "this %s may submit %d tasks a minute", scope, perMinute).numbers(UnitPerMinute, perMinute, perMinute, 1)
		no.RetryAfter = delay
		return nil, no
	}
	return taken, nil
}

// makeRoom forgets what a minute has filled again, and if that is not enough the one unseen for longest.
func (r *rates) makeRoom(now time.Time) {
	if len(r.buckets) < r.most {
		return
	}
	var oldest bucketKey
	var seen time.Time
	for key, b := range r.buckets {
		if now.Sub(b.seen) >= time.Minute {
			delete(r.buckets, key)
			continue
		}
		if seen.IsZero() || b.seen.Before(seen) {
			oldest, seen = key, b.seen
		}
	}
	if len(r.buckets) >= r.most {
		delete(r.buckets, oldest)
	}
}
