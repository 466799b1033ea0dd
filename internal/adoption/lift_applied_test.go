package adoption

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestApplied(t *testing.T) {
	const (
		held     = `{"f:metadata":{"f:annotations":{"f:velero.crossplane.x-k8s.io/hold":{},"f:crossplane.io/paused":{}}},"f:spec":{"f:compositionUpdatePolicy":{}}}`
		pinned   = `{"f:metadata":{"f:annotations":{"f:velero.crossplane.x-k8s.io/hold":{}}},"f:spec":{"f:compositionUpdatePolicy":{}}}`
		identity = `"apiVersion":"example.org/v1alpha1","kind":"XOrder","metadata":{"name":"x","uid":"u","resourceVersion":"7"`
	)
	entry := func(manager, operation, fields string) string {
		return `{"manager":"` + manager + `","operation":"` + operation + `","apiVersion":"example.org/v1alpha1","fieldsType":"FieldsV1","fieldsV1":` + fields + `}`
	}
	ours := func(fields string) string { return entry(FieldManager, "Apply", fields) }
	xr := func(entries string) *unstructured.Unstructured {
		return xptest.XR("x", xptest.UID("u"), xptest.Version("7"), xptest.Policy("Manual"), xptest.Annotated(AnnotationHold, "h"),
			xptest.Annotated(xp.AnnotationPaused, "true"), xptest.JSON(`{"metadata":{"managedFields":[`+entries+`]}}`))
	}
	const (
		unpause = `{"metadata":{"resourceVersion":"7","annotations":{"crossplane.io/paused":null,"velero.crossplane.x-k8s.io/hold":"i"}}}`
		release = `{"metadata":{"resourceVersion":"7","annotations":{"crossplane.io/paused":null,"velero.crossplane.x-k8s.io/hold":null}},` +
			`"spec":{"compositionUpdatePolicy":"Automatic"}}`
	)
	policy := [][]string{{"spec", "compositionUpdatePolicy"}}
	cases := map[string]struct {
		reason   string
		target   *unstructured.Unstructured
		patch    string
		manager  string
		defaults [][]string
		// want is "" if the change must be a patch.
		want string
	}{
		"Unpause": {
			reason: "Server-side apply drops the removed fields and keeps the others.", target: xr(ours(held)), patch: unpause,
			want: `{` + identity + `,"annotations":{"velero.crossplane.x-k8s.io/hold":"i"}},"spec":{"compositionUpdatePolicy":"Manual"}}`,
		},
		"Release": {
			reason: "The API server sets its default again, so apply only drops the field.", target: xr(ours(held)), patch: release, defaults: policy, want: `{` + identity + `}}`,
		},
		"ReleaseToAnother": {
			reason: "Apply must write a value that is not the default.", target: xr(ours(held)), patch: release, want: `{` + identity + `},"spec":{"compositionUpdatePolicy":"Automatic"}}`,
		},
		"Same": {
			reason: "A field that has its value already and never belonged to the hold keeps its manager.", target: xr(ours(`{"f:metadata":{"f:annotations":{"f:velero.crossplane.x-k8s.io/hold":{},"f:crossplane.io/paused":{}}}}`)),
			patch: `{"metadata":{"resourceVersion":"7","annotations":{"velero.crossplane.x-k8s.io/hold":null,"crossplane.io/paused":null}},"spec":{"compositionUpdatePolicy":"Manual"}}`,
			want:  `{` + identity + `}}`,
		},
		"Request": {
			reason: "Apply adds the new field to the fields that are applied already.", target: xr(ours(pinned)), patch: `{"metadata":{"resourceVersion":"7","annotations":{"crossplane.io/reconcile-requested-at":"now"}}}`,
			want: `{` + identity + `,"annotations":{"velero.crossplane.x-k8s.io/hold":"h","crossplane.io/reconcile-requested-at":"now"}},"spec":{"compositionUpdatePolicy":"Manual"}}`,
		},
		"PauseOfAnother": {reason: "A field of another manager stays when this plugin stops applying it.", target: xr(ours(pinned)), patch: unpause},
		"Shared": {
			reason: "A field that another manager applies too stays.", patch: release, defaults: policy,
			target: xr(ours(held) + "," + entry("argocd-controller", "Apply", `{"f:spec":{"f:compositionUpdatePolicy":{}}}`)),
		},
		"Patched": {
			reason: "A patched field with a new value becomes an applied field.", patch: unpause,
			target: xr(ours(held) + "," + entry(FieldManager, "Update", `{"f:metadata":{"f:annotations":{"f:velero.crossplane.x-k8s.io/hold":{}}}}`)),
			want:   `{` + identity + `,"annotations":{"velero.crossplane.x-k8s.io/hold":"i"}},"spec":{"compositionUpdatePolicy":"Manual"}}`,
		},
		"ReleasePatched": {
			reason: "The patched field would stay after an apply.", patch: release, defaults: policy,
			target: xr(ours(held) + "," + entry(FieldManager, "Update", `{"f:metadata":{"f:annotations":{"f:velero.crossplane.x-k8s.io/hold":{}}}}`)),
		},
		"NotApplied":  {reason: "This plugin updated the object and never applied it.", target: xr(entry(FieldManager, "Update", held)), patch: unpause},
		"OfAnother":   {reason: "Another manager must get the field.", target: xr(ours(held)), patch: unpause, manager: "kubectl-create"},
		"NoManagers":  {reason: "Without managedFields the applied fields are unknown.", target: xr(""), patch: unpause},
		"MoreChanges": {reason: "Apply is only for fields that a hold changes.", target: xr(ours(held)), patch: `{"spec":{"region":"eu"}}`},
		"Fields":      {reason: "Apply can't change managedFields.", target: xr(ours(held)), patch: `{"metadata":{"managedFields":[{}]}}`},
		"MoreFields": {
			reason: "Apply would remove a field that another writer applied under this manager name.", target: xr(ours(`{"f:metadata":{"f:annotations":{"f:velero.crossplane.x-k8s.io/hold":{}}},"f:spec":{"f:region":{}}}`)),
			patch: `{"metadata":{"resourceVersion":"7","annotations":{"velero.crossplane.x-k8s.io/hold":"i"}}}`,
		},
		"WholeMap": {
			reason: "Removing an applied map also removes its fields without a manager.", patch: release, defaults: policy,
			target: xr(ours(`{"f:metadata":{"f:annotations":{".":{},"f:velero.crossplane.x-k8s.io/hold":{},"f:crossplane.io/paused":{}}},"f:spec":{"f:compositionUpdatePolicy":{}}}`)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := Change{Target: tc.target, Manager: tc.manager, Defaults: tc.defaults}
			if err := json.Unmarshal([]byte(tc.patch), &c.Patch); err != nil {
				t.Fatal(err)
			}
			before := tc.target.DeepCopy()
			got, ok := c.Applied()
			var want map[string]any
			if tc.want != "" {
				if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || ok != (tc.want != "") {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, tc.target); diff != "" {
				t.Errorf("applied must not change the object: -before, +after:\n%s", diff)
			}
		})
	}
}
