package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// retired is a scene whose Composition has a bucket in a version that the target does not serve.
const retired = "retired"

// zeroth is less preferred than first, but backups have the buckets in it.
const zeroth = "v1alpha0"

func (s *suite) sceneRetired(claims int) *shape {
	return &shape{
		reason: "A resource that is named in a version that is no longer served is not missing.",
		Scene:  drill.Scene{Dir: "definitions-retired", Count: few, Size: 2*few + claims, RestoreArgs: withoutCRDs, Drift: true}, check: wantRetired,
	}
}

// machinery returns the path of Crossplane's own fields in an XR.
func (s *suite) machinery() []string {
	if s.version == stack.V1 {
		return []string{"spec"}
	}

	return []string{"spec", "crossplane"}
}

// references returns the resourceRefs of an XR.
func (s *suite) references(u *unstructured.Unstructured) []any {
	refs, _, _ := unstructured.NestedSlice(u.Object, append(s.machinery(), "resourceRefs")...)

	return refs
}

// testRetired expects XRs that name a bucket in a version that is not served to wait, and to name
// the served version, until a user writes that version and a revision that has it. The control
// keeps the backup's revision: Crossplane writes the old version into the XR again.
func (s *suite) testRetired(t *testing.T, n *shape) {
	ctx := t.Context()
	must(t, n.StartRestore(ctx, s.target))
	must(t, drill.AwaitOperations(ctx, s.target, n.Name))
	s.eventually(t, "the XRs to name the served version of the buckets", func(context.Context) error {
		for _, u := range s.orders(t, n, few) {
			mark := markOf(&u)
			for _, want := range []string{
				"have it as " + s.cloudGroup() + "/" + zeroth + ", which is not served", "[VersionNotServed]", "Write " + s.cloudGroup() + "/" + first + " there",
				"compositionRevisionRef",
				"kubectl edit " + u.GetKind() + "." + retired + ".example.org " + u.GetName(),
			} {
				if !paused(&u) || !strings.Contains(mark, want) {
					return fmt.Errorf("%s lacks %q: %s", u.GetName(), want, mark)
				}
			}
		}

		return nil
	})
	revision := s.revisionWith(t, n, first)
	for i, u := range s.orders(t, n, few) {
		refs := s.references(&u)
		for _, r := range refs {
			ref, _ := r.(map[string]any)
			ref["apiVersion"] = s.cloudGroup() + "/" + first
		}
		edit := map[string]any{}
		must(t, unstructured.SetNestedSlice(edit, refs, append(s.machinery(), "resourceRefs")...))
		if i == 0 {
			must(t, drill.Patch(ctx, s.target, &u, edit))
			s.awaitUndone(t, n, u.GetName())
		}
		if s.version == stack.V1 {
			claims := schema.GroupVersionKind{Group: u.GroupVersionKind().Group, Version: first, Kind: "Order"}
			claim, err := get(ctx, s.target, claims, n.Name, u.GetLabels()["crossplane.io/claim-name"])
			must(t, err)
			must(t, drill.Patch(ctx, s.target, claim, map[string]any{"spec": map[string]any{"compositionRevisionRef": map[string]any{"name": revision}}}))
		}
		must(t, unstructured.SetNestedField(edit, revision, append(s.machinery(), "compositionRevisionRef", "name")...))
		must(t, drill.Patch(ctx, s.target, &u, edit))
	}
	s.awaitCompleted(t, n.Name)
}

// awaitUndone waits until Crossplane has written the old version into an XR again, and has failed.
func (s *suite) awaitUndone(t *testing.T, n *shape, name string) {
	t.Helper()
	s.eventually(t, "Crossplane to write the old version into "+name+" again", func(ctx context.Context) error {
		namespace := n.Name
		if s.claimed(n.Name) {
			namespace = ""
		}
		u, err := get(ctx, s.target, s.orderKind(n.Name), namespace, name)
		if err != nil {
			return err
		}
		refs := s.references(u)
		if !strings.Contains(fmt.Sprint(refs), zeroth) || !drill.Held(u) || stack.HasCondition(u, "Synced", "False") != nil {
			return fmt.Errorf("it has %v, annotations %v, status %v", refs, u.GetAnnotations(), u.Object["status"])
		}

		return nil
	})
}

// revisionWith returns the revision of a scene's Composition that has the buckets in a version.
func (s *suite) revisionWith(t *testing.T, n *shape, version string) string {
	t.Helper()
	all, err := list(t.Context(), s.target, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}, "",
		"crossplane.io/composition-name="+n.Name)
	must(t, err)
	for _, u := range all {
		if strings.Contains(fmt.Sprint(u.Object["spec"]), s.cloudGroup()+"/"+version) {
			return u.GetName()
		}
	}
	t.Fatalf("none of %v has the version %s", names(all), version)

	return ""
}

// wantRetired expects unchanged buckets, without managedFields of the version that is not served.
func wantRetired(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	buckets := func(p drill.Picture) drill.Picture {
		p = maps.Clone(p.Only("Bucket."))
		for name, l := range p {
			l.Managers = nil
			p[name] = l
		}

		return p
	}
	wantSame(t, n, buckets(n.picture), buckets(after))
	for _, u := range s.orders(t, n, few) {
		if paused(&u) || drill.Held(&u) {
			t.Errorf("%s XR %s is still held: %v", n.reason, u.GetName(), u.GetAnnotations())
		}
	}
}
