package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"fairlane/policy"
	"fairlane/policy/access"
)

// hostile are values that no number field takes, each with a part of what is said beside it.
var hostile = []struct{ name, value, says string }{
	{"missing", "", "This is needed"},
	{"blank", " \t ", "This is needed"},
	{"words", "many", "is not a number"},
	{"negative", "-1", "is negative"},
	{"fraction", "1.5", "is not a whole number"},
	{"exponent", "1e3", "is not a whole number"},
	{"NaN", "NaN", "is not a number"},
	{"infinite", "Inf", "is not a number"},
	{"huge", "99999999999999999999", "is larger than any number"},
	{"beyond the range", "1000000000001", "is outside"},
	{"hexadecimal", "0x10", "is not a number"},
	{"thousands", "1,000", "is not a number"},
	{"full width", "１２", "full-width digits"},
	{"HTML", `"><script>alert(1)</script>`, "is not a number"},
	{"SQL", "1'; DROP TABLE tenant; --", "is not a number"},
	{"template", "{{.Base}}", "is not a number"},
	{"NUL", "1\x002", "cannot be shown"},
	{"control characters", "1\x1b[31m2", "cannot be shown"},
	{"line end", "1\n2", "cannot be shown"},
	{"not UTF-8", "1\xff", "is not a number"},
	{"Chinese", "十二", "is not a number"},
	{"right to left", "\u202e12", "is not a number"},
	{"over-long", strings.Repeat("9", 10_000), "is larger than any number"},
}

var numberFields = []struct{ address, name string }{
	{"/tenants/acme", "weight"}, {"/tenants/acme", "reserved_units"}, {"/tenants/acme", "burst_units"}, {"/tenants/acme", "max_running_tasks"},
	{"/tenants/acme", "max_running_units"}, {"/tenants/acme", "max_queued_tasks"}, {"/tenants/acme", "max_queued_units"},
	{"/tenants/acme", "user_max_running_tasks"}, {"/tenants/acme", "user_max_running_image"}, {"/tenants/acme", "user_max_running_video"},
	{"/tenants/acme", "user_max_queued_tasks"}, {"/lanes/STANDARD", "weight"}, {"/lanes/STANDARD", "reserved_units"},
	{"/pools/provider:north:acct-1:eu:clip", "capacity_units"},
}

// Every wrong value comes back with its message beside the field, with what was typed and the reason, and
// nothing is changed; at the preview and at the publish alike.
func TestE01_HostileValuesOfEveryField(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	for _, f := range numberFields {
		for i, h := range hostile {
			steps := []string{"", "/publish"}
			if i%5 != 0 { // both steps read the form by the same code
				steps = steps[i%2 : i%2+1]
			}
			for _, step := range steps {
				a := b.post(f.address+step, "base", "1", f.name, h.value, "reason", "kept 原因")
				place := fmt.Sprintf("%s%s %s %s", f.address, step, f.name, h.name)
				if a.status != http.StatusUnprocessableEntity {
					t.Errorf("%s: status %d", place, a.status)
					continue
				}
				beside := section(a.body, `id="`+f.name+`-error"`, "</p>")
				if !strings.Contains(beside, h.says) {
					t.Errorf("%s: %q beside the field", place, beside)
				}
				if !strings.Contains(a.body, `name="reason" value="kept 原因"`) {
					t.Errorf("%s: the reason is lost", place)
				}
				if strings.Contains(a.body, "<script>alert") {
					t.Errorf("%s: the value is live", place)
				}
				typed := section(a.body, `<input id="`+f.name+`"`, "/>")
				if len(h.value) < 100 && utf8.ValidString(h.value) && !strings.ContainsAny(h.value, "\x00\n\"'\t") && !strings.Contains(typed, `value="`+h.value+`"`) {
					t.Errorf("%s: typed text is lost: %s", place, typed)
				}
			}
		}
	}
	if s.head() != 1 {
		t.Fatal("something was published")
	}
}

func section(body, from, to string) string {
	_, rest, _ := strings.Cut(body, from)
	part, _, _ := strings.Cut(rest, to)
	return part
}

func TestHostileFormsChangeNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Operator)
	for _, c := range []struct {
		name   string
		form   url.Values
		status int
		says   string
	}{
		{"no base", url.Values{"weight": {"3"}}, 422, "base: This is needed"},
		{"base in words", url.Values{"base": {"one"}, "weight": {"3"}}, 422, "is not a number"},
		{"base that does not exist", url.Values{"base": {"99"}, "weight": {"3"}}, 422, "base: “99” is not there"},
		{"zero base", url.Values{"base": {"0"}, "weight": {"3"}}, 422, "base"},
		{"huge base", url.Values{"base": {"9223372036854775807"}, "weight": {"3"}}, 422, "base"},
		{"unknown key", url.Values{"base": {"1"}, "weight": {"3"}, "plan_code": {"enterprise"}}, 422, "plan_code: There is no such field"},
		{"unknown key with markup", url.Values{"base": {"1"}, "<b>": {"3"}}, 422, "&lt;b&gt;: There is no such field"},
		{"a field twice", url.Values{"base": {"1"}, "weight": {"3", "4"}}, 422, "two values"},
		{"nothing changed", url.Values{"base": {"1"}, "weight": {" 2 "}}, 422, "Nothing was changed"},
		{"empty", url.Values{}, 422, "base"},
		{"reason of blanks", url.Values{"base": {"1"}, "weight": {"3"}, "reason": {"\u3000\u200b\n"}}, 422, "Please say why"},
		{"over-long reason", url.Values{"base": {"1"}, "weight": {"3"}, "reason": {strings.Repeat("长", policy.MaxReason+1)}}, 422, "2,001 characters; at most 2,000"},
		{"NUL in the reason", url.Values{"base": {"1"}, "weight": {"3"}, "reason": {"a\x00b"}}, 422, "cannot be shown"},
		{"reason that is not UTF-8", url.Values{"base": {"1"}, "weight": {"3"}, "reason": {"a\xffb"}}, 422, "cannot be shown"},
		{"several rules at once", url.Values{"base": {"1"}, "weight": {"-3"}, "burst_units": {"x"}, "max_queued_tasks": {"1e9"}}, 422, "is negative"},
		{"over a megabyte", url.Values{"base": {"1"}, "weight": {strings.Repeat("1", 1<<20+1)}}, 413, "larger than allowed"},
	} {
		a := b.do(http.MethodPost, "/tenants/acme/publish", c.form)
		if a.status != c.status || !strings.Contains(a.body, c.says) {
			t.Errorf("%s: %d, want %d with %q\n%s", c.name, a.status, c.status, c.says, a.body)
		}
	}
	all := b.post("/tenants/acme", "base", "1", "weight", "-3", "burst_units", "x", "max_queued_tasks", "1e9")
	if n := strings.Count(all.body, `class="error"`); n != 3 || strings.Count(all.body, "autofocus") != 1 {
		t.Errorf("%d messages beside fields, %d fields with the focus", n, strings.Count(all.body, "autofocus"))
	}
	for _, sw := range []string{"yes", "1", `"><b>`, "\x00"} {
		b.post("/switches", "base", "1", "admission_open", sw).want(t, http.StatusUnprocessableEntity, `id="admission_open-error"`)
	}
	if s.head() != 1 {
		t.Fatal("something was published")
	}
}

func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Admin)
	for target, status := range map[string]int{
		"/tenants/nobody": 404, "/tenants/%00": 404, "/tenants/%ff": 404, "/tenants/" + strings.Repeat("a", 5000): 404, "/tenants/..%2f..": 404,
		"/lanes/NONE": 404, "/pools/none": 404, "/pools/%3Cscript%3E": 404,
		"/versions/0": 404, "/versions/-1": 404, "/versions/x": 404, "/versions/99": 404, "/versions/99999999999999999999": 404, "/versions/1.5": 404,
		"/versions/compare": 422, "/versions/compare?from=1&to=x": 422, "/versions/compare?from=1&to=99": 404, "/versions/compare?from=v1&to=1": 200,
		"/versions?before=x": 422, "/versions?before=-1": 422,
		"/audit/0": 404, "/audit/x": 404, "/audit/999999": 404,
		"/audit?from=yesterday": 422, "/audit?version=x": 422, "/audit?object_kind=x": 422, "/audit?result=x": 422, "/audit?before=x": 422,
		"/audit?from=2026-12-02&to=2026-12-01": 422, "/audit?text=" + strings.Repeat("a", 500): 422, "/audit?actor=%00": 422, "/audit?text=%25_%27": 200,
		"/search?q=" + strings.Repeat("a", 300): 422, "/search?q=%ff": 422, "/search?q=%00": 303, "/search?q=": 303,
	} {
		if a := b.get(target); a.status != status || strings.Contains(a.body, "INTERNAL") {
			t.Errorf("%s: %d, want %d\n%s", target, a.status, status, a.body)
		}
	}
}

// Names of tenants are text wherever they are shown.
func TestTrap_D56_HostileNamesAreInert(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(access.Admin)
	b.post("/tenants/beta/publish", "base", "1", "weight", "3", "reason", hostileName).want(t, http.StatusSeeOther)
	b.post("/tenants/beta/publish", "base", "2", "weight", "4", "reason", hostileName).want(t, http.StatusSeeOther)
	var sequence int64
	check(t, s.database.Pool.QueryRow(t.Context(), `SELECT max(sequence) FROM audit_event WHERE action = 'policy.publish'`).Scan(&sequence))
	for name, a := range map[string]answer{
		"page":     b.get("/tenants/beta"),
		"preview":  b.post("/tenants/beta", "base", "3", "weight", "5", "reason", hostileName),
		"conflict": b.post("/tenants/beta", "base", "1", "weight", "5", "reason", hostileName),
		"version":  b.get("/versions/2"), "versions": b.get("/versions"), "compare": b.get("/versions/compare?from=1&to=3"),
		"audit": b.get("/audit?text=" + url.QueryEscape(hostileName)), "entry": b.get("/audit/" + strconv.FormatInt(sequence, 10)),
		"search": b.get("/audit?actor=" + url.QueryEscape(hostileName)), "error": b.get("/audit?object_kind=" + url.QueryEscape(hostileName)),
	} {
		if a.status >= 500 || strings.Contains(a.body, "<img") || strings.Contains(a.body, "49&#39;") {
			t.Errorf("%s: %d, a name is live\n%s", name, a.status, a.body)
		}
		if !strings.Contains(a.body, "&lt;img src=x onerror") {
			t.Errorf("%s: the name is not there", name)
		}
		if strings.Contains(a.body, " style=") || strings.Contains(a.body, "javascript:") || strings.Contains(a.body, " onclick=") {
			t.Errorf("%s: something inline", name)
		}
	}
}
