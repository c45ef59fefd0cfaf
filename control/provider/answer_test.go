package provider_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"fairlane/control/provider"
)

func parseID(_ int, body []byte) (provider.Parsed, error) {
	var v struct{ ID, Code string }
	err := json.Unmarshal(body, &v)
	p := provider.Parsed{JobID: v.ID, Code: v.Code}
	if v.Code == "moderation" {
		p.Class = provider.ClassRefused
	}
	return p, err
}

func TestClassify(t *testing.T) {
	t.Parallel()
	broken := errors.New("reset")
	for name, c := range map[string]struct {
		can        provider.Capabilities
		sent       provider.Sent
		want       provider.Outcome
		class      provider.Class
		retry      bool
		retryAfter time.Duration
	}{
		"created":                    {sent: provider.Sent{Status: 201, Body: []byte(`{"id":"j1"}`)}, want: provider.Accepted},
		"accepted 202":               {sent: provider.Sent{Status: 202, Body: []byte(`{"id":"j1"}`)}, want: provider.Accepted},
		"no id":                      {sent: provider.Sent{Status: 200, Body: []byte(`{}`)}, want: provider.Unknown, class: provider.ClassBadAnswer},
		"id with a line break":       {sent: provider.Sent{Status: 200, Body: []byte(`{"id":"a\nb"}`)}, want: provider.Unknown, class: provider.ClassBadAnswer},
		"id in Chinese":              {sent: provider.Sent{Status: 200, Body: []byte(`{"id":"任务"}`)}, want: provider.Unknown, class: provider.ClassBadAnswer},
		"no JSON":                    {sent: provider.Sent{Status: 200, Body: []byte(`<html>`)}, want: provider.Unknown, class: provider.ClassBadAnswer},
		"broken body of 200":         {sent: provider.Sent{Status: 200, Err: broken}, want: provider.Unknown, class: provider.ClassBadAnswer},
		"broken body of 400":         {sent: provider.Sent{Status: 400, Err: broken}, want: provider.SurelyNot, class: provider.ClassInvalid},
		"redirect":                   {sent: provider.Sent{Status: 303, Body: []byte(`{}`)}, want: provider.Unknown, class: provider.ClassInternal},
		"bad request":                {sent: provider.Sent{Status: 400, Body: []byte(`{}`)}, want: provider.SurelyNot, class: provider.ClassInvalid},
		"refused content":            {sent: provider.Sent{Status: 422, Body: []byte(`{"code":"moderation"}`)}, want: provider.SurelyNot, class: provider.ClassRefused},
		"no such thing":              {sent: provider.Sent{Status: 404, Body: []byte(`{}`)}, want: provider.SurelyNot, class: provider.ClassInvalid},
		"credentials":                {sent: provider.Sent{Status: 401, Body: []byte(`{}`)}, want: provider.SurelyNot, class: provider.ClassAccount, retry: true},
		"balance":                    {sent: provider.Sent{Status: 402, Body: []byte(`{}`)}, want: provider.SurelyNot, class: provider.ClassAccount, retry: true},
		"request timeout":            {sent: provider.Sent{Status: 408, Body: []byte(`{}`)}, want: provider.Unknown, class: provider.ClassInternal},
		"conflict, plain":            {can: provider.Capabilities{CreateIdempotent: provider.CreatePlain}, sent: provider.Sent{Status: 409, Body: []byte(`{}`)}, want: provider.SurelyNot, class: provider.ClassInvalid},
		"conflict, key may be taken": {can: provider.Capabilities{CreateIdempotent: provider.CreateRejectDuplicate}, sent: provider.Sent{Status: 409, Body: []byte(`{}`)}, want: provider.Unknown, class: provider.ClassInternal},
		"too many": {sent: provider.Sent{Status: 429, Body: []byte(`{}`), RetryAfter: 7 * time.Second}, want: provider.SurelyNot,
			class: provider.ClassRateLimited, retry: true, retryAfter: 7 * time.Second},
		"internal":          {sent: provider.Sent{Status: 500, Body: []byte(`{"id":"j1"}`)}, want: provider.Unknown, class: provider.ClassInternal},
		"bad gateway":       {sent: provider.Sent{Status: 502}, want: provider.Unknown, class: provider.ClassInternal},
		"unavailable":       {sent: provider.Sent{Status: 503, RetryAfter: time.Second}, want: provider.Unknown, class: provider.ClassInternal},
		"gateway timeout":   {sent: provider.Sent{Status: 504}, want: provider.Unknown, class: provider.ClassInternal},
		"no answer, sent":   {sent: provider.Sent{MayHaveLeft: true, Err: broken}, want: provider.Unknown, class: provider.ClassConnection},
		"no answer, unsent": {sent: provider.Sent{Err: broken}, want: provider.SurelyNot, class: provider.ClassUnreachable, retry: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := provider.Classify(c.can, c.sent, parseID)
			if got.Outcome != c.want || got.Class != c.class || got.Retry != c.retry || got.RetryAfter != c.retryAfter {
				t.Errorf("got %+v, want %v %v retry %v after %v", got, c.want, c.class, c.retry, c.retryAfter)
			}
			if (got.Outcome == provider.Accepted) != (got.JobID != "") {
				t.Errorf("job id %q with %v", got.JobID, got.Outcome)
			}
		})
	}
}

func TestRegistryRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	good := provider.Capabilities{LongestRun: time.Hour}
	for name, list := range map[string][]provider.Provider{
		"no code":         {{Adapter: stub{}, Capabilities: good}},
		"no adapter":      {{Code: "p", Capabilities: good}},
		"twice":           {{Code: "p", Adapter: stub{}, Capabilities: good}, {Code: "p", Adapter: stub{}, Capabilities: good}},
		"endless run":     {{Code: "p", Adapter: stub{}}},
		"negative":        {{Code: "p", Adapter: stub{}, Capabilities: provider.Capabilities{LongestRun: 1, RecordTTL: -1}}},
		"no window":       {{Code: "p", Adapter: stub{}, Capabilities: provider.Capabilities{LongestRun: 1, LookupByClientID: true}}},
		"window past ttl": {{Code: "p", Adapter: stub{}, Capabilities: provider.Capabilities{LongestRun: 1, LookupByClientID: true, SafetyWindow: 5, RecordTTL: 5}}},
	} {
		if _, err := provider.NewRegistry(list...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	r, err := provider.NewRegistry(provider.Provider{Code: "p", Adapter: stub{}, Capabilities: good})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Find("p"); err != nil {
		t.Error(err)
	}
	if _, err := r.Find("q"); err == nil {
		t.Error("found a provider that is not there")
	}
}

type stub struct{ provider.Adapter }
