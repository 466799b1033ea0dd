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

// rarerScenes are those that TestIdentityV1 leaves to the matrix.
func rarerScenes() map[string]*shape {
	return map[string]*shape{
		"arn":     {reason: "The ID in the status of a kind whose external-names are not that must not become one."},
		"gone":    {reason: "Observing first tells what is not in the cloud any more, rather than have it made anew."},
		"unruled": {reason: "What can't be observed first, since its kind has no managementPolicies, must not be made anew unasked."},
		"trusted": {reason: "Without that setting, it is made anew.", Scene: drill.Scene{Dir: "unruled"}},
		"killed":  {reason: "What a provider was creating when it was killed may be there."},
	}
}

// restoreRarer restores the scenes that TestIdentityV1 leaves to the matrix.
func (s *identity) restoreRarer(t *testing.T) []string {
	t.Helper()
	s.startRestore(t, "held", "all", "--include-namespaces", "arn,killed", "--item-operation-timeout", "30s")
	s.startRestore(t, "gone", "all", "--include-namespaces", "gone", "--item-operation-timeout", "30s", "--annotations", observeFirst)
	s.startRestore(t, "unruled", "all", "--include-namespaces", "unruled", "--item-operation-timeout", "30s", "--annotations", observeFirst)
	s.startRestore(t, "trusted", "all", "--include-namespaces", "trusted")

	return []string{"held", "gone", "unruled", "trusted"}
}

// testInformed wants an XR to wait for the EnvironmentConfig that its pipeline names, when nothing
// else is missing, until another restore brings that along.
func (s *identity) testInformed(t *testing.T, since int64) {
	ctx := t.Context()
	awaited, carried := s.scenes["awaited"], s.scenes["carried"]
	s.eventually(t, "an XR to wait for an EnvironmentConfig", func(ctx context.Context) error {
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
	s.eventually(t, "an XR to say that", func(context.Context) error {
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

// testHeedless wants a restore to fail, and to say why, when a provider has not heeded that an MR
// is paused. No hold keeps it from the second external resource: that there is one is the control.
func (s *identity) testHeedless(t *testing.T) {
	s.eventually(t, "a second network of a provider that does not heed the pause", func(ctx context.Context) error {
		if n := len(s.creates(ctx, t, s.lost, ", Network, heedless-00")); n != 1 {
			return fmt.Errorf("%d were made", n)
		}

		return nil
	})
	s.wantPhase(t, "heedless", "PartiallyFailed")
	wantTold(t, "the details of the restore", s.details(t, "heedless"), "heedless-00", "cloud.example.org", annotationPaused, "second external resource", "release")
	alone, err := drill.AwaitRestore(t.Context(), s.target, "alone")
	must(t, err)
	if drill.Phase(alone) != "Completed" {
		t.Errorf("Velero alone would not have passed over it in silence: its restore is %s", drill.Phase(alone))
	}
}

// withoutPolicies takes managementPolicies out of a CRD, as those of older providers have none: the
// API server drops the field.
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

// loseExternal deletes what some scenes have in the cloud.
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

// testNotObservable wants what can't be observed first to stay held, and the restore to name it.
// Where nobody has asked for that, and as soon as somebody lets it go, its provider makes anew what
// is gone: that is the control.
func (s *identity) testNotObservable(t *testing.T) {
	s.eventually(t, "a bucket to be made anew that was not to be observed first, without which this proves nothing", func(ctx context.Context) error {
		if n := len(s.creates(ctx, t, s.lost, ", Bucket, trusted-00")); n != 1 {
			return fmt.Errorf("%d were made", n)
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
	wantTold(t, "the details of the restore", s.details(t, "unruled"), mrs[0].GetName(), "observe-first", "no managementPolicies", "release")
	wantTold(t, "the mark of its XR", markOf(&xr), mrs[0].GetName(), "no managementPolicies")
	s.wantUnwritten(t, n)

	r := command(t, s.target, "release", "--restore", "unruled", "--force", "--yes")
	if said := r.stdout + r.stderr; !strings.Contains(said, "no managementPolicies") {
		t.Errorf("release --force does not say what comes of it: %+v", r)
	}
	s.eventually(t, "the bucket to be made anew when it is let go", func(ctx context.Context) error {
		if n := len(s.creates(ctx, t, s.lost, ", Bucket, unruled-00")); n != 1 {
			return fmt.Errorf("%d were made", n)
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
