package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestSource(t *testing.T) {
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		set    xp.Source
		want   xp.Source
		noted  bool
	}{
		"None": {reason: "A backup without the plugin has no note.", object: xptest.MR("b")},
		"Plain": {
			reason: "Each backup notes its cluster.", object: xptest.MR("b"), set: xp.Source{Cluster: "c"}, want: xp.Source{Cluster: "c"}, noted: true,
		},
		"Busy": {
			reason: "A handover notes since when it holds, and why the object was not quiet.", object: xptest.MR("b"),
			set:  xp.Source{Cluster: "c", Handover: "2026-01-01T00:00:00Z", Busy: "CreatePending"},
			want: xp.Source{Cluster: "c", Handover: "2026-01-01T00:00:00Z", Busy: "CreatePending"}, noted: true,
		},
		"Replaced": {
			reason: "The note of an earlier backup does not stay.", object: xptest.MR("b", xptest.Field(map[string]any{"busy": "x"}, "metadata", xp.FieldSource)),
		},
		"Annotation": {
			reason: "A user can write an annotation, but only a backup can have the field.", object: xptest.MR("b", xptest.Annotated(xp.FieldSource, "{}")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xp.SetSource(tc.object, tc.set)
			if diff := cmp.Diff(tc.want, xp.SourceOf(tc.object)); diff != "" {
				t.Errorf("%s\nSourceOf(…): -want, +got:\n%s", tc.reason, diff)
			}
			if got := xp.HasBackupMetadata(tc.object); got != tc.noted {
				t.Errorf("%s\nHasBackupMetadata(…): got %t", tc.reason, got)
			}
			xp.StripBackupMetadata(tc.object)
			if got := xp.SourceOf(tc.object); got != (xp.Source{}) {
				t.Errorf("%s\nafter StripBackupMetadata: %v", tc.reason, got)
			}
		})
	}
}

func TestIsOperationOngoing(t *testing.T) {
	upjet := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR("b", append([]xptest.Option{xptest.Field(map[string]any{}, "spec", "initProvider")}, o...)...)
	}
	condition := func(kind, status, reason, since string) xptest.Option {
		return xptest.Field([]any{map[string]any{"type": kind, "status": status, "reason": reason, "lastTransitionTime": since}}, "status", "conditions")
	}
	begun := xptest.Annotated(xp.AnnotationCreateSucceeded, "2026-01-01T00:00:10Z")
	cases := map[string]struct {
		reason string
		mr     *unstructured.Unstructured
		want   bool
	}{
		"Idle":    {reason: "Nothing was created or is reported.", mr: upjet()},
		"Ongoing": {reason: "Upjet reports an operation.", mr: upjet(condition(xp.ConditionAsyncOperation, "True", xp.ReasonOngoing, "2026-01-01T00:00:00Z")), want: true},
		"Finished": {
			reason: "Upjet reports that the operation is over.", mr: upjet(condition(xp.ConditionAsyncOperation, "True", "Finished", "2026-01-01T00:00:00Z")),
		},
		"Creating": {reason: "A create has begun, and its outcome is not known.", mr: upjet(begun), want: true},
		"Observed": {reason: "The provider has observed what it created.", mr: upjet(begun, xptest.Field("x", "status", "atProvider", "id"))},
		"Reported": {
			reason: "The provider has reported the outcome since.", mr: upjet(begun, condition(xp.ConditionLastAsyncOperation, "True", "Success", "2026-01-01T00:00:20Z")),
		},
		"ReportedBefore": {
			reason: "The report is of an earlier operation.", mr: upjet(begun, condition(xp.ConditionLastAsyncOperation, "False", "AsyncCreateFailure", "2026-01-01T00:00:00Z")),
			want: true,
		},
		"Synchronous": {reason: "Another provider notes a create when it is over.", mr: xptest.MR("b", begun)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := xp.IsOperationOngoing(tc.mr); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}
