package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Pages is what Page measures: a console that answers at Base to requests with that cookie.
type Pages struct {
	Base   string
	Cookie *http.Cookie
	Pool   *pgxpool.Pool
	Runs   int // requests of each page
	Params map[string]any
}

// subject is a page with the bare query that its data need; "" where there is none to compare with.
type subject struct{ name, path, sql string }

var subjects = []subject{
	{"overview", "/", ""},
	{"lanes", "/lanes", ""},
	{"pools", "/pools", ""},
	{"tenants", "/tenants", `
		SELECT t.tenant_id, t.code, t.name, t.plan_code, t.status, p.*, r.* FROM tenant t
		JOIN tenant_scheduling_policy p USING (tenant_id) JOIN tenant_runtime r USING (tenant_id)
		ORDER BY lower(t.name), t.tenant_id LIMIT 50`},
	{"tenants, searched", "/tenants?q=studio+0000", ""},
	{"tenant", "/tenants/tenant-00000", ""},
	{"tasks", "/tasks", `
		SELECT g.*, t.code, t.name FROM generation_task g JOIN tenant t USING (tenant_id) ORDER BY g.task_id DESC LIMIT 50`},
	{"tasks, queued", "/tasks?state=QUEUED", ""},
	{"versions", "/versions", ""},
	{"audit", "/audit", `SELECT * FROM audit_event ORDER BY sequence DESC LIMIT 50`},
	{"health", "/health", ""},
}

// Page prints, for every page, the 95th percentile of the time to its first byte in milliseconds, beside
// that of the bare query, taken in turn.
func Page(ctx context.Context, p Pages, out io.Writer) error {
	client := &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	for _, s := range subjects {
		var pages, bare []time.Duration
		for run := range p.Runs + 5 {
			took, err := p.firstByte(ctx, client, s.path)
			if err != nil {
				return fmt.Errorf("%s: %w", s.path, err)
			}
			query, err := p.query(ctx, s.sql)
			if err != nil {
				return fmt.Errorf("baseline of %s: %w", s.path, err)
			}
			if run >= 5 { // the first ones warm caches and plans
				pages, bare = append(pages, took), append(bare, query)
			}
		}
		r := Result{Name: "page", Value: percentile(pages, 0.95), Unit: "ms to first byte, p95", Params: map[string]any{"page": s.name, "median_ms": percentile(pages, 0.5)}}
		for k, v := range p.Params {
			r.Params[k] = v
		}
		if s.sql != "" {
			r.Baseline, r.BaselineValue = "the bare query, median", percentile(bare, 0.5)
			r.Ratio = percentile(pages, 0.5) / r.BaselineValue
		}
		if err := r.Write(out); err != nil {
			return err
		}
	}
	return nil
}

func (p Pages) firstByte(ctx context.Context, client *http.Client, path string) (time.Duration, error) {
	var first time.Time
	trace := &httptrace.ClientTrace{GotFirstResponseByte: func() { first = time.Now() }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, p.Base+path, nil)
	if err != nil {
		return 0, err
	}
	req.AddCookie(p.Cookie)
	req.Header.Set("Accept-Encoding", "gzip")
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("answered %d", res.StatusCode)
	}
	return first.Sub(began), nil
}

func (p Pages) query(ctx context.Context, sql string) (time.Duration, error) {
	if sql == "" {
		return 0, nil
	}
	began := time.Now()
	rows, err := p.Pool.Query(ctx, sql)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		if _, err := rows.Values(); err != nil {
			return 0, err
		}
	}
	return time.Since(began), rows.Err()
}
