package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

func TestDescriptionIsValidAndServed(t *testing.T) {
	t.Parallel()
	doc, _ := spec()
	if err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Fatal(err)
	}
	d := newDesk(t)
	out := d.send(t, ask{method: http.MethodGet, path: "/v1/openapi.yaml", header: map[string]string{"Authorization": ""}})
	if out.status != http.StatusOK || !strings.HasPrefix(out.text, "openapi: 3.1.0") || out.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("%d %s %.40s", out.status, out.header.Get("Content-Type"), out.text)
	}
}

func TestTaskFromSubmissionToCancel(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	body := `{"model": "clip", "prompt": "雪中的狐狸\nline two", "negative_prompt": "", "resolution": "1080p", "duration_seconds": 1e1, "seed": 0, "project": "片",
		"deadline_seconds": 600, "priority": 9999, "cost": {"units": [-5]}, "lane": "ENTERPRISE_RESERVED", "weight": null, "queue_class": "X", "priority_band": 0}`
	ask1 := ask{body: body, header: map[string]string{"Idempotency-Key": "bare-key", "X-Fairlane-User": "用户-1", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}
	first := d.send(t, ask1)
	if first.status != http.StatusAccepted || first.json["queue_class"] != "MAIN" || first.json["state"] != "QUEUED" || first.header.Get("Retry-After") == "" {
		t.Fatalf("%d %s", first.status, first.text)
	}
	id := first.json["task_id"].(string)
	if first.header.Get("Location") != "/v1/tasks/"+id || first.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("headers %v", first.header)
	}
	ask1.header["Idempotency-Key"] = `"bare-key"` // quoted is the same key
	ask1.body = strings.Replace(body, `"seed": 0, `, "", 1) + " "
	if out := d.send(t, ask1); out.status != http.StatusUnprocessableEntity || out.code() != "KEY_REUSED" {
		t.Errorf("another body: %d %s", out.status, out.text)
	}
	ask1.body = " " + body
	if out := d.send(t, ask1); out.status != http.StatusAccepted || out.text != first.text || out.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("replay: %d %s", out.status, out.text)
	}
	got := d.send(t, ask{method: http.MethodGet, path: "/v1/tasks/" + id})
	if got.status != http.StatusOK || got.json["user"] != "用户-1" || got.json["project"] != "片" || got.json["state"] != "QUEUED" || got.header.Get("ETag") != `W/"0"` {
		t.Errorf("%d %s", got.status, got.text)
	}
	if p := got.json["parameters"].(map[string]any); p["prompt"] != "雪中的狐狸\nline two" || p["duration_seconds"] != 10.0 || p["seed"] != 0.0 || p["resolution"] != "1080p" {
		t.Errorf("parameters %v", p)
	}
	for _, secret := range []string{"cost_micro", "estimated_cost", "provider", "weight", "priority"} {
		if strings.Contains(got.text, secret) {
			t.Errorf("the tenant can read %s: %s", secret, got.text)
		}
	}
	for range 2 {
		out := d.send(t, ask{path: "/v1/tasks/" + id + "/cancel"})
		if out.status != http.StatusOK || out.json["state"] != "CANCELED" {
			t.Errorf("cancel: %d %s", out.status, out.text)
		}
	}
	if got = d.send(t, ask{method: http.MethodGet, path: "/v1/tasks/" + id}); got.json["state"] != "CANCELED" || got.json["cancel_requested_at"] == nil || got.header.Get("ETag") != `W/"1"` {
		t.Errorf("%s", got.text)
	}
	if out := d.send(t, ask1); out.status != http.StatusAccepted || out.text != first.text {
		t.Errorf("replay after the end is still the first answer: %d %s", out.status, out.text)
	}
}

func TestCancelOfWhatRunsAndWhatHasEnded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	running, ended := d.submit(t), d.submit(t)
	d.do(t, `UPDATE generation_task SET state = 'RUNNING' WHERE task_id = $1`, running)
	d.do(t, `UPDATE generation_task SET state = 'FAILED', error_code = 'REFUSED', error_message = 'no', result = '[1]', finished_at = now() WHERE task_id = $1`, ended)
	for range 2 {
		out := d.send(t, ask{path: "/v1/tasks/" + running + "/cancel", body: "{}", header: map[string]string{"Content-Type": "application/json", "X-Fairlane-User": "u-9"}})
		if out.status != http.StatusAccepted || out.json["state"] != "RUNNING" || out.header.Get("Location") != "/v1/tasks/"+running {
			t.Errorf("cancel of a running task: %d %s", out.status, out.text)
		}
	}
	var asked string
	if err := d.Pool.QueryRow(t.Context(), `SELECT string_agg(actor, ',') FROM task_event WHERE task_id = $1 AND type = 'TaskCancelRequested'`, running).Scan(&asked); err != nil || asked != "token:acme user:u-9" {
		t.Errorf("history says %q: %v", asked, err)
	}
	for range 2 {
		if out := d.send(t, ask{path: "/v1/tasks/" + ended + "/cancel"}); out.status != http.StatusConflict || out.code() != "ILLEGAL_MOVE" {
			t.Errorf("cancel of a failed task: %d %s", out.status, out.text)
		}
	}
	got := d.send(t, ask{method: http.MethodGet, path: "/v1/tasks/" + ended})
	if e, _ := got.json["error"].(map[string]any); e["code"] != "REFUSED" || e["message"] != "no" || got.json["finished_at"] == nil {
		t.Errorf("%s", got.text)
	}
}

func TestI13_AnotherTenantSeesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.submit(t)
	for _, a := range []ask{
		{method: http.MethodGet, path: "/v1/tasks/" + id, token: d.tokens[1]},
		{method: http.MethodPost, path: "/v1/tasks/" + id + "/cancel", token: d.tokens[1]},
		{method: http.MethodGet, path: "/v1/tasks/" + id + "/why", token: d.tokens[1]},
	} {
		if out := d.send(t, a); out.status != http.StatusNotFound || out.code() != "NOT_FOUND" {
			t.Errorf("%s %s: %d %s", a.method, a.path, out.status, out.text)
		}
	}
	out := d.send(t, ask{method: http.MethodGet, token: d.tokens[1]})
	if tasks := out.json["tasks"].([]any); len(tasks) != 0 {
		t.Errorf("list: %s", out.text)
	}
	// The same key and body of another tenant is another task.
	header := map[string]string{"Idempotency-Key": "shared"}
	mine := d.send(t, ask{body: good, header: header})
	theirs := d.send(t, ask{body: good, header: header, token: d.tokens[1]})
	if mine.json["task_id"] == theirs.json["task_id"] || theirs.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("keys are not apart: %s %s", mine.text, theirs.text)
	}
}

func TestTrap_D62_ListPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	want := map[string]bool{}
	for range 25 {
		want[d.submit(t)] = true
	}
	d.do(t, `UPDATE generation_task SET created_at = now(), queued_since = now()`)
	seen := map[string]bool{}
	const first = "/v1/tasks?limit=4&state=QUEUED,RUNNING&user=u-1&model=clip&queue_class=MAIN"
	path := first
	for pages := 0; ; pages++ {
		out := d.send(t, ask{method: http.MethodGet, path: path})
		if out.status != http.StatusOK || pages > 7 {
			t.Fatalf("page %d: %d %s", pages, out.status, out.text)
		}
		for _, x := range out.json["tasks"].([]any) {
			id := x.(map[string]any)["task_id"].(string)
			if seen[id] || !want[id] {
				t.Errorf("task %s again, or nobody's", id)
			}
			seen[id] = true
		}
		next, more := out.json["next_cursor"].(string)
		if !more {
			break
		}
		path = first + "&cursor=" + next
	}
	if len(seen) != 25 {
		t.Errorf("%d of 25 tasks", len(seen))
	}
}

func TestRefusalsCarryNumbersAndRetryAfter(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.do(t, `UPDATE tenant_scheduling_policy SET user_max_queued_tasks = 1`)
	d.submit(t)
	before := d.written(t)
	out := d.send(t, ask{body: good})
	limit, _ := out.json["limit"].(map[string]any)
	if out.status != http.StatusTooManyRequests || out.code() != "REJECT_USER_QUEUE_FULL" || out.header.Get("Retry-After") != "15" ||
		fmt.Sprint(limit["scope"], limit["unit"], limit["limit"], limit["have"], limit["want"]) != "user"+"tasks"+"1 1 1" {
		t.Errorf("%d %v %s", out.status, out.header, out.text)
	}
	for _, tc := range []struct {
		change func()
		status int
		code   string
	}{
		{func() { d.policy.Plans[0].Settings.UserSubmitsPerMin = 0 }, 429, "REJECT_USER_RATE_LIMIT"},
		{func() { d.policy.Plans[0].Models = []string{"else"} }, 403, "REJECT_NOT_ENTITLED"},
		{func() { d.policy.Models[0].Enabled = false }, 503, "REJECT_RESOURCE_CLASS_DISABLED"},
		{func() { d.policy.Switches.AdmissionOpen = false }, 503, "REJECT_PLATFORM_OVERLOADED"},
		{func() { d.policy.Lanes[0].MaxQueuedTasks, d.policy.Limits.GuaranteedQueue = 0, 0 }, 429, "REJECT_LANE_QUEUE_FULL"},
		{func() { d.do(t, `UPDATE tenant_user SET status = 'BLOCKED'`) }, 403, "FORBIDDEN"},
	} {
		d.policy = document()
		d.version++ // a published version never changes
		tc.change()
		if out := d.send(t, ask{body: good}); out.status != tc.status || out.code() != tc.code {
			t.Errorf("%s: %d %s", tc.code, out.status, out.text)
		}
	}
	if after := d.written(t); after != before {
		t.Errorf("refusals wrote %d rows", after-before)
	}
}

func TestDatabaseAwayIs503(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.submit(t)
	d.Pool.Close()
	gone := d.drop(t)
	if !gone {
		t.Fatal("the database is still there")
	}
	for _, a := range []ask{{body: good}, {method: http.MethodGet}, {method: http.MethodGet, path: "/v1/tasks/" + id}, {path: "/v1/tasks/" + id + "/cancel"}} {
		out := d.send(t, a)
		if out.status != http.StatusServiceUnavailable || out.code() != "UNAVAILABLE" || out.header.Get("Retry-After") != "5" || strings.Contains(out.text, d.Name) {
			t.Errorf("%s %s: %d %s", a.method, a.path, out.status, out.text)
		}
	}
}
