package meter

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

func restoreIn(phase string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"kind": "Restore", "status": map[string]any{"phase": phase, "failureReason": "no " + phase}}}
}

func TestUntil(t *testing.T) {
	type want struct {
		Phases []string
		Fails  bool
	}
	cases := map[string]struct {
		reason string
		phases []string
		until  func(string) bool
		want   want
	}{
		"Over": {
			reason: "Each phase counts once, however often the object changes in it, and none is no phase.", phases: []string{"", "InProgress", "InProgress", "Finalizing", "Completed"}, until: Over,
			want: want{Phases: []string{"InProgress", "Finalizing", "Completed"}},
		},
		"Waiting": {
			reason: "It goes no further than what is waited for.", phases: []string{"InProgress", Waiting, "Completed"}, until: func(p string) bool { return p == Waiting },
			want: want{Phases: []string{"InProgress", Waiting}},
		},
		"Failed": {
			reason: "A restore that failed in part must not be measured.", phases: []string{"InProgress", "WaitingForPluginOperationsPartiallyFailed"}, until: Over,
			want: want{Phases: []string{"InProgress", "WaitingForPluginOperationsPartiallyFailed"}, Fails: true},
		},
		"Late": {reason: "A phase that does not come ends the wait.", phases: []string{"InProgress"}, until: Over, want: want{Fails: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := watch.NewFake()
			go func() {
				for _, phase := range tc.phases {
					w.Modify(restoreIn(phase))
				}
			}()
			r := &Record{watch: w, name: "Restore r"}
			_, phases, err := r.Until(context.Background(), 100*time.Millisecond, tc.until)
			got := want{Fails: err != nil}
			for _, p := range phases {
				got.Phases = append(got.Phases, p.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\nerror: %v", tc.reason, diff, err)
			}
		})
	}
}

func TestPhases(t *testing.T) {
	p := Phases{{"New", at(1)}, {InProgress, at(2)}, {"Finalizing", at(30)}, {"Completed", at(31)}}
	begun, err := p.Begun()
	if err != nil || !begun.Equal(at(2)) {
		t.Errorf("The work begins when it is in progress, and not while it is queued: %s, %v", begun, err)
	}
	left, err := p.Left()
	if err != nil || !left.Equal(at(30)) {
		t.Errorf("All items are done when it is not in progress any more: %s, %v", left, err)
	}
	if _, err := p[:1].Left(); err == nil {
		t.Error("Left must fail for an object whose work has not begun.")
	}
}
