package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
)

// JSON values that no text field takes, whatever it is for.
var notText = []string{
	`null`, `true`, `false`, `0`, `-0`, `1`, `-1`, `1.5`, `1e3`, `1e308`, `-1e308`, `1e400`, `1e-400`, `9223372036854775807`, `9223372036854775808`,
	`-9223372036854775809`, `0.1`, `123456789012345678901234567890123456789012345678901234567890`, `[]`, `{}`, `[[]]`, `[null]`, `["clip"]`, `{"a": 1}`, `{"": ""}`,
	`{"$ref": "#/x"}`, `[1,2,3]`, `{"toString": {}}`, `{"__proto__": {"admin": true}}`, `[[[[[[[[[[]]]]]]]]]]`, `{"a":{"a":{"a":{"a":{}}}}}`,
}

// JSON values that no number field takes.
var notNumber = []string{
	`null`, `true`, `false`, `""`, `"5"`, `"5s"`, `"NaN"`, `"Infinity"`, `" 5"`, `"0x5"`, `"五"`, `[]`, `{}`, `[5]`, `{"value": 5}`, `{"$gt": 0}`,
	`-1`, `-5`, `-0.5`, `0.5`, `4.999999`, `5.5`, `1e308`, `-1e308`, `1e400`, `-1e400`, `1e-5`, `1e20`, `9007199254740993`, `9223372036854775807`,
	`9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`, `18446744073709551616`, `340282366920938463463374607431768211456`,
	`123456789012345678901234567890123456789012345678901234567890`, `1e1000000`, `1E+9999999999`, `604801.5`, `"' OR 1=1 --"`, `"<b>5</b>"`,
}

// Texts that no field takes: empty or with characters that are none.
var badText = []string{
	`"\u0000"`, `"a\u0000b"`, `"\u0001"`, `"\u0007"`, `"\u0008"`, `"\u000b"`, `"\u001b[31mred\u001b[0m"`, `"\u007f"`, `"\u0080"`, `"\u009f"`, `"\u0085"`,
	`"\u2028"`, `"\u2029"`, `"\u202egnp.exe"`, `"\u202a"`, `"\u2066x\u2069"`, `"\ud800"`, `"\udfff"`, `"\ud800\ud800"`, `"\ufffd"`,
}

// Texts that are only text: harmless where a prompt or a project is meant, unknown where a name of the catalogue is.
var onlyText = []string{
	`"<script>alert(1)</script>"`, `"<img src=x onerror=alert(1)>"`, `"'; DROP TABLE generation_task; --"`, `"\" OR \"\"=\""`, `"${jndi:ldap://x}"`, `"{{7*7}}"`,
	`"../../etc/passwd"`, `"%00"`, `"%s%s%n"`, `"=cmd|' /C calc'!A0"`, `"javascript:alert(1)"`, `"NaN"`, `"null"`, `"true"`, `"undefined"`, `"-1"`, `"1e308"`,
	`"猫"`, `"张伟的项目"`, `"𠮷野家"`, `"👩‍👩‍👧‍👦"`, `"é"`, `"ß"`, `"İ"`, `" "`, `"　"`, `"a b"`, `"CLIP"`, `"clip "`, `" clip"`, `"\\"`, `"/"`,
}

var textFields = map[string]int{"model": 64, "prompt": 4000, "negative_prompt": 4000, "resolution": 32, "project": 128}

var numberFields = map[string]int64{"duration_seconds": 3600, "deadline_seconds": 604800, "seed": 1<<53 - 1}

// body makes a submission in which one field has the given JSON value.
func body(field, value string) string {
	parts := map[string]string{"model": `"clip"`, "prompt": `"a fox"`, field: value}
	var list []string
	for name, v := range parts {
		list = append(list, fmt.Sprintf("%q: %s", name, v))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func TestHostileFieldsAreRefusedByName(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	before := d.written(t)
	tried := 0
	refuse := func(field, value string) {
		t.Helper()
		tried++
		a := ask{body: body(field, value)}
		out := d.send(t, a)
		if out.status != http.StatusUnprocessableEntity && out.status != http.StatusBadRequest {
			t.Errorf("%s = %.80s: %d %s", field, value, out.status, out.text)
			return
		}
		if errs, _ := out.json["errors"].([]any); json.Valid([]byte(value)) && (len(errs) != 1 || errs[0].(map[string]any)["field"] != field || errs[0].(map[string]any)["message"] == "") {
			t.Errorf("%s = %.80s: the field is not named: %s", field, value, out.text)
		}
	}
	for field, most := range textFields {
		for _, v := range append(append([]string{}, notText...), badText...) {
			refuse(field, v)
		}
		if field != "negative_prompt" {
			refuse(field, `""`)
		}
		refuse(field, `"`+strings.Repeat("x", most+1)+`"`)
		refuse(field, `"`+strings.Repeat("猫", most+1)+`"`)
		if field == "model" || field == "resolution" {
			for _, v := range onlyText {
				refuse(field, v)
			}
		}
	}
	for _, line := range []string{`"a\nb"`, `"a\rb"`, `"a\tb"`} {
		for _, field := range []string{"model", "resolution", "project"} {
			refuse(field, line)
		}
	}
	for field, most := range numberFields {
		for _, v := range notNumber {
			refuse(field, v)
		}
		refuse(field, fmt.Sprint(most+1))
		if field != "seed" {
			refuse(field, `0`)
		}
	}
	for _, v := range []string{`1`, `4`, `6`, `11`, `3600`} {
		refuse("duration_seconds", v)
	}
	t.Logf("%d values in %d fields refused", tried, len(textFields)+len(numberFields))
	if after := d.written(t); after != before {
		t.Errorf("they wrote %d rows", after-before)
	}
}

// D56: text stays text. What looks like markup, SQL or a formula comes back as it was sent, inert.
func TestTrap_D56_TextIsKeptAndInert(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, field := range []string{"prompt", "negative_prompt", "project"} {
		for _, v := range onlyText {
			out := d.send(t, ask{body: body(field, v), header: map[string]string{"X-Fairlane-User": "<b>" + field + "</b>"}})
			if out.status != http.StatusAccepted {
				t.Errorf("%s = %s: %d %s", field, v, out.status, out.text)
				continue
			}
			got := d.send(t, ask{method: http.MethodGet, path: out.header.Get("Location")})
			var want string
			if err := json.Unmarshal([]byte(v), &want); err != nil {
				t.Fatal(err)
			}
			kept := got.json["project"]
			if field != "project" {
				kept = got.json["parameters"].(map[string]any)[field]
			}
			if kept != want || got.json["user"] != "<b>"+field+"</b>" {
				t.Errorf("%s = %q came back as %v of %v", field, want, kept, got.json["user"])
			}
			if strings.ContainsAny(got.text, "<>") {
				t.Errorf("markup is not escaped: %s", got.text)
			}
		}
	}
}

func TestHostileBodies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	before := d.written(t)
	big := `{"model": "clip", "prompt": "` + strings.Repeat("x", 1<<20) + `"}`
	for name, tc := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"nothing":               {"", 400, "not whole JSON"},
		"space":                 {"  \n", 400, "not whole JSON"},
		"null":                  {"null", 400, "one JSON object"},
		"list":                  {"[]", 400, "one JSON object"},
		"text":                  {`"x"`, 400, "one JSON object"},
		"number":                {`1`, 400, "one JSON object"},
		"empty object":          {"{}", 422, "prompt: is required"},
		"NaN":                   {`{"model": "clip", "prompt": "x", "seed": NaN}`, 400, "not JSON"},
		"Infinity":              {`{"model": "clip", "prompt": "x", "seed": -Infinity}`, 400, "not JSON"},
		"leading zero":          {`{"model": "clip", "prompt": "x", "seed": 01}`, 400, "not"},
		"hexadecimal":           {`{"model": "clip", "prompt": "x", "seed": 0x1}`, 400, "not"},
		"plus":                  {`{"model": "clip", "prompt": "x", "seed": +1}`, 400, "not JSON"},
		"cut off":               {`{"model": "clip", "prompt": "x`, 400, "not whole JSON"},
		"no end":                {`{"model": "clip", "prompt": "x"`, 400, "not whole JSON"},
		"trailing comma":        {`{"model": "clip", "prompt": "x",}`, 400, "not"},
		"single quotes":         {`{'model': 'clip'}`, 400, "not"},
		"comment":               {`{"model": "clip", /* */ "prompt": "x"}`, 400, "not"},
		"two objects":           {good + good, 400, "follows the JSON object"},
		"garbage after":         {good + "x", 400, "follows the JSON object"},
		"byte order mark":       {"\ufeff" + good, 400, "not JSON"},
		"invalid UTF-8":         {"{\"model\": \"clip\", \"prompt\": \"\xff\xfe\"}", 400, "not valid UTF-8"},
		"overlong UTF-8":        {"{\"model\": \"clip\", \"prompt\": \"\xc0\x80\"}", 400, "not valid UTF-8"},
		"raw control character": {"{\"model\": \"clip\", \"prompt\": \"a\x00b\"}", 400, "not JSON"},
		"raw line end in text":  {"{\"model\": \"clip\", \"prompt\": \"a\nb\"}", 400, "not JSON"},
		"unknown key":           {`{"model": "clip", "prompt": "x", "colour": "red"}`, 400, "colour: this field is not known"},
		"unknown key, wrong":    {`{"model": "clip", "prompt": "x", "Model": "clip"}`, 400, "Model: this field is not known"},
		"empty key":             {`{"model": "clip", "prompt": "x", "": 1}`, 400, "not known"},
		"long unknown key":      {`{"model": "clip", "prompt": "x", "` + strings.Repeat("k", 10_000) + `": 1}`, 400, "…: this field is not known"},
		"prototype":             {`{"model": "clip", "prompt": "x", "__proto__": {"admin": true}}`, 400, "__proto__"},
		"tenant":                {`{"model": "clip", "prompt": "x", "tenant_id": "00000000-0000-0000-0000-000000000000"}`, 400, "tenant_id"},
		"duplicate key":         {`{"model": "clip", "prompt": "x", "prompt": "y"}`, 400, "prompt: this field is there twice"},
		"duplicate, escaped":    {`{"model": "clip", "prompt": "x", "pr\u006fmpt": "y"}`, 400, "prompt: this field is there twice"},
		"duplicate, ignored":    {`{"model": "clip", "prompt": "x", "cost": 1, "cost": 2}`, 400, "cost: this field is there twice"},
		"deep ignored":          {`{"model": "clip", "prompt": "x", "cost": ` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, 400, "nested deeper than 32"},
		"very deep":             {`{"model": "clip", "prompt": ` + strings.Repeat("[", 200_000), 400, "nested deeper than 32"},
		"very deep objects":     {strings.Repeat(`{"cost":`, 100_000), 400, "nested deeper than 32"},
		"every field wrong":     {`{"model": 1, "prompt": 2, "resolution": 3, "project": 4, "duration_seconds": "5", "seed": -1}`, 422, "and 3 more"},
		"1 MiB and a little":    {big, 413, "larger than 1048576 bytes"},
		"8 MiB":                 {strings.Repeat(" ", 8<<20), 413, "larger than 1048576 bytes"},
		"nearly 1 MiB":          {`{"model": "clip", "prompt": "` + strings.Repeat("x", 1<<20-64) + `"}`, 422, "may have 4000 characters at most"},
	} {
		for _, unsized := range []bool{false, true} {
			out := d.send(t, ask{body: tc.body, unsized: unsized})
			if detail, _ := out.json["detail"].(string); out.status != tc.status || !strings.Contains(detail, tc.says) {
				t.Errorf("%s: %d %.300s, want %d with %q", name, out.status, out.text, tc.status, tc.says)
			}
			if len(out.text) > 4096 {
				t.Errorf("%s: the answer has %d bytes", name, len(out.text))
			}
		}
	}
	if after := d.written(t); after != before {
		t.Errorf("they wrote %d rows", after-before)
	}
}

// The policy in force may allow less than the engine does.
func TestBodyLimitIsThePolicys(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.policy.Limits.MaxBodyBytes = 2048
	header := map[string]string{"Content-Type": "application/json", "Idempotency-Key": "k", "X-Fairlane-User": "u"}
	out := d.send(t, ask{path: "/v1/tasks", body: strings.Repeat(" ", 3000), header: header})
	if out.status != http.StatusRequestEntityTooLarge || !strings.Contains(out.text, "2048") {
		t.Errorf("3000 bytes of 2048: %d %s", out.status, out.text)
	}
	if out := d.send(t, ask{path: "/v1/tasks", body: strings.Repeat(" ", 2000), header: header}); out.status == http.StatusRequestEntityTooLarge {
		t.Errorf("2000 bytes of 2048: %d %s", out.status, out.text)
	}
}

func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	before := d.written(t)
	many := func(header string, status int, says string, values ...string) {
		t.Helper()
		for _, v := range values {
			out := d.send(t, ask{body: good, header: map[string]string{header: v}})
			if out.status != status || !strings.Contains(out.text, says) {
				t.Errorf("%s: %.80q: %d %.300s, want %d with %q", header, v, out.status, out.text, status, says)
			}
		}
	}
	many("Idempotency-Key", 400, `"field":"Idempotency-Key"`, "", `""`, `"`, `"a`, `a"`, `"a"b"`, `"a\b"`, `"a\`, "a b", "a\x01", "a\x7f", "键", "\"\xff\"",
		"one\x1etwo", strings.Repeat("k", 256), `"`+strings.Repeat("k", 256)+`"`, "a,\"b\"", "a\\b")
	many("X-Fairlane-User", 400, `"field":"X-Fairlane-User"`, "", "a\x00b", "a\tb", "\x7f", "\xff\xfe", "\u202eevil", "\ufffd", "u-1\x1eu-2", strings.Repeat("u", 129), strings.Repeat("猫", 129))
	many("Content-Type", 415, "application/json", "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", "application/json; charset=utf-16",
		"application/json; charset=gbk", "application/json;;;", "json", "*/*", "\x00")
	many("Content-Encoding", 415, "Content-Encoding", "gzip", "br", "identity")
	many("Authorization", 401, "UNAUTHORIZED", "", "Bearer", "Bearer ", "Bearer flt_", "Basic YTpi", d.tokens[0], "Bearer "+d.tokens[0]+"x", "Bearer "+d.tokens[0][:46],
		"Bearer "+d.tokens[0]+"\x1eBearer "+d.tokens[1], "Bearer "+strings.Repeat("x", 60_000), "Bearer '; DROP TABLE api_token; --", "bearer\t"+d.tokens[0])
	if after := d.written(t); after != before {
		t.Errorf("they wrote %d rows", after-before)
	}
	for header, values := range map[string][]string{
		"Idempotency-Key": {`"a b"`, `"say \"hi\" \\"`, "8e03978e-40d5-43e8-bc93-6894a57f9324", strings.Repeat("k", 255), "a,b"},
		"X-Fairlane-User": {"张伟", "a b", "<b>x</b>", strings.Repeat("猫", 128), "' OR 1=1"},
		"Content-Type":    {"application/json; charset=UTF-8", "APPLICATION/JSON"},
		"traceparent":     {"nonsense", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		"Authorization":   {"bearer " + d.tokens[0], "BEARER  " + d.tokens[0]},
	} {
		for _, v := range values {
			if out := d.send(t, ask{body: good, header: map[string]string{header: v}}); out.status != http.StatusAccepted {
				t.Errorf("%s: %q: %d %s", header, v, out.status, out.text)
			}
		}
	}
}

func TestHostilePathsAndQueries(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.submit(t)
	for _, bad := range []string{"x", "0", "-1", "null", "%00", "%2e%2e", "..%2f..", strings.ToUpper(id) + "0", "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""),
		"00000000-0000-0000-0000-000000000000", "%F0%9F%A6%8A", "'%20OR%201=1", strings.Repeat("a", 5000)} {
		for _, a := range []ask{{method: http.MethodGet, path: "/v1/tasks/" + bad}, {path: "/v1/tasks/" + bad + "/cancel"}} {
			if out := d.send(t, a); out.status != http.StatusNotFound {
				t.Errorf("%s %.80s: %d %s", a.method, a.path, out.status, out.text)
			}
		}
	}
	for field, values := range map[string][]string{
		"limit":       {"", "0", "-1", "201", "1e2", "ten", "9223372036854775808", " 5", "5 ", "٥", "0x5"},
		"cursor":      {"", "x", "AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAAB", "AAAAAAAAAAAAAAAAAAAAA", strings.Repeat("A", 23), "'", id},
		"state":       {"", "queued", "QUEUED,", ",QUEUED", "NOPE", "QUEUED NOPE", strings.Repeat("QUEUED,", 9) + "QUEUED", strings.Repeat("QUEUED,", 10_000)},
		"user":        {"", "a\x00b", "\xff", "\u202e", strings.Repeat("u", 129)},
		"project":     {"", "\n", strings.Repeat("p", 129)},
		"model":       {"", strings.Repeat("m", 65), "\x1b"},
		"queue_class": {"", strings.Repeat("l", 65), "\x1b"},
		"nosuch":      {"1"},
		"tenant_id":   {id},
		"Limit":       {"5"},
	} {
		for _, v := range values {
			out := d.send(t, ask{method: http.MethodGet, path: "/v1/tasks?" + field + "=" + url.QueryEscape(v)})
			if errs, _ := out.json["errors"].([]any); out.status != http.StatusBadRequest || len(errs) != 1 || errs[0].(map[string]any)["field"] != field {
				t.Errorf("%s=%.60q: %d %.300s", field, v, out.status, out.text)
			}
		}
	}
	for _, query := range []string{"limit=5&limit=6", "state=QUEUED&state=QUEUED", "limit=%zz", "a;b"} {
		if out := d.send(t, ask{method: http.MethodGet, path: "/v1/tasks?" + query}); out.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, out.status, out.text)
		}
	}
	for _, query := range []string{"", "user='%20OR%201=1--", "project=%3Cscript%3E", "model=%25", "user=%E5%BC%A0%E4%BC%9F", "limit=200", "state=CANCELED,FAILED"} {
		if out := d.send(t, ask{method: http.MethodGet, path: "/v1/tasks?" + query}); out.status != http.StatusOK {
			t.Errorf("%s: %d %s", query, out.status, out.text)
		}
	}
	for _, bad := range []string{`{"reason": "x"}`, `[]`, `null`, `{`, `x`} {
		if out := d.send(t, ask{path: "/v1/tasks/" + id + "/cancel", body: bad, header: map[string]string{"Content-Type": "application/json"}}); out.status != http.StatusBadRequest {
			t.Errorf("cancel with %s: %d %s", bad, out.status, out.text)
		}
	}
	if out := d.send(t, ask{path: "/v1/tasks/" + id + "/cancel", body: strings.Repeat(" ", 1<<20+1)}); out.status != http.StatusRequestEntityTooLarge {
		t.Errorf("cancel with a large body: %d", out.status)
	}
	if out := d.send(t, ask{path: "/v1/tasks/" + id + "/cancel", body: "{}"}); out.status != http.StatusUnsupportedMediaType {
		t.Errorf("cancel without a content type: %d", out.status)
	}
	if got := d.send(t, ask{method: http.MethodGet, path: "/v1/tasks/" + id}); got.json["state"] != "QUEUED" {
		t.Errorf("a bad cancel canceled: %s", got.text)
	}
}

// What the description forbids, the handlers refuse.
func TestDescriptionAndDecoderAgree(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, router := spec()
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}
	forbidden := 0
	for _, field := range []string{"model", "prompt", "project", "seed", "colour", "cost"} {
		for _, v := range append(append(append([]string{`""`, `5`, `10`, `"clip"`, `"720p"`}, notText...), notNumber...), onlyText...) {
			text := body(field, v)
			r := d.request(ask{body: text})
			route, params, err := router.FindRoute(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}); err == nil {
				continue
			}
			forbidden++
			if out := d.send(t, ask{body: text}); out.status != 400 && out.status != 422 {
				t.Errorf("the description forbids %s, the handler says %d", text, out.status)
			}
		}
	}
	if forbidden < 200 {
		t.Errorf("only %d bodies were forbidden", forbidden)
	}
}
