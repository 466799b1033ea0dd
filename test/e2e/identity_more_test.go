package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testInformed wants an XR to wait for the EnvironmentConfig that its pipeline names, when nothing else is missing, until another restore brings that along.
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

// testHeedless wants a restore to fail, and to say why, when a provider has not heeded that an MR is paused. No hold keeps it from the second external resource:
// that there is one is the control.
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
