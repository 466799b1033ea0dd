package adoption

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A restore that stops after creating an object leaves Velero as its only manager. The next restore
// returns the fields to the managers of the backup.
func TestReturnManagers(t *testing.T) {
	origin := newServer(t, xptest.XR("x"))
	origin.write(xptest.XR("x", xptest.Policy("Automatic")), "kubectl-create")
	backup := origin.live
	held := func() (*server, *server) {
		t.Helper()
		item := heldFor(backup, Hold{})
		ManageHold(item, backup, noon)
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
		"Updated": {
			reason: "A manager of the backup that changes another field keeps those that it had.", during: func(s *server) {
				s.write(xptest.With(s.live, xptest.Field("eu", "spec", "region")), "kubectl-create")
			},
		},
		"LetGoOn": {
			reason: "A removed pause has no manager.", during: func(s *server) {
				h, err := HoldOf(s.live)
				if err != nil {
					t.Fatal(err)
				}
				s.execute(Change{Target: s.live, Patch: Unverified.unpause(s.live, h, noon)})
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
			ManageHold(item, backup, noon)
			p, ok := ReturnManagers(stopped.live, item)
			if !ok {
				t.Fatal("there must be managers to return")
			}
			stopped.patch(p, FieldManager)
			if diff := cmp.Diff(bySet(t, whole.managers()), bySet(t, stopped.managers())); diff != "" {
				t.Errorf("%s\nmanagers: -want, +got:\n%s", tc.reason, diff)
			}
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
	if diff := cmp.Diff(bySet(t, backup.GetManagedFields()), bySet(t, s.managers())); diff != "" {
		t.Errorf("managers: -want, +got:\n%s", diff)
	}
	if _, ok := ReturnedStatus(before, s.live, fields); ok {
		t.Error("a second return must change nothing")
	}
}

// The publisher of connection details made itself the owner, and manages that.
func TestTakeControlIsThePublishers(t *testing.T) {
	secret := xptest.Secret("s", xptest.Field(map[string]any{"key": "dmFsdWU="}, "data"))
	s := newServer(t, secret)
	s.write(secret, "provider")
	c := takeControl(xptest.MR("b", xptest.UID("u")), s.live)
	s.patch(c.Patch, c.Manager)
	got := bySet(t, s.managers())
	if len(got) != 1 {
		t.Errorf("got %v", got)
	}
	fields, _ := got["provider Update v1 "].(map[string]any)
	if _, ok := fields["f:metadata"].(map[string]any)["f:ownerReferences"]; !ok {
		t.Errorf("got %v", fields)
	}
}
