package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestUnrestored(t *testing.T) {
	job := func(status string) *unstructured.Unstructured {
		return xptest.Object("batch/v1", "Job", "team-a", "j", xptest.JSON(`{"status":`+status+`}`))
	}
	pod := func(phase string) *unstructured.Unstructured {
		return xptest.Object("v1", "Pod", "team-a", "p", xptest.Field(phase, "status", "phase"))
	}
	type want struct {
		Why   reason.Code
		Again bool
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   want
	}{
		"Complete":  {reason: "Velero skips a Job with a completionTime.", object: job(`{"startTime":"t","completionTime":"t"}`), want: want{Why: reason.CompletedAtBackup}},
		"Failed":    {reason: "A failed Job has none, so it comes back and runs.", object: job(`{"startTime":"t","failed":1}`), want: want{Again: true}},
		"New":       {reason: "A Job that has not started, or is suspended, runs as it would have.", object: job(`{}`)},
		"Succeeded": {reason: "Velero skips a Pod that has ended.", object: pod("Succeeded"), want: want{Why: reason.CompletedAtBackup}},
		"FailedPod": {reason: "It skips a failed Pod, too.", object: pod("Failed"), want: want{Why: reason.CompletedAtBackup}},
		"Running":   {reason: "Velero restores a running Pod.", object: pod("Running")},
		"Event":     {reason: "Velero restores no Event.", object: xptest.Object("events.k8s.io/v1", "Event", "team-a", "e"), want: want{Why: reason.NeverRestored}},
		"OtherKind": {
			reason: "Kinds of other groups can have the same names and fields.", object: xptest.Object("example.org/v1", "Job", "team-a", "j", xptest.Field("t", "status", "completionTime")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, want{xp.Unrestored(tc.object), xp.RunsAgain(tc.object)}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			trimmed := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tc.object.GetAPIVersion(), "kind": tc.object.GetKind()}}
			xp.KeepProgress(trimmed, tc.object)
			if diff := cmp.Diff(tc.want, want{xp.Unrestored(trimmed), xp.RunsAgain(trimmed)}); diff != "" {
				t.Errorf("a trimmed copy must show the same: -want, +got:\n%s", diff)
			}
		})
	}
}
