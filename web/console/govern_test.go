package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/policy/access"
	"fairlane/store/facts"
	"fairlane/views"
)

func TestE13_AuditFilterIsTheAddressAndPagesByKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	audits := facts.NewAudits(s.db)
	for range 120 {
		_, err := audits.Append(t.Context(), audit.Event{Actor: control.System, Action: audit.TaskCancel, ObjectKind: audit.KindTask, ObjectID: "t-1",
			Result: audit.OK, Reason: "批量取消 batch", Params: map[string]any{"state": "QUEUED"}})
		check(t, err)
	}
	b := s.as(access.Auditor)
	seen := map[string]int{}
	target, pages := "/audit?text="+url.QueryEscape("取消")+"&action=task.cancel", 0
	for target != "" {
		a := b.get(target).want(t, http.StatusOK, `value="取消"`, "cancelled a task")
		for _, part := range strings.Split(a.body, `<a href="/audit/`)[1:] {
			number, _, _ := strings.Cut(part, `"`)
			seen[number]++
		}
		target = ""
		for _, part := range strings.Split(a.body, `<a class="btn" href="`)[1:] {
			href, rest, _ := strings.Cut(part, `"`)
			if strings.HasPrefix(rest, ` rel="next"`) {
				target = strings.ReplaceAll(href, "&amp;", "&")
			}
		}
		if pages++; pages > 10 {
			t.Fatal("pages without end")
		}
	}
	if len(seen) != 120 || pages != 3 {
		t.Fatalf("%d rows on %d pages", len(seen), pages)
	}
	for number, n := range seen {
		if n != 1 {
			t.Errorf("row %s came %d times", number, n)
		}
	}
	b.get("/audit?text="+url.QueryEscape("不存在的词")).want(t, http.StatusOK, "No event fits the filter.")
	b.get("/audit?object_kind=tenant&object_id=acme&action=tenant.onboard").want(t, http.StatusOK, "onboarded a tenant")
}

func TestE15_AuditEntryShowsEveryField(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	operator, auditor := s.as(access.Operator), s.as(access.Auditor)
	operator.post("/tenants/acme/publish", "base", "1", "weight", "6", "reason", "because").want(t, http.StatusSeeOther)
	auditor.cookies["fl_zone"] = "Asia%2FShanghai"
	list := auditor.get("/audit?action=policy.publish&version=2").want(t, http.StatusOK, "because")
	_, rest, _ := strings.Cut(list.body, `<a href="/audit/`)
	number, _, _ := strings.Cut(rest, `"`)
	auditor.get("/audit/"+number).want(t, http.StatusOK, "published a policy version", "operator", "192.0.2.7", "UTC", "+08:00", "because", "v2",
		"Tenant <b>acme</b>", "Weight", "Request id", "Hash of the chain", "Approved by", "done", "&#34;weight&#34;")
}

// What the catalogue must say about data that other rooms own.
func TestE11_CatalogueSaysEveryActionKindAndResult(t *testing.T) {
	t.Parallel()
	for action, names := range audit.Actions {
		if !views.Has(views.Key("action." + string(action))) {
			t.Errorf("action %s", action)
		}
		for _, name := range names {
			if !views.Has(views.Key("param." + name)) {
				t.Errorf("parameter %s", name)
			}
		}
	}
	for _, kind := range audit.Kinds {
		if !views.Has(views.Key("object." + kind)) {
			t.Errorf("kind %s", kind)
		}
	}
	for _, result := range audit.Results {
		if !views.Has(views.Key("result." + strings.ToLower(string(result)))) {
			t.Errorf("result %s", result)
		}
	}
}

func TestVersionsAreListedShownAndCompared(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	b.post("/tenants/acme/publish", "base", "1", "weight", "6", "reason", "one").want(t, http.StatusSeeOther)
	b.post("/lanes/STANDARD/publish", "base", "2", "weight", "3", "reason", "two").want(t, http.StatusSeeOther)
	v := s.as(access.Viewer)
	v.get("/versions").want(t, http.StatusOK, "v3", "v2", "v1", "two", "in force", "/versions/compare?from=2&amp;to=3")
	v.get("/versions?before=3").want(t, http.StatusOK, "v2", "First page")
	v.get("/versions/compare?from=1&to=3").want(t, http.StatusOK, "2 changes", "Acme 工作室", "STANDARD")
	v.get("/versions/compare?from=3&to=1").want(t, http.StatusOK, "2 changes", `class="was">6<`)
	v.get("/versions/compare?from=2&to=2").want(t, http.StatusOK, "No difference.")
	v.get("/versions/1").want(t, http.StatusOK, "first", "The whole document", "&#34;schema&#34;")
	if a := v.get("/versions/2"); strings.Contains(a.body, "/audit") {
		t.Error("a viewer is led to the audit record")
	}
	for q, to := range map[string]string{"v2": "/versions/2", "acme": "/tenants/acme", s.tenants[1].ID.String(): "/tenants/beta",
		"01900000-0000-7000-8000-000000000000": "/tasks/01900000-0000-7000-8000-000000000000", "Acme": "/tenants?q=Acme", "工作": "/tenants?q=%E5%B7%A5%E4%BD%9C"} {
		if a := v.get("/search?q=" + url.QueryEscape(q)); a.header.Get("Location") != to {
			t.Errorf("%s leads to %s, want %s", q, a.header.Get("Location"), to)
		}
	}
}

// Both languages say every page whole.
func TestE11_NothingIsUntranslated(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Admin)
	b.post("/switches/publish", "base", "1", "admission_open.shown", "1", "scheduling_running.shown", "1", "reason", "x").want(t, http.StatusSeeOther)
	for _, lang := range []string{"zh", "en"} {
		b.cookies["fl_lang"] = lang
		for _, target := range []string{"/tenants/acme", "/lanes/STANDARD", "/pools/platform", "/pools/provider:north:acct-1:eu:clip", "/switches", "/versions",
			"/versions/2", "/versions/compare?from=1&to=2", "/audit", "/audit/1", "/audit?from=x&before=x", "/nowhere", "/banners"} {
			if keys := b.get(target).untranslated(); len(keys) > 0 {
				t.Errorf("%s in %s: %v", target, lang, keys)
			}
		}
		a := b.post("/tenants/acme", "base", "1", "weight", "9")
		if keys := a.untranslated(); len(keys) > 0 || a.status != http.StatusConflict {
			t.Errorf("conflict in %s: %d %v", lang, a.status, keys)
		}
	}
}
