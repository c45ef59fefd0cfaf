package policy_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"fairlane/control"
	"fairlane/policy"
)

func TestCleanReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want, key string }{
		{"  more for A \n", "more for A", ""}, {"促销，给A更多", "促销，给A更多", ""}, {"two\r\nlines\tand tab", "two\nlines\tand tab", ""},
		{"=cmd|' /C calc'!A0", "=cmd|' /C calc'!A0", ""}, {"<script>alert(1)</script>", "<script>alert(1)</script>", ""},
		{"", "", policy.KeyReasonRequired}, {" \n\t ", "", policy.KeyReasonRequired}, {"\u200b\u2060 \u3000", "", policy.KeyReasonRequired},
		{strings.Repeat("理", 2_000), strings.Repeat("理", 2_000), ""}, {strings.Repeat("理", 2_001), strings.Repeat("理", 2_001), policy.KeyTooLong},
		{"a\x00b", "a\x00b", policy.KeyControlCharacters}, {"a\x1b[31m", "a\x1b[31m", policy.KeyControlCharacters}, {"a\xffb", "a\xffb", policy.KeyControlCharacters},
	} {
		got, wrong := policy.CleanReason(c.text)
		key := ""
		if len(wrong) > 0 {
			key = wrong[0].Key
		}
		if got != c.want || key != c.key {
			t.Errorf("%.20q: got %.20q %q", c.text, got, key)
		}
	}
}

// desk is a store with one version.
type desk struct{ head policy.Version }

func (d *desk) Head(context.Context) (policy.Version, error)           { return d.head, nil }
func (d *desk) Version(context.Context, int64) (policy.Version, error) { return d.head, nil }
func (d *desk) PlanList(context.Context) ([]policy.Tenant, error)      { return tenants(4), nil }
func (d *desk) Publish(_ context.Context, p policy.Publication) (policy.Version, error) {
	d.head = policy.Version{Number: p.Base + 1, Document: p.Document, Reason: p.Reason}
	return d.head, nil
}

func TestPublisherRefuses(t *testing.T) {
	t.Parallel()
	changed := apply(t, sample(), policy.SetLane(control.LanePaid, "weight", "9"))
	broken := apply(t, sample(), policy.SetLaneReserved(control.LanePaid, "default", "900"))
	for _, c := range []struct {
		name string
		pub  policy.Publication
		keys []string
	}{
		{"no reason", policy.Publication{Base: 7, Document: changed, Reason: " "}, []string{policy.KeyReasonRequired}},
		{"reason and rule", policy.Publication{Base: 7, Document: broken}, []string{policy.KeyReasonRequired, policy.KeySumOverCapacity}},
		{"old base", policy.Publication{Base: 6, Document: changed, Reason: "r"}, []string{policy.KeyMoved}},
		{"base to come", policy.Publication{Base: 8, Document: changed, Reason: "r"}, []string{policy.KeyMoved}},
		{"nothing changed", policy.Publication{Base: 7, Document: sample(), Reason: "r"}, []string{policy.KeyNothingChanged}},
		{"accepted", policy.Publication{Base: 7, Document: changed, Reason: " r "}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := &desk{policy.Version{Number: 7, Document: sample()}}
			v, err := policy.NewPublisher(d, d).Publish(t.Context(), c.pub)
			if c.keys == nil {
				if err != nil || v.Number != 8 || v.Reason != "r" {
					t.Fatalf("%+v %v", v, err)
				}
				return
			}
			var e *control.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			var keys []string
			for _, f := range e.Fields {
				keys = append(keys, f.Key)
			}
			if !slices.Equal(keys, c.keys) || d.head.Number != 7 {
				t.Errorf("keys %v, head %d", keys, d.head.Number)
			}
			if current, moved := policy.Moved(err); moved != (c.keys[0] == policy.KeyMoved) || moved && current != 7 {
				t.Errorf("moved to %d %v", current, moved)
			}
		})
	}
}
