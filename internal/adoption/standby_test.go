package adoption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// inStandby returns an object as a standby restore leaves it.
func inStandby(t *testing.T, u *unstructured.Unstructured, of Hold, o ...xptest.Option) *unstructured.Unstructured {
	t.Helper()
	u = u.DeepCopy()
	if _, err := Put(u, of); err != nil {
		t.Fatal(err)
	}
	if err := handoverKey.Sign(u, u.GetNamespace()); err != nil {
		t.Fatal(err)
	}

	return xptest.With(u, o...)
}

func TestStandbyOf(t *testing.T) {
	of := Hold{Restore: "velero/monday", Since: cameAt, Quarantine: true, Schedule: "nightly", Content: "0123"}
	fields := managed("argocd-controller", "Apply", saved, []string{"spec", "size"})
	mr := xptest.MR("b", fields)
	by := func(manager, at string) xptest.Option {
		return xptest.Field([]any{
			map[string]any{"manager": "argocd-controller", "operation": "Apply", "apiVersion": xptest.ManagedVersion, "time": saved, "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}},
			map[string]any{"manager": manager, "operation": "Update", "apiVersion": xptest.ManagedVersion, "time": at, "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}},
		}, "metadata", "managedFields")
	}
	with := func(change func(h *Hold)) Hold {
		h := of
		change(&h)

		return h
	}
	want := Standby{Restore: "velero/monday", Schedule: "nightly", Content: "0123"}
	changed := want
	changed.ChangedBy = "kubectl"
	whole, stopped := with(func(h *Hold) { h.Status = []string{"address"} }), want
	stopped.Content = ""
	handover := want
	handover.Handover = true
	cases := map[string]struct {
		reason string
		live   *unstructured.Unstructured
		want   Standby
		ok     bool
	}{
		"InQuarantine": {reason: "A newer backup refreshes it.", live: inStandby(t, mr, of), want: want, ok: true},
		"Handover":     {reason: "The cluster that gave it away becomes the standby.", live: inStandby(t, mr, with(func(h *Hold) { h.Handover = true })), want: handover, ok: true},
		"Changed":      {reason: "A user has changed it.", live: inStandby(t, mr, of, by("kubectl", cameAt)), want: changed, ok: true},
		"OtherClock":   {reason: "An entry that the backup does not have is a change, whatever its time is.", live: inStandby(t, mr, of, by("kubectl", "2001-01-01T00:00:00Z")), want: changed, ok: true},
		"Velero":       {reason: "Velero has created it.", live: inStandby(t, mr, of, by(managerVelero, cameAt)), want: want, ok: true},
		"Status":       {reason: "It has the status that it is held for.", live: inStandby(t, mr, whole, xptest.Field("10.0.0.1", "status", "address")), want: want, ok: true},
		"Stopped":      {reason: "Velero was killed before it wrote the status.", live: inStandby(t, mr, whole), want: stopped, ok: true},
		"Live":         {reason: "It is reconciled.", live: mr},
		"Released":     {reason: "A user has ended the quarantine.", live: inStandby(t, mr, with(func(h *Hold) { h.Quarantine = false }))},
		"Unpaused":     {reason: "Something reconciles it.", live: inStandby(t, mr, of, xptest.Annotated(xp.AnnotationPaused, "false"))},
		"Copy":         {reason: "A copy is no standby.", live: inStandby(t, mr, with(func(h *Hold) { h.Clone = "Bucket o/b" }))},
		"Forged":       {reason: "A tenant must not get an object replaced.", live: xptest.MR("c", xptest.Annotated(AnnotationHold, xp.Annotation(inStandby(t, mr, of), AnnotationHold)), xptest.Annotated(xp.AnnotationPaused, "true"))},
		"Deleted":      {reason: "It goes away.", live: inStandby(t, mr, of, xptest.Field(time.Unix(0, 0).UTC().Format(time.RFC3339), "metadata", "deletionTimestamp"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.UID, tc.want.Version = tc.live.GetUID(), tc.live.GetResourceVersion()
			got, ok := handoverKey.StandbyOf(tc.live)
			if !tc.ok {
				tc.want = Standby{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Errorf("%s: %t, -want, +got:\n%s", tc.reason, ok, diff)
			}
			if got := handoverKey.IsPromoted(tc.live, of.Schedule); got != (name == "Released") {
				t.Errorf("%s: it is being promoted: %t", tc.reason, got)
			}
		})
	}
}

// A refresh that was stopped before its last write has no content, so it is repeated.
func TestWithoutContent(t *testing.T) {
	item := inStandby(t, xptest.XR("x", managed("argocd-controller", "Apply", saved, []string{"spec", "size"})), Hold{
		Restore: "velero/monday", Since: cameAt, Quarantine: true, Schedule: "nightly", Content: "0123",
	})
	first, err := handoverKey.WithoutContent(item)
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := handoverKey.StandbyOf(first); !ok || s.Content != "" || s.Schedule != "nightly" {
		t.Errorf("got %+v, %t", s, ok)
	}
	after := xptest.With(first, xptest.Field("7", "metadata", "resourceVersion"))
	last := xptest.Merge(after, Refreshed(after, item))
	if s, ok := handoverKey.StandbyOf(last); !ok || s.Content != "0123" || s.ChangedBy != "" {
		t.Errorf("got %+v, %t", s, ok)
	}
	if diff := cmp.Diff(entriesOf(item), entriesOf(last)); diff != "" {
		t.Errorf("managers: -item, +refreshed:\n%s", diff)
	}
}
