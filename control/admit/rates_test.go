package admit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"fairlane/policy"
)

func TestRatesOfUserAndTenant(t *testing.T) {
	t.Parallel()
	d := newDesk()
	d.doc.Plans[0].Settings.SubmitsPerMinute = 12
	g := d.gate()
	ctx := context.Background()
	submit := func(user string, n int) error {
		r := request()
		r.User = user
		_, err := g.Submit(ctx, principal(), r, fmt.Sprintf("%s-%d", user, n))
		return err
	}
	var no *Refusal
	for i := range 5 {
		if err := submit("u-1", i); err != nil {
			t.Fatalf("%d of 5: %v", i, err)
		}
	}
	if err := submit("u-1", 5); !errors.As(err, &no) || no.Decision != UserRateLimit || no.Limit != 5 || no.RetryAfter != 12*time.Second {
		t.Fatalf("sixth in a minute: %v %+v", err, no)
	}
	for i := range 7 { // 5 + 7 = 12: the user's refusal took nothing from the tenant
		if err := submit(fmt.Sprint("v-", i), 0); err != nil {
			t.Fatalf("tenant %d of 12: %v", 5+i, err)
		}
	}
	if err := submit("w", 0); !errors.As(err, &no) || no.Decision != TenantRateLimit || no.Limit != 12 || no.RetryAfter != 5*time.Second {
		t.Fatalf("thirteenth of the tenant: %v %+v", err, no)
	}
	for i := range 5 { // and the tenant's refusal took nothing from the user
		d.now = d.now.Add(5 * time.Second)
		if err := submit("w", i); err != nil {
			t.Fatalf("w %d: %v", i, err)
		}
	}
	// A replay costs nothing.
	for range 50 {
		if err := submit("u-1", 0); err != nil {
			t.Fatalf("replay: %v", err)
		}
	}
}

func TestRatesFollowThePolicy(t *testing.T) {
	t.Parallel()
	r := newRates(10)
	s := policy.TenantSettings{SubmitsPerMinute: 2, UserSubmitsPerMin: 100}
	for range 2 {
		if no := r.take(noon, me, "u", s); no != nil {
			t.Fatal(no)
		}
	}
	if no := r.take(noon, me, "u", s); no == nil {
		t.Fatal("a third passed")
	}
	s.SubmitsPerMinute = 60
	if no := r.take(noon, me, "u", s); no == nil {
		t.Fatal("a new limit filled the bucket")
	}
	if no := r.take(noon.Add(time.Second), me, "u", s); no != nil {
		t.Fatalf("a second after the limit rose to one a second: %v", no)
	}
}

func TestRatesAreBoundedInMemory(t *testing.T) {
	t.Parallel()
	r := newRates(100)
	s := policy.TenantSettings{SubmitsPerMinute: 1_000_000, UserSubmitsPerMin: 5}
	for i := range 5_000 {
		if no := r.take(noon.Add(time.Duration(i)*time.Millisecond), me, fmt.Sprint("u", i), s); no != nil {
			t.Fatal(no)
		}
		if len(r.buckets) > 100 {
			t.Fatalf("%d buckets", len(r.buckets))
		}
	}
	if _, ok := r.buckets[bucketKey{tenant: me}]; !ok {
		t.Error("the tenant's bucket, in use all the time, was forgotten")
	}
	if no := r.take(noon.Add(time.Hour), uuid.New(), "late", s); no != nil || len(r.buckets) != 2 {
		t.Errorf("an hour later %d buckets are left: %v", len(r.buckets), no)
	}
}
