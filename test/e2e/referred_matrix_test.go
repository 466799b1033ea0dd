//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// newest is the version to which the XRDs of the target refer.
const newest = "v1beta1"

func TestMatrixReferredV1(t *testing.T) { testReferred(t, stack.V1, "v1.20") }

func TestMatrixReferredV2(t *testing.T) { testReferred(t, stack.V2, "v2") }

func TestMatrixReferredV24(t *testing.T) { testReferred(t, stack.V24, "v2") }

// testReferred restores XRs into a cluster whose XRD has a newer version and refers to it.
func testReferred(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	ctx := t.Context()
	s := newStageOf(t, stack.Options{Crossplane: version, Plugin: true})
	claims := 0
	if version.IsV1() {
		claims = few
	}
	scene := func(name, reason string) *shape {
		return &shape{reason: reason, check: wantBuckets, Scene: drill.Scene{
			Name: name, Dir: filepath.Join("testdata", dir, "definitions-referred"), Count: few, Size: 2*few + claims, RestoreArgs: withoutCRDs, Drift: true,
		}}
	}
	alone := scene("alone-referred", "Velero alone leaves XRs that Crossplane refuses.")
	served := scene("referred", "The version of the backup is served, and Crossplane reads another.")
	unserved := scene("unserved", "The version of the backup is not served any more.")
	all := []*shape{alone, served, unserved}
	s.source = s.withFiles(t, "source", "source.yaml", all...)
	for _, n := range all {
		must(t, n.Make(ctx, s.source))
	}
	for _, n := range all {
		s.store(t, n)
	}
	must(t, s.source.Destroy())

	s.target = s.withFiles(t, "target", "target.yaml", all...)
	must(t, s.target.UsePlugin(ctx, false))
	t.Run("VeleroAlone", func(t *testing.T) { s.testReferredAlone(t, alone) })
	must(t, s.target.UsePlugin(ctx, true))
	t.Run("Served", func(t *testing.T) { s.testServed(t, served) })
	t.Run("Unserved", func(t *testing.T) { s.testUnserved(t, unserved) })
	now, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	for _, n := range all[1:] {
		t.Run("Settled/"+n.Name, func(t *testing.T) { s.testSettled(t, n, now[len(now)-1].Seq) })
	}
}

// testReferredAlone is the control: Crossplane refuses the Compositions and names no cure.
func (s *suite) testReferredAlone(t *testing.T, n *shape) {
	must(t, n.StartRestore(t.Context(), s.target))
	s.awaitCompleted(t, n.Name)
	s.eventually(t, "Crossplane to refuse the Compositions (the control)", func(context.Context) error {
		for _, u := range s.orders(t, n, few) {
			if said := fmt.Sprint(u.Object["status"]); !strings.Contains(said, "not compatible") {
				return errors.New(said)
			}
		}

		return nil
	})
}

// withFiles starts a cluster with the named platform file of each scene.
func (s *suite) withFiles(t *testing.T, name, file string, scenes ...*shape) *stack.Cluster {
	t.Helper()
	ctx := t.Context()
	c, err := stack.NewCluster(ctx, s.host, stack.Options{Name: name, Crossplane: s.version, Plugin: true, VeleroArgs: oftener})
	must(t, err)
	for _, n := range scenes {
		must(t, n.Install(ctx, c, file))
	}
	must(t, c.RestartVelero(ctx))

	return c
}

// testServed restores XRs whose version is served. Crossplane runs a Composition only in the
// version in which it reads XRs, so a user selects one for that version.
func (s *suite) testServed(t *testing.T, n *shape) {
	ctx := t.Context()
	must(t, n.StartRestore(ctx, s.target))
	s.choose(t, n)
	s.awaitCompleted(t, n.Name)
	must(t, n.AwaitReady(ctx, s.target))
}

// choose waits until each XR is held and reports that its Composition is for another version. It
// then gives each claim and XR the Composition for the newer version.
func (s *suite) choose(t *testing.T, n *shape) {
	t.Helper()
	ctx := t.Context()
	must(t, drill.AwaitOperations(ctx, s.target, n.Name))
	words := []string{"CompositionRevision " + n.Name + "-", "example.org/" + newest + ", as the XRD", "[RevisionNotCompatible]"}
	s.eventually(t, "the XRs to name the cure for their Composition", func(ctx context.Context) error {
		out, err := s.target.Velero(ctx, "restore", "describe", n.Name, "--details")
		if err == nil && linesWith(out, words...) < few {
			err = errors.New(out)
		}
		for _, u := range s.orders(t, n, few) {
			if mark := markOf(&u); !paused(&u) || !hasAll(mark, words) {
				err = errors.Join(err, fmt.Errorf("%s is not held with this cause: %s", u.GetName(), mark))
			}
		}

		return err
	})
	revision := ""
	revisions, err := list(ctx, s.target, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}, "",
		"crossplane.io/composition-name="+n.Name+"-next")
	must(t, err)
	for _, u := range revisions {
		revision = u.GetName()
	}
	choice := map[string]any{"compositionRef": map[string]any{"name": n.Name + "-next"}, "compositionRevisionRef": map[string]any{"name": revision}}
	edit, all := map[string]any{"spec": map[string]any{"crossplane": choice}}, s.orders(t, n, few)
	if s.version.IsV1() {
		claims, err := list(ctx, s.target, schema.GroupVersionKind{Group: n.Name + ".example.org", Version: newest, Kind: "Order"}, n.Name, "")
		must(t, err)
		edit, all = map[string]any{"spec": choice}, append(claims, all...)
	}
	for _, u := range all {
		must(t, drill.Patch(ctx, s.target, &u, edit))
		if _, claimed, _ := unstructured.NestedMap(u.Object, "spec", "claimRef"); claimed {
			version := map[string]any{"apiVersion": n.Name + ".example.org/" + newest}
			must(t, drill.Patch(ctx, s.target, &u, map[string]any{"spec": map[string]any{"claimRef": version}}))
		}
	}
}

// testUnserved restores XRs whose version is not served, and again when it is.
func (s *suite) testUnserved(t *testing.T, n *shape) {
	ctx := t.Context()
	s.serve(t, n, false)
	must(t, s.target.RestartVelero(ctx))
	must(t, drill.Platform{}.StartRestore(ctx, s.target, n.Name+"-first", n.Name, append([]string{"--item-operation-timeout", "1s"}, n.RestoreArgs...)...))
	s.wantPhase(t, n.Name+"-first", "PartiallyFailed")
	problems := drill.Problems(ctx, s.target, n.Name+"-first")
	if found := linesWith(problems, "level=error", "Order", "the backup has it in v1alpha1", "only in "+newest, "[BackupVersionNotServed]"); found < few {
		t.Errorf("%d of %d XRs are named with the cure:\n%s", found, few, problems)
	}
	s.serve(t, n, true)
	must(t, s.target.RestartVelero(ctx))
	s.testServed(t, n)
}

// serve makes a scene's XRD in the target serve the version of the backup, or not.
func (s *suite) serve(t *testing.T, n *shape, served bool) {
	t.Helper()
	ctx := t.Context()
	kind := s.orderKind(n.Name)
	xrd := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition"}
	plural := strings.ToLower(kind.Kind) + "s." + kind.Group
	u, err := get(ctx, s.target, xrd, "", plural)
	must(t, err)
	versions, _, err := unstructured.NestedSlice(u.Object, "spec", "versions")
	must(t, err)
	versions[0].(map[string]any)["served"] = served //nolint:forcetypeassert // It is an object.
	must(t, drill.Patch(ctx, s.target, u, map[string]any{"spec": map[string]any{"versions": versions}}))
	crds := []string{plural}
	if s.version.IsV1() {
		crds = append(crds, "orders."+kind.Group)
	}
	s.eventually(t, "the CRDs to be as the XRD", func(ctx context.Context) error {
		for _, name := range crds {
			crd, err := get(ctx, s.target, crdKind, "", name)
			if err != nil {
				return err
			}
			versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
			if v, _ := versions[0].(map[string]any); v["served"] != served {
				return fmt.Errorf("%s has %v", name, v["name"])
			}
		}

		return nil
	})
}

// wantBuckets expects the buckets to be unchanged, and nothing to be held.
func wantBuckets(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	wantSame(t, n, n.picture.Only("Bucket."), after.Only("Bucket."))
	for _, u := range s.orders(t, n, few) {
		if paused(&u) || drill.Held(&u) {
			t.Errorf("%s XR %s is still held: %v", n.reason, u.GetName(), u.GetAnnotations())
		}
	}
}
