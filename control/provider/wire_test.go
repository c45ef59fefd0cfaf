package provider_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"fairlane/control/provider"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"7", "", 7 * time.Second},
		{" 0.5 ", "", 500 * time.Millisecond},
		{"0", "", 0},
		{"-3", "", 0},
		{"NaN", "", 0},
		{"1e300", "", provider.MaxRetryAfter},
		{"Inf", "", provider.MaxRetryAfter},
		{"soon", "", 0},
		{noon.Add(time.Minute).Format(http.TimeFormat), "", time.Minute},
		{noon.Add(-time.Minute).Format(http.TimeFormat), "", 0},
		{noon.Add(48 * time.Hour).Format(http.TimeFormat), "", provider.MaxRetryAfter},
		// The provider's clock is an hour behind; its own Date says so.
		{noon.Add(-time.Hour + time.Minute).Format(http.TimeFormat), noon.Add(-time.Hour).Format(http.TimeFormat), time.Minute},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.value)
		if c.date != "" {
			h.Set("Date", c.date)
		}
		if got := provider.RetryAfter(h, noon); got != c.want {
			t.Errorf("%q: %v, want %v", c.value, got, c.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"1", "-1", "1e9", "Wed, 21 Oct 2026 07:28:00 GMT", "x"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		if got := provider.RetryAfter(h, noon); got < 0 || got > provider.MaxRetryAfter {
			t.Errorf("%q: %v", value, got)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("a\x00b\xff", 3)
	f.Add("汉字汉字", 4)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 || limit > 1<<16 {
			return
		}
		got := provider.Clean(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("%q to %d: %q", text, limit, got)
		}
	})
}

func TestTrap_D24_SignatureOfCallbacks(t *testing.T) {
	t.Parallel()
	key := []byte(strings.Repeat("k", 32))
	other := []byte(strings.Repeat("o", 32))
	body := []byte(`{"job":"1"}`)
	signed := func(at time.Time, k []byte) http.Header {
		h := http.Header{}
		provider.SignWebhook(h, k, "msg_1", at, body)
		return h
	}
	without := func(h http.Header, name string) http.Header { h.Del(name); return h }
	with := func(h http.Header, name, value string) http.Header { h.Set(name, value); return h }
	for name, c := range map[string]struct {
		header http.Header
		body   []byte
		ok     bool
	}{
		"good":                   {signed(noon, key), body, true},
		"a little old":           {signed(noon.Add(-4*time.Minute), key), body, true},
		"replayed after an hour": {signed(noon.Add(-time.Hour), key), body, false},
		"from the future":        {signed(noon.Add(time.Hour), key), body, false},
		"timestamp stripped":     {without(signed(noon, key), "Webhook-Timestamp"), body, false},
		"timestamp moved":        {with(signed(noon.Add(-time.Hour), key), "Webhook-Timestamp", "1796040000"), body, false},
		"timestamp huge":         {with(signed(noon, key), "Webhook-Timestamp", "9223372036854775807"), body, false},
		"signature stripped":     {without(signed(noon, key), "Webhook-Signature"), body, false},
		"id stripped":            {without(signed(noon, key), "Webhook-Id"), body, false},
		"other key":              {signed(noon, other), body, false},
		"other body":             {signed(noon, key), []byte(`{"job":"2"}`), false},
		"other version":          {with(signed(noon, key), "Webhook-Signature", "v2,"+signed(noon, key).Get("Webhook-Signature")[3:]), body, false},
		"second of two is ours":  {with(signed(noon, key), "Webhook-Signature", signed(noon, other).Get("Webhook-Signature")+" "+signed(noon, key).Get("Webhook-Signature")), body, true},
		"a flood of signatures":  {with(signed(noon, key), "Webhook-Signature", strings.Repeat("v1,AAAA ", 17)+signed(noon, key).Get("Webhook-Signature")), body, false},
		"nothing at all":         {http.Header{}, body, false},
	} {
		err := provider.VerifyWebhook(c.header, [][]byte{key}, noon, c.body)
		if (err == nil) != c.ok || (err != nil && !errors.Is(err, provider.ErrSignature)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := provider.VerifyWebhook(signed(noon, key), [][]byte{other, key}, noon, body); err != nil {
		t.Errorf("two keys valid at once: %v", err)
	}
	for _, text := range []string{"", "whsec_", "whsec_!!", "whsec_" + base64.StdEncoding.EncodeToString([]byte("short"))} {
		if _, err := provider.WebhookSecret(text); err == nil {
			t.Errorf("%q is taken as a secret", text)
		}
	}
}

func FuzzVerifyWebhook(f *testing.F) {
	f.Add("msg", "1796040000", "v1,abc", []byte("x"))
	key := []byte(strings.Repeat("k", 32))
	f.Fuzz(func(t *testing.T, id, stamp, signature string, body []byte) {
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {signature}}
		if provider.VerifyWebhook(h, [][]byte{key}, noon, body) == nil {
			t.Error("a guess was taken for a signature")
		}
	})
}
