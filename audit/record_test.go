package audit_test

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"fairlane/audit"
	"fairlane/control"
)

func event(n int64) audit.Event {
	return audit.Event{
		Sequence: n, At: time.Date(2026, 11, 30, 12, 0, 0, int(n)*1000, time.UTC),
		Actor:  control.Actor{ID: uuid.NameSpaceDNS, Name: "操作员 <b>", SourceAddress: "10.0.0.7", RequestID: "req-1"},
		Action: audit.PolicyPublish, Params: map[string]any{"version": n, "base": n - 1}, ObjectKind: audit.KindPolicy, ObjectID: "8",
		Touched: []audit.Touch{{Kind: "tenant", ID: "acme", Field: "weight"}}, PolicyVersion: n,
		Old: map[string]any{"tenants[acme].weight": int64(3)}, New: map[string]any{"tenants[acme].weight": int64(5)},
		Reason: "促销 & <more>", Result: audit.OK, Approvers: []string{"b"},
	}
}

func seal(t *testing.T, prev [32]byte, e audit.Event) audit.Record {
	t.Helper()
	r, err := audit.Seal(prev, e)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecordIsCanonical(t *testing.T) {
	t.Parallel()
	r := seal(t, [32]byte{}, event(8))
	want := `{"action":"policy.publish","actor":{"id":"6ba7b810-9dad-11d1-80b4-00c04fd430c8","name":"操作员 <b>"},"approvers":["b"],` +
		`"at":"2026-11-30T12:00:00.000008Z","new":{"tenants[acme].weight":5},"object":{"id":"8","kind":"policy"},"old":{"tenants[acme].weight":3},` +
		`"params":{"base":7,"version":8},"policy_version":8,"reason":"促销 & <more>","request_id":"req-1","result":"OK","sequence":8,` +
		`"source_address":"10.0.0.7","touched":[{"kind":"tenant","id":"acme","field":"weight"}],"v":1}`
	if r.Text != want {
		t.Errorf("got  %s\nwant %s", r.Text, want)
	}
	first := sha256.Sum256(append(make([]byte, 32), want...))
	if r.Hash != first {
		t.Error("the first hash is not SHA-256 of 32 zero bytes and the record")
	}
	if next := audit.Hash(r.Hash, []byte("x")); next != sha256.Sum256(append(r.Hash[:], 'x')) {
		t.Error("a hash is not SHA-256 of the one before and the record")
	}
}

// E15: every field of every action is in its record, and comes back.
func TestE15_EveryActionHasEveryField(t *testing.T) {
	t.Parallel()
	for action := range audit.Actions {
		e := event(3)
		e.Action = action
		got, err := audit.Parse(seal(t, [32]byte{}, e).Text)
		if err != nil {
			t.Fatal(err)
		}
		want := e
		want.Params = map[string]any{"base": json.Number("2"), "version": json.Number("3")}
		want.Old, want.New = map[string]any{"tenants[acme].weight": json.Number("3")}, map[string]any{"tenants[acme].weight": json.Number("5")}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", action, got, want)
		}
	}
}

func TestEventsThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*audit.Event){
		"action": func(e *audit.Event) { e.Action = "Drop Table" }, "no action": func(e *audit.Event) { e.Action = "" },
		"actor": func(e *audit.Event) { e.Actor.Name = "" }, "object": func(e *audit.Event) { e.ObjectID = "" },
		"result": func(e *audit.Event) { e.Result = "MAYBE" }, "sequence": func(e *audit.Event) { e.Sequence = 0 },
		"touched": func(e *audit.Event) { e.Touched = make([]audit.Touch, 5_001) },
		"value":   func(e *audit.Event) { e.New = func() {} },
	} {
		e := event(1)
		spoil(&e)
		if _, err := audit.Seal([32]byte{}, e); err == nil {
			t.Errorf("%s: recorded", name)
		}
	}
}

func TestTrap_D59_NoSecretEntersARecord(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-Zm9vYmFyYmF6"
	e := event(1)
	e.Params = map[string]any{"key_id": "kid-7", "password": secret, "Api-Key": secret, "X_API_KEY": secret, "client_secret": secret, "token": secret,
		"access_token": secret, "TokenHash": secret, "privateKey": secret, "key material": secret, "Authorization": secret, "cookie": secret,
		"token_id": "tid-9", "token_name": "ci", "fencing_token": 17, "nested": []any{map[string]any{"credentials": map[string]any{"a": secret}}}}
	e.Old = struct {
		ProviderSecret string `json:"provider_secret"`
	}{secret}
	e.New = map[string]any{
		"note": "bearer " + secret, "url": "https://user:" + secret + "@api.example.com/v1", "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
		"hash": "$argon2id$v=19$m=65536,t=3,p=2$c29tZXNhbHQ$aGFzaGFzaGFzaA", "pem": "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIA\n-----END EC PRIVATE KEY-----",
		"key": "sk_live_abcdefghijklmnop1234", "hook": "whsec_abcdefghijklmnop1234", "ours": "flt_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG",
	}
	e.Reason = "rotated, was Bearer " + secret
	text := seal(t, [32]byte{}, e).Text
	for _, leak := range []string{secret, "eyJ", "argon2", "MHcCAQ", "sk_live", "whsec_a", "flt_a"} {
		if strings.Contains(text, leak) {
			t.Errorf("%s is in the record: %s", leak, text)
		}
	}
	for _, kept := range []string{`"key_id":"kid-7"`, `"token_id":"tid-9"`, `"token_name":"ci"`, `"fencing_token":17`} {
		if !strings.Contains(text, kept) {
			t.Errorf("%s is lost: %s", kept, text)
		}
	}
}

func TestOrdinaryNamesAreNotTakenForSecrets(t *testing.T) {
	t.Parallel()
	e := event(1)
	e.ObjectID = "provider:runway:acct-1:us-east-long-name:gen4-turbo-preview-2026"
	e.Reason = "key account sk-lm: weight 3 → 5, see https://wiki.example.com/tickets/12345678"
	r := seal(t, [32]byte{}, e)
	if r.Event.ObjectID != e.ObjectID || r.Event.Reason != e.Reason {
		t.Errorf("%q %q", r.Event.ObjectID, r.Event.Reason)
	}
}

func TestHugeValuesAreKeptAsTheirDigest(t *testing.T) {
	t.Parallel()
	e := event(1)
	e.Old = map[string]any{"x": strings.Repeat("a b", audit.MaxRecord)}
	if r := seal(t, [32]byte{}, e); len(r.Text) > 10_000 || !strings.Contains(r.Text, `"old":{"x":"[3145728 bytes, sha256 `) {
		t.Errorf("%d bytes: %.300s", len(r.Text), r.Text)
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = strings.Repeat("a b", 10_000)
	}
	e.New = many
	r := seal(t, [32]byte{}, e)
	if len(r.Text) > 10_000 || !strings.Contains(r.Text, `"new":{"bytes":`) || !strings.Contains(r.Text, `"sha256":"`) {
		t.Errorf("%d bytes: %.300s", len(r.Text), r.Text)
	}
}

func TestTextsAreFitToBeKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := event(1)
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		e.Actor.Name, e.Actor.RequestID = "x"+text.Draw(t, "name"), text.Draw(t, "request")
		e.ObjectID, e.Reason = "o"+text.Draw(t, "object"), text.Draw(t, "reason")
		e.Params = map[string]any{"k" + text.Draw(t, "key"): text.Draw(t, "value")}
		r, err := audit.Seal([32]byte{}, e)
		if err != nil {
			t.Fatal(err)
		}
		back, err := audit.Parse(r.Text)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := audit.ColumnsOf(&back), audit.ColumnsOf(&r.Event); !reflect.DeepEqual(got, want) {
			t.Fatalf("the columns of the record are not those of the event:\n%+v\n%+v", got, want)
		}
		again, err := audit.Seal([32]byte{}, back)
		if err != nil || again.Text != r.Text {
			t.Fatalf("sealing what was read differs:\n%s\n%s", r.Text, again.Text)
		}
		if strings.ContainsRune(r.Event.Actor.Name+r.Event.ObjectID+r.Event.Reason, 0) {
			t.Fatal("NUL is kept")
		}
	})
}
