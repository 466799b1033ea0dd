//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// storeConfig is a field of each revision of v1.20 that v2 does not have.
const storeConfig = "publishConnectionDetailsWithStoreConfigRef"

func TestMatrixPinnedV23(t *testing.T) { testPinned(t, stack.V1, stack.V2) }

// testPinned restores XRs that stay on an older revision of their Composition. A newer Crossplane
// does not store that revision as it was.
func testPinned(t *testing.T, from, to stack.Version) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	dir := filepath.Join("testdata", "v1.20", "revisions")
	alone := &shape{reason: "Velero alone loses them.", Scene: drill.Scene{Name: bare, Dir: dir, Count: 3, Size: 21, Drift: true}}
	n := &shape{
		reason: "A pinned XR stays on the revision that it had.", Scene: drill.Scene{Name: "pinned", Dir: dir, Count: 3, Size: 21, Drift: true}, check: wantLike,
	}
	s := newStageOf(t, stack.Options{Crossplane: from, Plugin: true, Gate: true}, stack.Options{Crossplane: to})
	s.source = s.gated(t, "source", "source.yaml", alone, n)
	for _, n := range []*shape{alone, n} {
		must(t, n.Make(ctx, s.source))
		must(t, s.source.UsePlugin(ctx, n != alone))
		s.store(t, n)
	}
	if got := s.withStoreConfig(t, s.source, n); got != 2 {
		t.Fatalf("%d revisions of the source have the field that is dropped", got)
	}
	must(t, s.source.Destroy())

	s.version = to
	s.target = s.gated(t, "target", "change.yaml", alone, n)
	must(t, s.target.UsePlugin(ctx, false))
	t.Run("VeleroAlone", func(t *testing.T) { s.testShapeLost(t, alone) })
	must(t, s.target.UsePlugin(ctx, true))
	must(t, n.StartRestore(ctx, s.target))
	t.Run("Restored", func(t *testing.T) { s.testRestored(t, n) })
	t.Run("Settled", func(t *testing.T) { s.wantSettled(t, n) })
	if got := s.withStoreConfig(t, s.target, n); got != 0 {
		t.Errorf("according to docs/hazards.md the field is dropped, but %d revisions have it", got)
	}
}

// gated starts a cluster with the plugin, function-gate, and a file of the platform of each scene.
func (s *suite) gated(t *testing.T, name, file string, scenes ...*shape) *stack.Cluster {
	t.Helper()
	ctx := t.Context()
	c, err := stack.NewCluster(ctx, s.host, stack.Options{Name: name, Crossplane: s.version, Plugin: true, Gate: true, VeleroArgs: oftener})
	must(t, err)
	for _, n := range scenes {
		must(t, n.Install(ctx, c, file))
	}
	must(t, c.RestartVelero(ctx))

	return c
}

// revisionsOf returns the revisions of a Composition.
func (s *suite) revisionsOf(t *testing.T, c *stack.Cluster, composition string) []unstructured.Unstructured {
	t.Helper()
	all, err := list(t.Context(), c, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}, "",
		"crossplane.io/composition-name="+composition)
	must(t, err)

	return all
}

func (s *suite) withStoreConfig(t *testing.T, c *stack.Cluster, n *shape) int {
	t.Helper()
	found := 0
	for _, r := range s.revisionsOf(t, c, n.Name) {
		if _, ok, _ := unstructured.NestedMap(r.Object, "spec", storeConfig); ok {
			found++
		}
	}

	return found
}

// wantLike checks that all objects have the owners and fields that they had, and that nothing has
// changed in the cloud. Another version of Crossplane manages fields under other names.
func wantLike(t *testing.T, _ *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	like := func(p drill.Picture) map[string][]any {
		all := map[string][]any{}
		for name, l := range p {
			all[name] = []any{l.Owners, l.Fields}
		}

		return all
	}
	if diff := cmp.Diff(like(n.picture), like(after), cmpopts.EquateEmpty()); diff != "" || len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v\n-before, +after:\n%s", n.reason, changes, diff)
	}
}

func TestMatrixRequirementsV21(t *testing.T) {
	testRequirements(t, stack.V22, stack.V21, "requiredSchemas")
}

// TestMatrixRequirementsV1 installs the XRD in the target.
func TestMatrixRequirementsV1(t *testing.T) {
	testRequirements(t, stack.V20, stack.V1, "requiredResources")
}

// testRequirements goes back to a Crossplane that does not know the requirements in the pipeline of
// a Composition, and does not store them.
func testRequirements(t *testing.T, from, to stack.Version, requirement string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	n := &shape{
		reason: "Objects that a function would leave out must not be deleted.",
		Scene:  drill.Scene{Name: "steps", Dir: filepath.Join("testdata", "v1.20", "requirements"), Count: few, Size: 4 * few, Drift: true},
	}
	s := newStageOf(t, stack.Options{Crossplane: from, Plugin: true, Gate: true}, stack.Options{Crossplane: to})
	s.source = s.gated(t, "source", requirement+".yaml", n)
	must(t, n.Make(ctx, s.source))
	s.store(t, n)
	must(t, s.source.Destroy())

	s.version = to
	s.target = s.gated(t, "target", "", n)
	must(t, n.StartRestore(ctx, s.target))
	t.Run("Held", func(t *testing.T) { s.testRequiring(t, n, requirement+" of the step gate") })
	t.Run("Restored", func(t *testing.T) {
		must(t, n.Cure(ctx, s.target))
		s.follow(t, n, n.Name+"-without")
		s.awaitCompleted(t, n.Name)
		must(t, n.AwaitReady(ctx, s.target))
		n.check = wantComposed
		s.wantSettled(t, n)
	})
	t.Run("Lost", func(t *testing.T) { s.testRequirementLost(t, n) })
}

// shops returns the claims of a scene, and then their XRs.
func (s *suite) shops(t *testing.T, n *shape) []unstructured.Unstructured {
	t.Helper()
	var all []unstructured.Unstructured
	for kind, namespace := range map[string]string{"Shop": n.Name, "XShop": ""} {
		found, err := list(t.Context(), s.target, schema.GroupVersionKind{Group: n.Name + ".example.org", Version: "v1alpha1", Kind: kind}, namespace, "")
		must(t, err)
		if kind == "Shop" {
			all = append(found, all...)
		} else {
			all = append(all, found...)
		}
	}
	if len(all) != 2*n.Count {
		t.Fatalf("there are %d claims and XRs", len(all))
	}

	return all
}

// testRequiring checks that each XR is held, with what its revision has lost and what to do.
func (s *suite) testRequiring(t *testing.T, n *shape, lost string) {
	ctx := t.Context()
	must(t, drill.AwaitItems(ctx, s.target, n.Name))
	words := []string{"CompositionRevision " + n.Name + "-", "[RequirementsLost]", lost}
	s.eventually(t, "the XRs to report what their revision has lost", func(ctx context.Context) error {
		out, err := s.target.Velero(ctx, "restore", "describe", n.Name, "--details")
		if err == nil && linesWith(out, words...) < n.Count {
			err = errors.New(out)
		}
		for _, u := range s.shops(t, n)[n.Count:] {
			if mark := markOf(&u); !paused(&u) || !hasAll(mark, words) {
				err = errors.Join(err, fmt.Errorf("%s is not held for that: %s", u.GetName(), mark))
			}
		}

		return err
	})
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
}

// follow makes claims and XRs use a Composition, as a user does.
func (s *suite) follow(t *testing.T, n *shape, composition string) {
	t.Helper()
	revision := ""
	for _, r := range s.revisionsOf(t, s.target, composition) {
		revision = r.GetName()
	}
	edit := map[string]any{"spec": map[string]any{
		"compositionRef": map[string]any{"name": composition}, "compositionRevisionRef": map[string]any{"name": revision},
	}}
	for _, u := range s.shops(t, n) {
		must(t, drill.Patch(t.Context(), s.target, &u, edit))
	}
}

// wantComposed checks that XRs compose the same objects, though with another Composition.
func wantComposed(t *testing.T, _ *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	like := func(p drill.Picture) map[string][]any {
		all := map[string][]any{}
		for name, l := range p {
			fields, _ := l.Fields.(map[string]any)
			refs, _, _ := unstructured.NestedFieldNoCopy(fields, "spec", "resourceRefs")
			all[name] = []any{l.Owners, refs}
		}

		return all
	}
	if diff := cmp.Diff(like(n.picture), like(after), cmpopts.EquateEmpty()); diff != "" || len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v\n-before, +after:\n%s", n.reason, changes, diff)
	}
}

// testRequirementLost is the control: an XR that uses a revision without its requirements loses
// what it composed.
func (s *suite) testRequirementLost(t *testing.T, n *shape) {
	s.follow(t, n, n.Name)
	s.eventually(t, "Crossplane to delete the buckets, without which the other tests prove nothing", func(ctx context.Context) error {
		changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
		if err != nil {
			return err
		}
		deletes := 0
		for _, e := range changes {
			if e.Op == api.Delete {
				deletes++
			}
		}
		if deletes < n.Count {
			err = fmt.Errorf("it has deleted %d", deletes)
		}

		return err
	})
}
