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
		want   want
	}{
		"Over": {
			reason: "Each phase counts once, however often the object changes in it, and none is no phase.", phases: []string{"", "InProgress", "InProgress", "Finalizing", "Completed"},
			want: want{Phases: []string{"InProgress", "Finalizing", "Completed"}},
		},
		"Failed": {
			reason: "A restore that failed in part must not be measured.", phases: []string{"InProgress", "WaitingForPluginOperationsPartiallyFailed"},
			want: want{Phases: []string{"InProgress", "WaitingForPluginOperationsPartiallyFailed"}, Fails: true},
		},
		"Late": {reason: "A phase that does not come ends the wait.", phases: []string{"InProgress"}, want: want{Fails: true}},
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
			_, phases, err := r.Until(context.Background(), 100*time.Millisecond, Over)
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
	left, also := p.Left()
	if err != nil || also != nil || !begun.Equal(at(2)) || !left.Equal(at(30)) {
		t.Errorf("The work begins when it is in progress, and all items are done when it is not any more: %s, %s, %v, %v", begun, left, err, also)
	}
}
