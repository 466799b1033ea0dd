package adoption

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestOwn(t *testing.T) {
	const (
		kubectl = `{"manager":"kubectl-client-side-apply","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{}}}}}`
		earlier = `{"manager":"velero-plugin-for-crossplane","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:anything":{}}}}`
		status  = `{"manager":"velero-plugin-for-crossplane","operation":"Update","subresource":"status","fieldsType":"FieldsV1","fieldsV1":{"f:status":{}}}`
	)
	managed := func(entries string) xptest.Option {
		return xptest.JSON(`{"metadata":{"managedFields":[` + entries + `]}}`)
	}
	own := func(fields string) string {
		return `{"manager":"velero-plugin-for-crossplane","operation":"Update","time":"2026-01-02T12:00:00Z","fieldsType":"FieldsV1","fieldsV1":` + fields + `}`
	}
	const marked = `"f:velero.crossplane.x-k8s.io/hold":{}`
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		of     Hold
		want   string
	}{
		"XR": {
			reason: "Mark, pause and pin are the hold's.", object: xptest.XR("x", managed(kubectl)),
			want: kubectl + "," + own(`{"f:metadata":{"f:annotations":{`+marked+`,"f:crossplane.io/paused":{}}},"f:spec":{"f:compositionUpdatePolicy":{}}}`),
		},
		"Modern": {
			reason: "Crossplane v2 has them elsewhere.", object: xptest.ModernXR("x", managed(kubectl)),
			want: kubectl + "," + own(`{"f:metadata":{"f:annotations":{`+marked+`,"f:crossplane.io/paused":{}}},"f:spec":{"f:crossplane":{"f:compositionUpdatePolicy":{}}}}`),
		},
		"OwnSettings": {
			reason: "What a person had set like that is theirs.",
			object: xptest.XR("x", managed(kubectl), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Policy("Manual")),
			want:   kubectl + "," + own(`{"f:metadata":{"f:annotations":{`+marked+`}}}`),
		},
		"Observes": {
			reason: "So are policies and the request for a status.", object: xptest.MR("b", managed(kubectl)), of: Hold{Observes: true, Status: []string{"atProvider"}},
			want: kubectl + "," + own(`{"f:metadata":{"f:annotations":{`+marked+`,"f:crossplane.io/paused":{},"f:velero.io/restore-status":{}}},"f:spec":{"f:managementPolicies":{}}}`),
		},
		"Earlier": {
			reason: "An earlier hold is over, and anybody can write an entry. That of a status is no hold.", object: xptest.MR("b", managed(earlier+","+status)),
			want: status + "," + own(`{"f:metadata":{"f:annotations":{`+marked+`,"f:crossplane.io/paused":{}}}}`),
		},
		"None":    {reason: "Velero manages all that it has created.", object: xptest.MR("b")},
		"Damaged": {reason: "What can't be read is left as it is.", object: xptest.MR("b", xptest.JSON(`{"metadata":{"managedFields":"x"}}`)), want: "x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := heldFor(tc.object, tc.of)
			Own(u, tc.object, noon)
			got, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
			var want any
			switch tc.want {
			case "":
			case "x":
				want = "x"
			default:
				if err := json.Unmarshal([]byte("["+tc.want+"]"), &want); err != nil {
					t.Fatal(err)
				}
				entries := want.([]any)                                                            //nolint:forcetypeassert // It is one.
				entries[len(entries)-1].(map[string]any)["apiVersion"] = tc.object.GetAPIVersion() //nolint:forcetypeassert // It is one.
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
