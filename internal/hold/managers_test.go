package hold

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			Manage(u, tc.object, noon)
			got, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
			var want any
			switch tc.want {
			case "":
			case "x":
				want = "x"
			default:
				xptest.Must(t, json.Unmarshal([]byte("["+tc.want+"]"), &want))
				entries := want.([]any)                                                            //nolint:forcetypeassert // It is one.
				entries[len(entries)-1].(map[string]any)["apiVersion"] = tc.object.GetAPIVersion() //nolint:forcetypeassert // It is one.
			}
			xptest.Same(t, want, got, tc.reason)
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
		Manage(u, backup, noon)
		own := 0
		for _, m := range entriesOf(u) {
			if isOwn(m) {
				own++
			}
		}
		if len(entriesOf(backup)) > 0 && own != 1 {
			t.Errorf("got %d entries of the hold, want one", own)
		}
		h := xptest.Value(Of(u))
		for c := Unverified.Lift(u, h, "step"); !c.Lifts(); c = Unverified.Lift(u, h, "step") {
			u = xptest.Merge(u, c.Patch)
			if h = xptest.Value(Of(u)); !h.Freed {
				t.Fatal("a second step must follow only the first")
			}
		}
		forged := xptest.With(backup, xptest.Annotated(Annotation, mark))
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
		xptest.Same(t, before, backup, "ManageHold must not change the backup")
	})
}

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
		return xptest.XR("x", xptest.UID("u"), xptest.Version("7"), xptest.Policy("Manual"), xptest.Annotated(Annotation, "h"),
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
			reason: "The API server sets its default again, so apply only drops the field.", patch: release, defaults: policy, want: `{` + identity + `}}`,
			target: xr(ours(held) + "," + entry("crossplane", "Update", `{"f:spec":{"f:compositionRef":{}}}`)),
		},
		"Unnamed": {
			reason: "The rest of the spec has no manager, and would be removed.", patch: release, defaults: policy,
			target: xr(ours(held) + "," + entry("crossplane", "Update", `{"f:metadata":{"f:finalizers":{}}}`)),
		},
		"Unserved": {
			reason: "The API server drops managers with a version that it does not serve.", patch: release, defaults: policy,
			target: xr(ours(held) + "," + strings.Replace(entry("crossplane", "Update", `{"f:spec":{"f:compositionRef":{}}}`), "v1alpha1", "v1alpha0", 1)),
		},
		"ReleaseToAnother": {
			reason: "Apply must write a value that is not the default.", target: xr(ours(held)), patch: release, want: `{` + identity + `},"spec":{"compositionUpdatePolicy":"Automatic"}}`,
		},
		"Same": {
			reason: "A field that has its value already and never belonged to the hold keeps its manager.",
			target: xr(ours(`{"f:metadata":{"f:annotations":{"f:velero.crossplane.x-k8s.io/hold":{},"f:crossplane.io/paused":{}}}}`)),
			patch:  `{"metadata":{"resourceVersion":"7","annotations":{"velero.crossplane.x-k8s.io/hold":null,"crossplane.io/paused":null}},"spec":{"compositionUpdatePolicy":"Manual"}}`,
			want:   `{` + identity + `}}`,
		},
		"Request": {
			reason: "Apply adds the new field to the fields that are applied already.", target: xr(ours(pinned)),
			patch: `{"metadata":{"resourceVersion":"7","annotations":{"crossplane.io/reconcile-requested-at":"now"}}}`,
			want:  `{` + identity + `,"annotations":{"velero.crossplane.x-k8s.io/hold":"h","crossplane.io/reconcile-requested-at":"now"}},"spec":{"compositionUpdatePolicy":"Manual"}}`,
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
		"MoreChanges": {reason: "Apply is only for fields that a hold changes.", target: xr(ours(held)), patch: `{"spec":{"region":"eu"}}`},
		"Fields":      {reason: "Apply can't change managedFields.", target: xr(ours(held)), patch: `{"metadata":{"managedFields":[{}]}}`},
		"MoreFields": {
			reason: "Apply would remove a field that another writer applied under this manager name.",
			target: xr(ours(`{"f:metadata":{"f:annotations":{"f:velero.crossplane.x-k8s.io/hold":{}}},"f:spec":{"f:region":{}}}`)),
			patch:  `{"metadata":{"resourceVersion":"7","annotations":{"velero.crossplane.x-k8s.io/hold":"i"}}}`,
		},
		"WholeMap": {
			reason: "Removing an applied map also removes its fields without a manager.", patch: release, defaults: policy,
			target: xr(ours(`{"f:metadata":{"f:annotations":{".":{},"f:velero.crossplane.x-k8s.io/hold":{},"f:crossplane.io/paused":{}}},"f:spec":{"f:compositionUpdatePolicy":{}}}`)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := Change{Target: tc.target, Manager: tc.manager, Defaults: tc.defaults}
			xptest.Must(t, json.Unmarshal([]byte(tc.patch), &c.Patch))
			before := tc.target.DeepCopy()
			got, ok := c.Applied()
			var want map[string]any
			if tc.want != "" {
				xptest.Must(t, json.Unmarshal([]byte(tc.want), &want))
			}
			if diff := cmp.Diff(want, got); diff != "" || ok != (tc.want != "") {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			xptest.Same(t, before, tc.target, "applied must not change the object")
		})
	}
}

// A restore that stops after creating an object leaves Velero as its only manager. The next restore
// returns the fields to the managers of the backup.
func TestReturnManagers(t *testing.T) {
	origin := newServer(t, xptest.XR("x"))
	origin.write(xptest.XR("x", xptest.Policy("Automatic")), "kubectl-create")
	backup := origin.live
	held := func() (*server, *server) {
		t.Helper()
		item := heldFor(backup, Hold{})
		Manage(item, backup, noon)
		whole, stopped := newServer(t, backup), newServer(t, backup)
		for _, s := range []*server{whole, stopped} {
			created := item.DeepCopy()
			created.SetManagedFields(nil)
			created.SetCreationTimestamp(metav1.NewTime(noon))
			s.write(created, managerVelero)
		}
		fields := item.Object["metadata"].(map[string]any)["managedFields"] //nolint:forcetypeassert // It is one.
		whole.patch(map[string]any{"metadata": map[string]any{"managedFields": fields}}, managerVelero)

		return whole, stopped
	}
	argo := xptest.XR("x", xptest.Without("metadata", "finalizers"), xptest.Without("spec"), xptest.Field("eu", "spec", "region"))
	cases := map[string]struct {
		reason string
		during func(s *server)
	}{
		"AsRestored": {reason: "The result must equal that of a restore without a stop.", during: func(*server) {}},
		"Applied":    {reason: "Fields that another manager applied since belong to that manager.", during: func(s *server) { s.apply(argo, "argocd-controller") }},
		"LetGoOn": {
			reason: "A removed pause has no manager.",
			during: func(s *server) {
				h := xptest.Value(Of(s.live))
				s.execute(Change{Target: s.live, Patch: Unverified.Unpause(s.live, h, noon)})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			whole, stopped := held()
			tc.during(whole)
			tc.during(stopped)
			if !IsStray(stopped.live) || IsStray(whole.live) {
				t.Fatal("only an object with Velero as its only manager is a stray")
			}
			item := heldFor(backup, Hold{})
			Manage(item, backup, noon)
			p, ok := ReturnManagers(stopped.live, item)
			if !ok {
				t.Fatal("there must be managers to return")
			}
			stopped.patch(p, FieldManager)
			xptest.Same(t, bySet(t, whole.managers()), bySet(t, stopped.managers()), tc.reason)
			if _, again := ReturnManagers(stopped.live, item); again {
				t.Error("a second return must change nothing")
			}
		})
	}
}

// A restored status has the managers of the backup, as if Velero had written it.
func TestReturnedStatus(t *testing.T) {
	origin := newServer(t, xptest.MR("b"))
	origin.write(xptest.MR("b"), "kubectl-create")
	origin.write(xptest.With(origin.live, xptest.Field("10.0.0.1", "status", "address"), xptest.Field("x", "status", "other")), "provider")
	backup := origin.live

	s := newServer(t, backup)
	s.write(xptest.With(backup, xptest.Without("status"), xptest.Without("metadata", "managedFields")), managerVelero)
	s.patch(map[string]any{"metadata": map[string]any{"managedFields": backup.Object["metadata"].(map[string]any)["managedFields"]}}, managerVelero) //nolint:forcetypeassert // It is one.
	before := s.live
	fields := map[string]any{"address": "10.0.0.1"}
	// The test server has no subresources, so the test marks the entry.
	s.patch(map[string]any{"status": fields}, FieldManager)
	for _, m := range entriesOf(s.live) {
		if isOwn(m) {
			m["subresource"] = "status"
		}
	}
	p, ok := ReturnedStatus(before, s.live, fields)
	if !ok {
		t.Fatal("there must be managers to return")
	}
	s.patch(p, FieldManager)
	xptest.Same(t, bySet(t, backup.GetManagedFields()), bySet(t, s.managers()), "the managers of the backup must return")
	if _, ok := ReturnedStatus(before, s.live, fields); ok {
		t.Error("a second return must change nothing")
	}
}
