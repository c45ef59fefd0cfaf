package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"fairlane/store/facts"
)

// token makes an API token of the tenant.
func (p *product) token(t testing.TB, tenant uuid.UUID) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	db, err := facts.Open(ctx, p.db.URL, "test", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	secret, _, err := facts.NewTokens(db, nil).Create(ctx, tenant, "browser test", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func (p *product) tenantID(code string) uuid.UUID {
	return row[uuid.UUID](p, `SELECT tenant_id FROM tenant WHERE code = $1`, code)
}

// submit posts n tasks of the model as the tenant's service does.
func (p *product) submit(t testing.TB, tenant uuid.UUID, user, model string, n int) {
	t.Helper()
	secret := p.token(t, tenant)
	client := &http.Client{Timeout: stepTimeout}
	defer client.CloseIdleConnections()
	var group errgroup.Group
	group.SetLimit(4)
	for range n {
		group.Go(func() error { return post(client, p.url, secret, user, model) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func post(client *http.Client, base, secret, user, model string) error {
	body, err := json.Marshal(map[string]any{"model": model, "prompt": "A paper boat crosses a rainy street at dusk."})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/tasks", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("X-Fairlane-User", user)
	req.Header.Set("Idempotency-Key", uuid.NewString())
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusAccepted {
		return &refused{res.StatusCode, string(answer)}
	}
	return nil
}

// refused is an answer of the API that a test did not want.
type refused struct {
	status int
	body   string
}

func (r *refused) Error() string { return http.StatusText(r.status) + ": " + r.body }

// wait looks at the database until the query's only value is true.
func (p *product) wait(t testing.TB, what string, most time.Duration, query string, args ...any) {
	t.Helper()
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !row[bool](p, query, args...) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s", most, what)
		}
	}
}
