package adoption

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestManageHold(t *testing.T) {
	const (
		kubectl = `{"manager":"kubectl-client-side-apply","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{}}}}}`
		earlier = `{"manager":"velero-plugin-for-crossplane","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:anything":{}}}}`
		status  = `{"manager":"velero-plugin-for-crossplane","operation":"Update","subresource":"status","fieldsType":"FieldsV1","fieldsV1":{"f:status":{}}}`
	)
	managed := func(entries string) xptest.Option {
		return xptest.JSON(`{"metadata":{"managedFields":[` + entries + `]}}`)
	}
	own := func(fields string) string {
		return `{"manager":"velero-plugin-for-crossplane","operation":"Apply","time":"2026-01-02T12:00:00Z","fieldsType":"FieldsV1","fieldsV1":` + fields + `}`
	}
	const marked = `"f:velero.crossplane.x-k8s.io/hold":{}`
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		of     Hold
		want   string
	}{
		"XR": {
			reason: "Mark, pause and pin belong to the hold.", object: xptest.XR("x", managed(kubectl)),
			want: kubectl + "," + own(`{"f:metadata":{"f:annotations":{`+marked+`,"f:crossplane.io/paused":{}}},"f:spec":{"f:compositionUpdatePolicy":{}}}`),
		},
		"Modern": {
			reason: "Crossplane v2 has these fields in another place.", object: xptest.XRV2("x", managed(kubectl)),
			want: kubectl + "," + own(`{"f:metadata":{"f:annotations":{`+marked+`,"f:crossplane.io/paused":{}}},"f:spec":{"f:crossplane":{"f:compositionUpdatePolicy":{}}}}`),
		},
		"OwnSettings": {
			reason: "A field that the user set to the same value stays with the user.",
			object: xptest.XR("x", managed(kubectl), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Policy("Manual")),
			want:   kubectl + "," + own(`{"f:metadata":{"f:annotations":{`+marked+`}}}`),
		},
		"Observes": {
			reason: "Policies and the request for a status belong to the hold too.", object: xptest.MR("b", managed(kubectl)), of: Hold{Observes: true, Status: []string{"atProvider"}},
			want: kubectl + "," + own(`{"f:metadata":{"f:annotations":{`+marked+`,"f:crossplane.io/paused":{},"f:velero.io/restore-status":{}}},"f:spec":{"f:managementPolicies":{}}}`),
		},
		"Earlier": {
			reason: "The entry of an earlier hold is over and can be forged, and a status entry is no hold.", object: xptest.MR("b", managed(earlier+","+status)),
			want: status + "," + own(`{"f:metadata":{"f:annotations":{`+marked+`,"f:crossplane.io/paused":{}}}}`),
		},
		"Reset": {
			reason: "Empty managedFields reset all managers but the entry of the hold.", object: xptest.MR("b", managed("{}")),
			want: own(`{"f:metadata":{"f:annotations":{` + marked + `,"f:crossplane.io/paused":{}}}}`),
		},
		"None":    {reason: "Velero manages every field that it created.", object: xptest.MR("b")},
		"Damaged": {reason: "Unreadable managedFields stay as they are.", object: xptest.MR("b", xptest.JSON(`{"metadata":{"managedFields":"x"}}`)), want: "x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := heldFor(tc.object, tc.of)
			ManageHold(u, tc.object, noon)
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

// A user who can write to the bucket can write any managedFields, and a user who can write an
// object can add any managers and fields.
func FuzzManagers(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[{}]`, `"x"`, `[7]`, `[{"manager":7}]`, `[{"manager":"velero-plugin-for-crossplane","operation":"Update","fieldsV1":"x"}]`,
		`[{"manager":"velero-plugin-for-crossplane","fieldsV1":{"f:spec":{"f:compositionUpdatePolicy":{}}}},{"manager":"velero-server","time":"2999-01-01T00:00:00Z"}]`,
		`[{"manager":"velero-plugin-for-crossplane","subresource":"status","time":"2999-01-01T00:00:00Z","fieldsV1":{"f:status":{"f:a":{}}}}]`,
		`[{"manager":"kubectl","operation":"Update","apiVersion":"example.org/v1alpha1","fieldsV1":{"f:spec":{"f:compositionUpdatePolicy":{},".":7}}}]`,
		`[{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":7}},"f:spec":[]}}]`,
	} {
		f.Add(seed, `{"freed":true,"restore":"velero/r","managers":[{"fieldsV1":7},{"manager":"kubectl","fieldsV1":{"f:spec":{"f:compositionUpdatePolicy":{}}}}]}`)
	}
	f.Fuzz(func(t *testing.T, fields, mark string) {
		var managers any
		if json.Unmarshal([]byte(fields), &managers) != nil {
			t.Skip("no JSON")
		}
		backup := xptest.XR("x", xptest.Field(managers, "metadata", "managedFields"), xptest.Annotated(xp.AnnotationPaused, "false"))
		before := backup.DeepCopy()
		u := heldFor(backup, Hold{})
		ManageHold(u, backup, noon)
		own := 0
		for _, m := range entriesOf(u) {
			if isOwn(m) {
				own++
			}
		}
		if len(entriesOf(backup)) > 0 && own != 1 {
			t.Errorf("got %d entries of the hold, want one", own)
		}
		h, err := HoldOf(u)
		if err != nil {
			t.Fatal(err)
		}
		for c := Unverified.lift(u, h, "step"); !c.Lifts(); c = Unverified.lift(u, h, "step") {
			u = xptest.Merge(u, c.Patch)
			if h, err = HoldOf(u); err != nil || !h.Freed {
				t.Fatalf("a second step must follow only the first: %v", err)
			}
		}
		forged := xptest.With(backup, xptest.Annotated(AnnotationHold, mark))
		if c, ok := Finish(forged); ok {
			xptest.Merge(forged, c.Patch)
		}
		_ = Managers(forged)
		if p, ok := ReturnManagers(forged, u); ok {
			xptest.Merge(forged, p)
		}
		if p, ok := ReturnedStatus(forged, forged, map[string]any{"a": "b"}); ok {
			xptest.Merge(forged, p)
		}
		if p, ok := WithoutOwn(forged); ok {
			xptest.Merge(forged, p)
		}
		if diff := cmp.Diff(before, backup); diff != "" {
			t.Errorf("ManageHold must not change the backup: -before, +after:\n%s", diff)
		}
	})
}
