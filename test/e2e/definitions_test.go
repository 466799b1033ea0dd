package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// withoutCRDs makes a restore exclude CRDs, as it does if the backup has only some resources:
// providers install their own.
var withoutCRDs = []string{"--exclude-resources", "customresourcedefinitions.apiextensions.k8s.io"}

// Scenes in which the platform of the target is not the one of the source.
const (
	aloneDying   = "alone-dying"
	aloneMissing = "alone-missing"
	dying        = "dying"
	missing      = "missing"
	late         = "late"
	unhealthy    = "unhealthy"
	incapable    = "incapable"
	undefined    = "undefined"
)

func definitionScenes(version stack.Version) map[string]*shape {
	perOrder := 2 // The XR and its bucket.
	if version == stack.V1 {
		perOrder++ // And the claim.
	}
	scene := func(dir string, more int) drill.Scene {
		return drill.Scene{Dir: "definitions" + dir, Count: few, Size: few * (perOrder + more)}
	}
	without := func(s drill.Scene) drill.Scene {
		s.RestoreArgs = withoutCRDs

		return s
	}
	scenes := map[string]*shape{
		aloneDying: {
			reason: "Velero alone writes claims and XRs onto an XRD that is being deleted, and Crossplane deletes them with all that they compose.",
			Scene:  drill.Scene{Dir: "../v1.20/definitions", Count: few, Size: 3 * few, BackupArgs: selected(aloneDying)},
		},
		aloneMissing: {reason: "With Velero alone, XRs compose again what was not restored when its CRD comes late.", Scene: without(scene("-database", 1))},
		dying: {
			reason: "Nothing is written onto an XRD that is being deleted, and the restore reports errors.",
			Scene:  drill.Scene{Dir: "../v1.20/definitions", Count: few, Size: 3 * few},
		},
		missing:   {reason: "An XR waits for the CRD of what it composed, and what it composed.", Scene: without(scene("-network", 1))},
		late:      {reason: "An XR waits for the provider of what it composed.", Scene: scene("", 0)},
		unhealthy: {reason: "An XR waits for the Functions of its pipeline.", Scene: scene("", 0)},
		undefined: {reason: "A namespace is restored where its XRD is not, and the first XR too comes after that.", Scene: scene("", 0)},
	}
	scenes[undefined].Drift = true // Its Composition has Velero's labels after the restore.
	scenes[undefined].RestoreArgs = []string{"--include-namespaces", undefined}
	if version == stack.V1 {
		scenes[aloneMissing].BackupArgs = selected(aloneMissing) // Velero alone backs up no XRs that have claims.
	} else {
		scenes[incapable] = &shape{reason: "An XR waits until Crossplane takes its pipeline for valid.", Scene: scene("", 0)}
	}

	return scenes
}

func TestDefinitionsV2(t *testing.T) { testDefinitions(t, stack.V2, "v2") }

// testDefinitions loses a cluster, and restores into one whose platform is incomplete or
// terminates.
func testDefinitions(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	s := newStage(t, version)
	scenes := definitionScenes(version)
	s.fillScenes(t, dir, scenes, func(name string) bool { return strings.HasPrefix(name, "alone-") })

	s.target = s.bare(t, "target")
	for name, n := range scenes {
		s.installFunction(t, s.target, name, name != incapable)
		if name != undefined {
			must(t, n.Install(ctx, s.target, ""))
		}
	}
	s.setHealth(t, unhealthy, "False")
	s.sentence(t, aloneDying)
	s.sentence(t, dying)
	must(t, s.target.RestartVelero(ctx))

	t.Run("VeleroAlone", func(t *testing.T) {
		t.Run("Dying", func(t *testing.T) { s.testDyingAlone(t, scenes[aloneDying]) })
		t.Run("KindMissing", func(t *testing.T) { s.testKindMissingAlone(t, scenes[aloneMissing]) })
	})
	networks := s.withdraw(t, "networks")
	must(t, s.target.UsePlugin(ctx, true))

	t.Run("Dying", func(t *testing.T) { s.testDying(t, scenes[dying]) })
	t.Run("KindNever", func(t *testing.T) { s.testKindNeverThere(t, scenes[missing]) })
	waits := []string{missing, late, unhealthy}
	if version != stack.V1 {
		waits = append(waits, incapable)
	}
	s.startWaiting(t, scenes, waits)
	s.mend(t, scenes, networks)
	for name, what := range map[string]string{"KindLate": missing, "ProviderLate": late, "Unhealthy": unhealthy, "Incapable": incapable} {
		if n := scenes[what]; n != nil {
			t.Run(name, func(t *testing.T) { s.testMended(t, n) })
		}
	}
	t.Run("Undefined", func(t *testing.T) {
		must(t, scenes[undefined].StartRestore(ctx, s.target))
		s.testMended(t, scenes[undefined])
	})
	t.Run("DyingGone", func(t *testing.T) { s.testDyingGone(t, scenes[dying]) })
	now, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	t.Run("Settled", func(t *testing.T) {
		for _, name := range append(waits, dying, undefined) {
			t.Run(name, func(t *testing.T) { s.testSettled(t, scenes[name], now[len(now)-1].Seq) })
		}
	})
}

// fillScenes creates all scenes in the source, or in a new one, backs each up, and loses the
// source. Velero alone backs up the scenes for which alone returns true.
func (s *suite) fillScenes(t *testing.T, dir string, scenes map[string]*shape, alone func(name string) bool) {
	t.Helper()
	ctx := t.Context()
	if s.source == nil {
		s.source = s.bare(t, "source")
	}
	names := slices.Sorted(maps.Keys(scenes))
	for _, name := range names {
		n := scenes[name]
		n.Name, n.Dir = name, filepath.Join("testdata", dir, n.Dir)
		s.installFunction(t, s.source, name, true)
		must(t, n.Install(ctx, s.source, ""))
	}
	for _, name := range names {
		must(t, scenes[name].Make(ctx, s.source))
	}
	must(t, s.source.RestartVelero(ctx))
	for _, name := range names {
		if alone(name) {
			s.store(t, scenes[name])
		}
	}
	must(t, s.source.UsePlugin(ctx, true))
	for _, name := range names {
		if !alone(name) {
			s.store(t, scenes[name])
		}
	}
	must(t, s.source.Destroy())
}

// bare starts a cluster, with Velero alone.
func (s *suite) bare(t *testing.T, name string) *stack.Cluster {
	t.Helper()
	c, err := stack.NewCluster(t.Context(), s.host, stack.Options{Name: name, Crossplane: s.version, VeleroArgs: oftener})
	must(t, err)

	return c
}

// claimed reports whether a scene's XRs are cluster-scoped and have claims, as all have on v1.
// Crossplane deletes these when their XRD is deleted. The XRD of namespaced XRs waits until a user
// has deleted them.
func (s *suite) claimed(scene string) bool {
	return s.version == stack.V1 || scene == dying || scene == aloneDying
}

// definitionOf names the XRD of a scene.
func (s *suite) definitionOf(scene string) *unstructured.Unstructured {
	name := "orders." + scene + ".example.org"
	if s.claimed(scene) {
		name = "x" + name
	}
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apiextensions.crossplane.io/v1")
	u.SetKind("CompositeResourceDefinition")
	u.SetName(name)

	return u
}

// keeper returns a paused XR with a finalizer, which keeps a scene's XRD from being deleted.
func (s *suite) keeper(scene string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetAPIVersion(scene + ".example.org/v1alpha1")
	u.SetKind("XOrder")
	if !s.claimed(scene) {
		u.SetKind("Order")
		u.SetNamespace(metav1.NamespaceDefault)
	}
	u.SetName("kept-" + scene)
	u.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
	u.SetFinalizers([]string{"example.org/keep"})

	return u
}

// keepers returns the keeper of a scene and, if its XRs have claims, a claim like it.
func (s *suite) keepers(scene string) []*unstructured.Unstructured {
	xr := s.keeper(scene)
	if !s.claimed(scene) {
		return []*unstructured.Unstructured{xr}
	}
	claim := xr.DeepCopy()
	claim.SetKind("Order")
	claim.SetNamespace(metav1.NamespaceDefault)

	return []*unstructured.Unstructured{xr, claim}
}

// sentence deletes a scene's XRD, which its keepers keep.
func (s *suite) sentence(t *testing.T, scene string) {
	t.Helper()
	ctx := t.Context()
	must(t, s.target.ApplyObjects(ctx, s.keepers(scene)...))
	xrd := s.definitionOf(scene)
	s.delete(t, xrd, metav1.DeletePropagationBackground)
	for _, kept := range s.keepers(scene) {
		s.eventually(t, "Crossplane to delete what there is of "+xrd.GetName(), func(ctx context.Context) error {
			u, err := get(ctx, s.target, kept.GroupVersionKind(), kept.GetNamespace(), kept.GetName())
			if err == nil && u.GetDeletionTimestamp() == nil {
				err = fmt.Errorf("%s %s, which keeps it, is not being deleted yet", u.GetKind(), u.GetName())
			}

			return err
		})
	}
}

// look makes Crossplane reconcile a scene's XRD, which it would otherwise do only after a while.
func (s *suite) look(t *testing.T, scene, at string) {
	t.Helper()
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"look": at}}}
	if err := drill.Patch(t.Context(), s.target, s.definitionOf(scene), patch); !apierrors.IsNotFound(err) {
		must(t, err)
	}
}

// testDyingAlone is the control: Crossplane deletes the claims and XRs that are restored. It also
// deletes what they composed if it was faster to adopt that. Otherwise that has no controller.
func (s *suite) testDyingAlone(t *testing.T, n *shape) {
	must(t, n.StartRestore(t.Context(), s.target))
	s.awaitEnd(t, n.Name)
	s.look(t, n.Name, "restored")
	xr := s.definitionOf(n.Name)
	s.eventually(t, "Crossplane to delete what was restored, without which the other tests prove nothing", func(ctx context.Context) error {
		for _, kept := range s.keepers(n.Name) {
			left, err := s.of(ctx, s.target, n.Name, kept.GroupVersionKind())
			if err != nil {
				return err
			}
			if len(left) > 0 {
				return fmt.Errorf("there are the %ss %v", kept.GetKind(), names(left))
			}
		}
		changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
		if err != nil {
			return err
		}
		lost := map[string]bool{}
		for _, e := range changes {
			if id := string(e.Kind) + " " + e.ID; e.Op == api.Delete && n.ledger.External[id] {
				lost[id] = true
			}
		}
		buckets, err := list(ctx, s.target, schema.GroupVersionKind{Group: "cloud.example.org", Version: "v1alpha1", Kind: "Bucket"}, "", "scene="+n.Name)
		if err != nil {
			return err
		}
		orphans := slices.DeleteFunc(buckets, func(u unstructured.Unstructured) bool { return metav1.GetControllerOf(&u) != nil })
		if len(lost)+len(orphans) < few {
			return fmt.Errorf("%d external resources were lost with %s, and %d have no controller", len(lost), xr.GetName(), len(orphans))
		}
		t.Logf("%d external resources were lost, and %d have no controller", len(lost), len(orphans))

		return nil
	})
}

// changed returns an error if the cloud has not logged that many calls for the scene.
func (s *suite) changed(ctx context.Context, n *shape, op api.Op, kind api.Kind, want int) error {
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	if err != nil {
		return err
	}
	changes = slices.DeleteFunc(changes, func(e api.Entry) bool { return e.Op != op || e.Kind != kind })
	if len(changes) < want {
		return fmt.Errorf("%d of %d %ss saw a %s", len(changes), want, kind, op)
	}

	return nil
}

// testDying checks that there is an error for each object, that no object was created, and that
// nothing has changed.
func (s *suite) testDying(t *testing.T, n *shape) {
	ctx := t.Context()
	xrd := s.definitionOf(n.Name)
	before, err := get(ctx, s.target, xrd.GroupVersionKind(), "", xrd.GetName())
	must(t, err)
	must(t, n.StartRestore(ctx, s.target))
	s.wantPhase(t, n.Name, "PartiallyFailed")
	logs := drill.Problems(ctx, s.target, n.Name)
	for id := range n.picture {
		kind, name, _ := strings.Cut(id, " ")
		kind, _, _ = strings.Cut(kind, ".")
		wantMessage(t, "the problems of the restore", logs, "level=error", "cannot restore "+kind+" "+name, xrd.GetName()+" is being deleted", "restore again")
	}
	for _, object := range s.written(t)[n.Name] {
		if kind, _, _ := strings.Cut(object, " "); kind != "Namespace" && kind != "ServiceAccount" && kind != "ConfigMap" { // The control plane creates these.
			t.Errorf("%s The restore wrote %s", n.reason, object)
		}
	}
	after, err := get(ctx, s.target, xrd.GroupVersionKind(), "", xrd.GetName())
	must(t, err)
	for _, u := range []*unstructured.Unstructured{before, after} {
		delete(u.Object, "status")
		u.SetResourceVersion("")
		u.SetManagedFields(nil)
	}
	wantSame(t, n, drill.Picture{"XRD": {Fields: before.Object}}, drill.Picture{"XRD": {Fields: after.Object}})
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s In the cloud: %v", n.reason, changes)
	}
}

// testDyingGone lets the XRD be deleted, creates it again, and restores again.
func (s *suite) testDyingGone(t *testing.T, n *shape) {
	ctx := t.Context()
	for _, kept := range s.keepers(n.Name) {
		must(t, drill.Patch(ctx, s.target, kept, map[string]any{"metadata": map[string]any{"finalizers": nil, "annotations": nil}}))
		s.awaitGone(t, kept)
	}
	s.look(t, n.Name, "gone")
	s.awaitGone(t, s.definitionOf(n.Name))
	must(t, n.Install(ctx, s.target, ""))
	s.again(t, n)
	must(t, n.AwaitReady(ctx, s.target))
}

// awaitEnd waits until a restore has ended, with any result: for Velero alone it can be an error
// that a restored object was deleted again.
func (s *suite) awaitEnd(t *testing.T, name string) {
	t.Helper()
	r, err := drill.AwaitRestore(t.Context(), s.target, name)
	must(t, err)
	t.Logf("Restore %s is %s", name, drill.Phase(r))
}

// again restores a scene once more, and waits until that restore is Completed.
func (s *suite) again(t *testing.T, n *shape) {
	t.Helper()
	must(t, drill.Platform{}.StartRestore(t.Context(), s.target, n.Name+"-again", n.Name))
	s.awaitCompleted(t, n.Name+"-again")
}
