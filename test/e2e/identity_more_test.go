package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// rarerScenes returns the scenes that TestMatrixIdentityV1 leaves to TestMatrixIdentityRarerV1.
func rarerScenes() map[string]*shape {
	return map[string]*shape{
		"arn":     {reason: "The ID in the status must not become the external-name of a kind whose external-names differ from it."},
		"gone":    {reason: "Observing first reports an external resource that is gone, and does not create it again."},
		"unruled": {reason: "An MR whose kind has no managementPolicies can't be observed first, so it must stay held."},
		"trusted": {reason: "Without that setting, the provider creates it again.", Scene: drill.Scene{Dir: "unruled"}},
		"killed":  {reason: "An external resource that a provider was creating when it was killed may exist."},
	}
}

// restoreRarer restores the scenes that TestMatrixIdentityV1 leaves to TestMatrixIdentityRarerV1.
func (s *identity) restoreRarer(t *testing.T) []string {
	t.Helper()
	s.startRestore(t, "held", "all", "--include-namespaces", "arn,killed", "--item-operation-timeout", "30s")
	s.startRestore(t, "gone", "all", "--include-namespaces", "gone", "--annotations", observeFirst)
	s.startRestore(t, "unruled", "all", "--include-namespaces", "unruled", "--item-operation-timeout", "30s", "--annotations", observeFirst)
	s.startRestore(t, "trusted", "all", "--include-namespaces", "trusted")

	return []string{"held", "gone", "unruled", "trusted"}
}

// testInformed expects an XR that lacks nothing but the EnvironmentConfig of its pipeline to wait
// for it, until another restore brings it.
func (s *identity) testInformed(t *testing.T, since int64) {
	ctx := t.Context()
	awaited, carried := s.scenes["awaited"], s.scenes["carried"]
	s.eventually(t, "the MRs of an XR that waits for an EnvironmentConfig to be reconciled", func(ctx context.Context) error {
		mrs := s.managed(ctx, t, s.target, "awaited")
		if len(mrs) != 2 {
			return fmt.Errorf("there are %v", names(mrs))
		}
		for _, u := range mrs {
			if err := stack.HasCondition(&u, "Synced", "True"); err != nil || drill.Held(&u) {
				return fmt.Errorf("%s is not at work yet: %w, %v", u.GetName(), err, u.GetAnnotations())
			}
		}

		return nil
	})
	s.eventually(t, "an XR to name the missing EnvironmentConfig", func(context.Context) error {
		xr := s.composites(t, "awaited")[0]
		if mark := markOf(&xr); !paused(&xr) || !strings.Contains(mark, "waiting for EnvironmentConfig identity-shared: ") {
			return fmt.Errorf("%s does not wait for the EnvironmentConfig: %v", xr.GetName(), xr.GetAnnotations())
		}

		return nil
	})
	s.wantUnwritten(t, awaited)

	restored := s.seq(t)
	s.startRestore(t, "carried", "all", "--include-namespaces", "carried")
	s.testSame(t, carried, restored)
	s.testSame(t, awaited, since)
	_, err := get(ctx, s.target, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1beta1", Kind: "EnvironmentConfig"}, "", "identity-shared")
	must(t, err)
}

// testHeedless expects a restore to fail, and to give the reason, when a provider ignores the pause
// of an MR. No hold prevents the second external resource then; that it exists is the control.
func (s *identity) testHeedless(t *testing.T) {
	s.eventually(t, "a second network of a provider that ignores the pause", func(ctx context.Context) error {
		if n := len(s.creates(ctx, t, s.lost, ", Network, heedless-00")); n != 1 {
			return fmt.Errorf("%d were created", n)
		}

		return nil
	})
	s.wantPhase(t, "heedless", "PartiallyFailed")
	wantMessage(t, "the details of the restore", s.details(t, "heedless"), "heedless-00", "cloud.example.org", annotationPaused, "second external resource", "release")
	alone, err := drill.AwaitRestore(t.Context(), s.target, "alone")
	must(t, err)
	if drill.Phase(alone) != "Completed" {
		t.Errorf("Velero alone must not notice the second network: its restore must be Completed, not %s", drill.Phase(alone))
	}
}

// withoutPolicies removes managementPolicies from a CRD: the API server then drops the field.
func withoutPolicies(t *testing.T, c *stack.Cluster, crd string) {
	t.Helper()
	u, err := get(t.Context(), c, crdKind, "", crd)
	must(t, err)
	versions, _, err := unstructured.NestedSlice(u.Object, "spec", "versions")
	must(t, err)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "managementPolicies")
	}
	must(t, unstructured.SetNestedSlice(u.Object, versions, "spec", "versions"))
	u.Object["metadata"] = map[string]any{"name": crd}
	delete(u.Object, "status")
	must(t, c.ApplyObjects(t.Context(), u))
}

// loseExternal deletes external resources of some scenes in the cloud.
func (s *identity) loseExternal(t *testing.T) {
	t.Helper()
	for _, scene := range []string{"gone", "unruled", "trusted"} {
		n, ok := s.scenes[scene]
		if !ok {
			continue
		}
		external := slices.Collect(maps.Keys(n.ledger.External))
		if len(external) != 1 {
			t.Fatalf("the cloud has %v of %s", external, scene)
		}
		kind, id, _ := strings.Cut(external[0], " ")
		must(t, s.cloud.Delete(t.Context(), api.Kind(kind), id))
	}
}

// testNotObservable expects an MR that can't be observed first to stay held, and the restore to
// name it. The control: without the setting, or after a release, it is created again.
func (s *identity) testNotObservable(t *testing.T) {
	s.eventually(t, "a bucket without that setting to be created again (the control)", func(ctx context.Context) error {
		if n := len(s.creates(ctx, t, s.lost, ", Bucket, trusted-00")); n != 1 {
			return fmt.Errorf("%d were created", n)
		}

		return nil
	})
	s.awaitCompleted(t, "trusted")

	n := s.scenes["unruled"]
	s.wantPhase(t, "unruled", "PartiallyFailed")
	mrs := s.managed(t.Context(), t, s.target, "unruled")
	if len(mrs) != 1 || !paused(&mrs[0]) || !drill.Held(&mrs[0]) || policies(&mrs[0]) != nil {
		t.Fatalf("%s Not held as it should be: %v", n.reason, mrs)
	}
	xr := s.parks(t, "unruled")[0]
	wantMessage(t, "the details of the restore", s.details(t, "unruled"), mrs[0].GetName(), "observe-first", "no managementPolicies", "release")
	wantMessage(t, "the mark of its XR", markOf(&xr), mrs[0].GetName(), "no managementPolicies")
	s.wantUnwritten(t, n)

	r := command(t, s.target, "release", "--restore", "unruled", "--force", "--yes")
	if said := r.stdout + r.stderr; !strings.Contains(said, "no managementPolicies") {
		t.Errorf("release --force does not give the consequence: %+v", r)
	}
	s.eventually(t, "the bucket to be created again when it is released", func(ctx context.Context) error {
		if n := len(s.creates(ctx, t, s.lost, ", Bucket, unruled-00")); n != 1 {
			return fmt.Errorf("%d were created", n)
		}

		return nil
	})
}

// parks returns the XRs of a scene that has claims on v2.
func (s *identity) parks(t *testing.T, scene string) []unstructured.Unstructured {
	t.Helper()
	all, err := list(t.Context(), s.target, schema.GroupVersionKind{Group: "identity.example.org", Version: "v1alpha1", Kind: "XPark"}, "", "")
	must(t, err)
	all = slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return !strings.HasPrefix(u.GetName(), scene+"-") })
	if len(all) != 1 {
		t.Fatalf("there are %v of %s", names(all), scene)
	}

	return all
}
