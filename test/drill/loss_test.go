package drill

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestChanged(t *testing.T) {
	spec := func(v any) map[string]any { return map[string]any{"spec": v} }
	cases := map[string]struct {
		reason        string
		before, after map[string]any
		want          []string
	}{
		"Same":    {reason: "A complete restore changes no object.", before: map[string]any{"A/a": spec("x")}, after: map[string]any{"A/a": spec("x")}},
		"Emptied": {reason: "An empty map and a missing map are equal.", before: map[string]any{"A/a": map[string]string{}}, after: map[string]any{"A/a": map[string]string(nil)}},
		"Changed": {
			reason: "A changed field is a loss.", before: map[string]any{"A/a": spec("x")}, after: map[string]any{"A/a": spec("y")},
			want: []string{"A/a was map[spec:x] and is map[spec:y]"},
		},
		"Missing": {reason: "A missing object is a loss.", before: map[string]any{"A/a": spec("x")}, want: []string{"A/a is missing"}},
		"New":     {reason: "A new object was created, not restored.", after: map[string]any{"A/a": spec("x")}, want: []string{"A/a was not there before"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, changed(tc.before, tc.after), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSound(t *testing.T) {
	sound := Recovery{Outcome: Outcome{Adopted: 9, Total: 9}, Phase: "Completed"}
	cases := map[string]struct {
		reason string
		change func(r *Recovery)
		want   bool
	}{
		"Sound":   {reason: "The restore is complete.", change: func(*Recovery) {}, want: true},
		"Creates": {reason: "The provider created an external resource again.", change: func(r *Recovery) { r.Creates = 1 }},
		"Held":    {reason: "The restore left a hold.", change: func(r *Recovery) { r.Holds = 1 }},
		"Phase":   {reason: "The Restore failed.", change: func(r *Recovery) { r.Phase = "PartiallyFailed" }},
		"Wrong":   {reason: "An owner does not exist.", change: func(r *Recovery) { r.Wrong = []string{"Bucket/b"} }},
		"Nothing": {reason: "A drill without objects proves nothing.", change: func(r *Recovery) { r.Outcome = Outcome{} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := sound
			tc.change(&r)
			if got := r.Sound(); got != tc.want {
				t.Errorf("%s\n%+v: sound is %v", tc.reason, r, got)
			}
		})
	}
}
