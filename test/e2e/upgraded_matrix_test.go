//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/compat"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// These are names of Crossplane processes beside the first one of a cluster.
const (
	replica  = "crossplane-replica"
	upgraded = "crossplane-upgraded"
)

func TestMatrixUpgradedV24(t *testing.T) { testUpgraded(t, stack.V2, stack.V24) }

func TestMatrixUpgradedV23(t *testing.T) { testUpgraded(t, stack.V1, stack.V2) }

func TestMatrixUpgradedV20(t *testing.T) { testCrossplaneUpgraded(t, stack.V1, stack.V20) }

func TestMatrixUpgradedV21(t *testing.T) { testCrossplaneUpgraded(t, stack.V20, stack.V21) }

func TestMatrixUpgradedV22(t *testing.T) { testCrossplaneUpgraded(t, stack.V21, stack.V22) }

// TestMatrixUpgradeLost loses a cluster of Crossplane v1 and restores it into one of v2, with trees whose
// Compositions can't run there.
func TestMatrixUpgradeLost(t *testing.T) {
	t.Parallel()
	pairs, err := compat.OnlyPairs([]string{"v1.20-v2.3"})
	must(t, err)
	r, err := compat.PlayScenes(t.Context(), pairs[0], t.Output(), "native", "secrets")
	must(t, err)
	if !r.Sound() {
		t.Errorf("%+v", r)
	}
}

// testCrossplaneUpgraded is the part of testUpgraded that replaces Crossplane itself.
func testCrossplaneUpgraded(t *testing.T, from, to stack.Version) {
	t.Helper()
	s := begin(t, &suite{version: from, newer: to})
	n, late := s.few(t, s.source, drill.Platform{Namespace: "upgraded"}, 6), s.few(t, s.source, drill.Platform{Namespace: "meanwhile"}, 6)
	s.backUp(t, s.source, n)
	s.backUp(t, s.source, late)
	must(t, s.source.Destroy())
	s.target = s.elector(t, "target", true, n, late)
	t.Run("Crossplane", func(t *testing.T) { s.testNewerCrossplane(t, n, late) })
}

// testUpgraded restores while parts of the platform are replaced: Crossplane with leader election,
// its leader, the provider, and a function.
func testUpgraded(t *testing.T, from, to stack.Version) {
	t.Helper()
	ctx := t.Context()
	s := begin(t, &suite{version: from, newer: to})
	var all []*tenant
	for _, name := range []string{"alone", "held", "unpaused", "provider", "function", "upgraded", "meanwhile"} {
		size := 6
		if name == "alone" {
			size = count
		}
		all = append(all, s.few(t, s.source, drill.Platform{Namespace: name}, size))
	}
	for _, n := range all {
		s.backUp(t, s.source, n)
	}
	must(t, s.source.Destroy())

	s.target = s.elector(t, "first", false, all[0])
	t.Run("VeleroAlone", func(t *testing.T) { s.testUpgradedAlone(t, all[0]) })
	must(t, s.target.Destroy())

	s.target = s.elector(t, "second", true, all[1:]...)
	must(t, s.target.AddCrossplane(ctx, replica, from))
	t.Run("LeaderKilled/Held", func(t *testing.T) {
		held := killPoint{name: "held", is: func(w *killWatch, a stack.Admission) bool { return isCreated(a, w.composite) }}
		s.testReplaced(t, all[1], held, func() (func() error, error) { return nil, s.target.Kill(stack.Crossplane) })
		must(t, s.target.Start(ctx, stack.Crossplane))
	})
	t.Run("LeaderKilled/Unpaused", func(t *testing.T) {
		s.testReplaced(t, all[2], killPoint{is: isUnverified}, func() (func() error, error) { return nil, s.target.Kill(replica) })
	})
	t.Run("Provider", func(t *testing.T) {
		s.testReplaced(t, all[3], killPoint{is: isUnverified}, func() (func() error, error) {
			return func() error { return s.newerProvider(ctx) }, s.target.Kill(stack.CloudProvider)
		})
	})
	t.Run("Function", func(t *testing.T) { s.testFunctionReplaced(t, all[4]) })
	t.Run("Crossplane", func(t *testing.T) { s.testNewerCrossplane(t, all[5], all[6]) })
	if from.IsV1() {
		for _, n := range all {
			n.followsV2()
		}
	}
	t.Run("Settled", func(t *testing.T) {
		for _, n := range all[1:] {
			s.settle(t, n)
			s.wantSound(t, n)
		}
	})
}

// followsV2 allows for the changes of Crossplane v2 to v1 objects: it creates another revision of
// the same Composition, and writes with another field manager.
func (n *tenant) followsV2() { n.revised, n.managers = true, nil }

// testNewerCrossplane stops Crossplane when half of a tenant's XRs are released, and starts a newer
// one, while another tenant is being restored.
func (s *suite) testNewerCrossplane(t *testing.T, n, meanwhile *tenant) {
	if s.version.IsV1() {
		n.followsV2()
		meanwhile.followsV2()
	}
	ctx := t.Context()
	late := func() (func() error, error) {
		return func() error { return s.target.AddCrossplane(ctx, upgraded, s.newer) }, s.target.Stop(stack.Crossplane)
	}
	w := s.replace(t, n, killPoint{is: isHalfReleased}, late, meanwhile)
	t.Logf("Crossplane was replaced when %s", w.seen)
	for _, n := range []*tenant{n, meanwhile} {
		s.awaitCompleted(t, n.Namespace)
		s.settle(t, n)
		s.wantSound(t, n)
	}
}

// elector starts a cluster whose Crossplane elects a leader, with the Compositions of tenants.
func (s *suite) elector(t *testing.T, name string, plugin bool, tenants ...*tenant) *stack.Cluster {
	t.Helper()
	ctx := t.Context()
	c, err := stack.NewCluster(ctx, s.host, stack.Options{Name: name, Crossplane: s.version, Plugin: plugin, LeaderElection: true, VeleroArgs: oftener})
	must(t, err)
	must(t, drill.Platform{Crossplane: s.version}.Install(ctx, c))
	must(t, c.RestartVelero(ctx))
	for _, n := range tenants {
		must(t, n.Compose(ctx, c))
	}

	return c
}

// testUpgradedAlone is the control: Crossplane is stopped when it creates a resource again, and a
// newer one continues when all is restored.
func (s *suite) testUpgradedAlone(t *testing.T, n *tenant) {
	ctx := t.Context()
	anew := killPoint{is: func(_ *killWatch, a stack.Admission) bool {
		return a.Old == nil && isManaged(a.New) && a.New.GetLabels()["velero.io/restore-name"] == ""
	}}
	s.replace(t, n, anew, func() (func() error, error) { return nil, s.target.Stop(stack.Crossplane) })
	s.awaitCompleted(t, n.Namespace)
	must(t, s.target.AddCrossplane(ctx, upgraded, s.newer))
	s.eventually(t, "Crossplane to have created a resource again (the control)", func(ctx context.Context) error {
		got, err := n.Compare(ctx, s.target, s.cloud, n.before)
		if err == nil && got.Creates == 0 {
			err = errors.New("it has not")
		}
		t.Logf("Velero alone: %+v", got)

		return err
	})
}

// replace starts to restore tenants, and runs do at a point of the restore of the first.
func (s *suite) replace(t *testing.T, n *tenant, at killPoint, do func() (func() error, error), more ...*tenant) *killWatch {
	t.Helper()
	ctx := t.Context()
	w := newKillWatch(n, at, do)
	p, err := s.target.Check(ctx, n.Namespace, checked(), w.visit)
	must(t, err)
	for _, n := range append([]*tenant{n}, more...) {
		must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	}
	s.awaitKill(t, n, w)
	must(t, w.err)
	must(t, p.Remove(ctx))

	return w
}

// testReplaced expects all to be adopted when do runs at a point of the restore.
func (s *suite) testReplaced(t *testing.T, n *tenant, at killPoint, do func() (func() error, error)) {
	w := s.replace(t, n, at, do)
	t.Logf("it was replaced when %s", w.seen)
	s.awaitCompleted(t, n.Namespace)
	s.settle(t, n)
	s.wantSound(t, n)
}

// newerProvider replaces the provider, which does not run, by one whose buckets have a newer
// version, in which they are stored.
func (s *suite) newerProvider(ctx context.Context) error {
	crd, err := get(ctx, s.target, crdKind, "", "buckets."+map[bool]string{true: "cloud", false: "cloud.m"}[s.version.IsV1()]+".example.org")
	if err != nil {
		return err
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	newer := unstructured.Unstructured{Object: versions[0].(map[string]any)} //nolint:forcetypeassert // It is an object.
	newer = *newer.DeepCopy()
	newer.Object["name"] = "v1beta1"
	for _, v := range versions {
		v.(map[string]any)["storage"] = false //nolint:forcetypeassert // The same.
	}
	err = drill.Patch(ctx, s.target, crd, map[string]any{"spec": map[string]any{"versions": append(versions, newer.Object)}})

	return errors.Join(err, s.target.Start(ctx, stack.CloudProvider))
}

// testFunctionReplaced removes the function when the first XR is unpaused, and installs another
// revision of it when the restore has reported the wait.
func (s *suite) testFunctionReplaced(t *testing.T, n *tenant) {
	ctx := t.Context()
	old, err := get(ctx, s.target, functionRevisionKind, "", "function-patch-and-transform-stack")
	must(t, err)
	w := s.replace(t, n, killPoint{is: isUnverified}, func() (func() error, error) {
		r, err := s.target.Resource(ctx, functionRevisionKind, "")
		if err != nil {
			return nil, err
		}

		return nil, errors.Join(r.Delete(ctx, old.GetName(), metav1.DeleteOptions{}), s.target.Kill(stack.Function))
	})
	t.Logf("the function was taken away when %s", w.seen)
	must(t, drill.AwaitOperations(ctx, s.target, n.Namespace))
	s.eventually(t, "the restore to report that it waits for the function", func(ctx context.Context) error {
		out, err := s.target.Velero(ctx, "restore", "describe", n.Namespace, "--details")
		if err == nil && linesWith(out, "function-patch-and-transform") == 0 {
			err = fmt.Errorf("it does not: %s", out)
		}

		return err
	})
	next := &unstructured.Unstructured{Object: map[string]any{"spec": old.Object["spec"]}}
	next.SetGroupVersionKind(functionRevisionKind)
	next.SetName("function-patch-and-transform-next")
	next.SetLabels(old.GetLabels())
	next.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
	must(t, s.target.ApplyObjects(ctx, next))
	status := &unstructured.Unstructured{Object: map[string]any{"status": old.Object["status"]}}
	status.SetGroupVersionKind(functionRevisionKind)
	status.SetName(next.GetName())
	must(t, s.target.ApplyStatus(ctx, status))
	must(t, s.target.Start(ctx, stack.Function))
	s.awaitCompleted(t, n.Namespace)
	s.settle(t, n)
	s.wantSound(t, n)
}
