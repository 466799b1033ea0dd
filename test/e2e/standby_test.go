package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// standbyRestore are the arguments of each restore into a standby cluster.
var standbyRestore = []string{"--annotations", "velero.crossplane.io/standby=true", "--existing-resource-policy", "update"}

func TestStandbyV2(t *testing.T) { testStandby(t, stack.V2, false) }

// testStandby restores each backup of a schedule into a second cluster, promotes that, and makes
// the first one the standby. kills adds a refresh in which Velero is killed, and one during a
// promotion.
func testStandby(t *testing.T, version stack.Version, kills bool) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	ctx := t.Context()
	n := s.few(t, s.source, drill.Platform{Namespace: "warm", Without: []string{"database"}}, 2)
	must(t, n.AwaitReady(ctx, s.source, n.size))
	s.schedule(t, s.source, n)
	s.target = s.cluster(t, "target")
	must(t, n.Compose(ctx, s.target))
	s.giveStatus(t, n)

	s.backUpScheduled(t, s.source, n, "warm-1")
	since := s.last(t)
	s.restoreStandby(t, n, "warm-1")
	before := s.uids(t, n)
	t.Run("Unchanged", func(t *testing.T) { s.testUnchanged(t, n, before) })
	t.Run("Changed", func(t *testing.T) { s.testRefreshed(t, n, before) })
	if kills {
		t.Run("Killed", func(t *testing.T) { s.testRefreshKilled(t, n, before) })
	}
	t.Run("Deleted", func(t *testing.T) { s.testRemoved(t, n) })
	s.wantNoWrites(t, n, since, s.target)
	if t.Failed() {
		return // The rest needs the last restore.
	}
	t.Run("Promoted", func(t *testing.T) { s.testPromoted(t, n) })
	s.source, s.target = s.target, s.source
	t.Run("Demoted", func(t *testing.T) { s.testDemoted(t, n) })
	if kills && !t.Failed() {
		s.source, s.target = s.target, s.source
		t.Run("Promoting", func(t *testing.T) { s.testRefreshMeanwhile(t, n) })
	}
}

func (s *suite) schedule(t *testing.T, c *stack.Cluster, n *tenant) {
	t.Helper()
	_, err := c.Velero(t.Context(), "schedule", "create", n.Namespace, "--schedule", "0 0 1 1 *", "--include-namespaces", n.Namespace)
	must(t, err)
}

func (s *suite) backUpScheduled(t *testing.T, c *stack.Cluster, n *tenant, name string) {
	t.Helper()
	_, err := c.Velero(t.Context(), "backup", "create", name, "--from-schedule", n.Namespace, "--wait")
	must(t, err)
}

func (s *suite) restoreStandby(t *testing.T, n *tenant, name string) {
	t.Helper()
	must(t, n.StartRestore(t.Context(), s.target, name, name, standbyRestore...))
	s.awaitCompleted(t, name)
	s.wantHeldBy(t, n, name)
}

// all returns the claims, XRs and MRs of a tenant, by kind and name.
func (s *suite) all(t *testing.T, c *stack.Cluster, n *tenant) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, list := range []func(context.Context, *stack.Cluster) ([]unstructured.Unstructured, error){n.Instances, n.Composites, n.Managed} {
		objects, err := list(t.Context(), c)
		must(t, err)
		for _, u := range objects {
			all[u.GetKind()+"/"+u.GetName()] = &u
		}
	}

	return all
}

func (s *suite) uids(t *testing.T, n *tenant) map[string]string {
	t.Helper()
	uids := map[string]string{}
	for name, u := range s.all(t, s.target, n) {
		uids[name] = string(u.GetUID())
	}

	return uids
}

// wantHeldBy checks that the target has just what the source has, held by the last restore.
func (s *suite) wantHeldBy(t *testing.T, n *tenant, restore string) {
	t.Helper()
	want, got := s.all(t, s.source, n), s.all(t, s.target, n)
	if len(got) == 0 {
		t.Fatal("nothing is restored, so the test proves nothing")
	}
	for name := range want {
		u := got[name]
		if u == nil {
			t.Errorf("%s is missing after %s", name, restore)

			continue
		}
		if !paused(u) || !strings.Contains(u.GetAnnotations()[annotationHold], `"velero/`+restore+`"`) || u.GetLabels()["velero.io/restore-name"] != restore {
			t.Errorf("%s is not held by %s: %v %v", name, restore, u.GetLabels(), u.GetAnnotations())
		}
		for _, field := range []string{"region", "cidr", "forProvider"} {
			was, _, _ := unstructured.NestedFieldNoCopy(want[name].Object, "spec", field)
			is, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", field)
			if fmt.Sprint(was) != fmt.Sprint(is) {
				t.Errorf("%s has the %s %v, not %v", name, field, is, was)
			}
		}
	}
	managers, err := n.Managers(t.Context(), s.source)
	must(t, err)
	now, err := n.Managers(t.Context(), s.target)
	must(t, err)
	for name, of := range managers {
		for manager, fields := range of {
			if strings.HasPrefix(manager, "stack ") && now[name] != nil && fmt.Sprint(now[name][manager]) != fmt.Sprint(fields) {
				t.Errorf("%s after %s: %s manages %v, not %v", name, restore, manager, now[name][manager], fields)
			}
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("%s is left after %s", name, restore)
		}
	}
}

// testUnchanged restores a backup that brings nothing new. An XR lacks its status, as if Velero had
// been killed before it wrote that.
func (s *suite) testUnchanged(t *testing.T, n *tenant, before map[string]string) {
	ctx := t.Context()
	s.backUpScheduled(t, s.source, n, "warm-2")
	xr, status := s.withStatus(t, n)
	none := map[string]any{}
	for name := range status {
		none[name] = nil
	}
	must(t, drill.Patch(ctx, s.target, xr, map[string]any{"status": none}, "status"))
	s.restoreStandby(t, n, "warm-2")
	s.wantSame(t, n, before)
	if diff := cmp.Diff(status, functionStatus(s.all(t, s.target, n)[xr.GetKind()+"/"+xr.GetName()])); diff != "" {
		t.Errorf("the status of %s, -before, +after:\n%s", xr.GetName(), diff)
	}
}

// giveStatus writes a field of the status of an XR in the source, as a function does.
func (s *suite) giveStatus(t *testing.T, n *tenant) {
	t.Helper()
	s.keepStatus(t, s.source)
	s.keepStatus(t, s.target)
	xrs, err := n.Composites(t.Context(), s.source)
	must(t, err)
	must(t, drill.Patch(t.Context(), s.source, &xrs[0], map[string]any{"status": map[string]any{"address": "10.0.0.1"}}, "status"))
}

// withStatus returns the XR of the target that has a status of functions.
func (s *suite) withStatus(t *testing.T, n *tenant) (xr *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	xrs, err := n.Composites(t.Context(), s.target)
	must(t, err)
	for i := range xrs {
		if status = functionStatus(&xrs[i]); len(status) > 0 {
			return &xrs[i], status
		}
	}
	t.Fatal("no XR has a status of functions, so the test proves nothing")

	return nil, nil
}

// functionStatus returns what functions have written on the status of an XR. Crossplane writes the
// rest again.
func functionStatus(u *unstructured.Unstructured) map[string]any {
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	delete(status, "conditions")
	delete(status, "connectionDetails")

	return status
}

// wantSame checks that no object was replaced.
func (s *suite) wantSame(t *testing.T, n *tenant, before map[string]string) {
	t.Helper()
	now := s.uids(t, n)
	for name, uid := range before {
		if now[name] != uid {
			t.Errorf("%s was replaced", name)
		}
	}
}

// testRefreshed changes an instance of the source, and adds one.
func (s *suite) testRefreshed(t *testing.T, n *tenant, before map[string]string) {
	ctx := t.Context()
	since := s.last(t)
	s.change(t, n)
	s.awaitCall(t, s.source, n, since, api.Update)
	n.size++
	must(t, n.Make(ctx, s.source, n.size))
	must(t, n.AwaitReady(ctx, s.source, n.size))
	s.backUpScheduled(t, s.source, n, "warm-3")
	s.restoreStandby(t, n, "warm-3")
	s.wantSame(t, n, before)
}

// testRemoved deletes an instance of the source. In the target a user has changed one of its
// composed resources, which stays.
func (s *suite) testRemoved(t *testing.T, n *tenant) {
	ctx := t.Context()
	last := n.Name(n.size - 1)
	var changed *unstructured.Unstructured
	for _, u := range s.all(t, s.target, n) {
		if u.GetKind() == "Bucket" && strings.HasPrefix(u.GetLabels()["crossplane.io/composite"], last) {
			changed = u
		}
	}
	if changed == nil {
		t.Fatalf("no Bucket of %s is restored", last)
	}
	must(t, drill.Patch(ctx, s.target, changed, map[string]any{"metadata": map[string]any{"labels": map[string]any{"noted": "yes"}}}))
	s.removeLast(t, n)
	s.backUpScheduled(t, s.source, n, "warm-4")
	must(t, n.StartRestore(ctx, s.target, "warm-4", "warm-4", standbyRestore...))
	s.awaitCompleted(t, "warm-4")
	details := s.details(t, "warm-4")
	wantMessage(t, "the details of the restore", details, "StandbyRemoved", "StandbyNotRemoved", changed.GetName())
	left := s.all(t, s.target, n)
	for name := range left {
		if strings.Contains(name, last) && name != "Bucket/"+changed.GetName() {
			t.Errorf("%s is left", name)
		}
	}
	if left["Bucket/"+changed.GetName()] == nil {
		t.Errorf("the Bucket that a user has changed is removed")
	}
	must(t, drill.Patch(ctx, s.target, changed, map[string]any{"metadata": map[string]any{"finalizers": nil}}))
	remove(t, s.target, changed.GroupVersionKind(), changed.GetNamespace(), changed.GetName())
	s.wantHeldBy(t, n, "warm-4")
}

// removeLast deletes the last instance in the source, and waits until its composed resources are
// gone there.
func (s *suite) removeLast(t *testing.T, n *tenant) {
	t.Helper()
	name := n.Name(n.size - 1)
	instances, err := n.Instances(t.Context(), s.source)
	must(t, err)
	for _, u := range instances {
		if u.GetName() == name {
			remove(t, s.source, u.GroupVersionKind(), u.GetNamespace(), name)
		}
	}
	n.size--
	must(t, s.source.Wait(t.Context(), patience, name+" to be gone with what it composes", func(context.Context) error {
		for other := range s.all(t, s.source, n) {
			if strings.Contains(other, name) {
				return errors.New(other + " is left")
			}
		}

		return nil
	}))
}

// testPromoted holds the source and releases the target.
func (s *suite) testPromoted(t *testing.T, n *tenant) {
	s.remember(t, s.source, n)
	since := s.hold(t, n)
	s.released(t, "--restore", "warm-4")
	n.revised = true
	s.settle(t, n)
	s.wantSound(t, n)
	s.wantNoChanges(t, n, since)
	s.wantNoWrites(t, n, since, s.source)
}

// testDemoted makes the cluster that was held the standby of the other one, and promotes it again.
func (s *suite) testDemoted(t *testing.T, n *tenant) {
	since := s.last(t)
	s.schedule(t, s.source, n)
	s.changeTo(t, n, "eu-north")
	s.awaitCall(t, s.source, n, since, api.Update)
	since = s.last(t)
	s.backUpScheduled(t, s.source, n, "back-1")
	s.restoreStandby(t, n, "back-1")
	s.remember(t, s.source, n)
	s.hold(t, n)
	s.released(t, "--restore", "back-1")
	s.settle(t, n)
	s.wantSound(t, n)
	s.wantNoChanges(t, n, since)

	// The cluster is no source of a handover any more.
	s.backUpScheduled(t, s.target, n, "warm-5")
	logs, err := s.target.Velero(t.Context(), "backup", "logs", "warm-5")
	must(t, err)
	if strings.Contains(logs, "NotHandedOver") {
		t.Error("the handover is still recorded")
	}
}
