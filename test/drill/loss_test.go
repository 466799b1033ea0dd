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
		"Same":    {reason: "A restore changes nothing.", before: map[string]any{"A/a": spec("x")}, after: map[string]any{"A/a": spec("x")}},
		"Emptied": {reason: "An empty map and none are the same.", before: map[string]any{"A/a": map[string]string{}}, after: map[string]any{"A/a": map[string]string(nil)}},
		"Changed": {
			reason: "A setting that is another is a person's lost.", before: map[string]any{"A/a": spec("x")}, after: map[string]any{"A/a": spec("y")},
			want: []string{"A/a was map[spec:x] and is map[spec:y]"},
		},
		"Missing": {reason: "So is an object.", before: map[string]any{"A/a": spec("x")}, want: []string{"A/a is missing"}},
		"New":     {reason: "What was made anew was not restored.", after: map[string]any{"A/a": spec("x")}, want: []string{"A/a was not there before"}},
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
		"Sound":   {reason: "As if nothing had happened.", change: func(*Recovery) {}, want: true},
		"Creates": {reason: "Something was made anew.", change: func(r *Recovery) { r.Creates = 1 }},
		"Held":    {reason: "A hold was left.", change: func(r *Recovery) { r.Holds = 1 }},
		"Phase":   {reason: "Velero says that it failed.", change: func(r *Recovery) { r.Phase = "PartiallyFailed" }},
		"Wrong":   {reason: "An owner is not alive.", change: func(r *Recovery) { r.Wrong = []string{"Bucket/b"} }},
		"Nothing": {reason: "Where there is nothing, nothing is proven.", change: func(r *Recovery) { r.Outcome = Outcome{} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := sound
			tc.change(&r)
			if got := r.Sound(); got != tc.want {
				t.Errorf("%s\n%+v is sound: %v", tc.reason, r, got)
			}
		})
	}
}
