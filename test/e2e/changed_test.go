package e2e

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testCompositionChanged removes the database from the Composition after the items are restored and
// before adoption. The provider is stopped meanwhile, so adoption waits as long as the change
// takes. Instances with an update policy are applied again as Git has them, which removes the pin.
func (s *suite) testCompositionChanged(t *testing.T, n *tenant) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	history, err := n.Watch(ctx, s.target)
	must(t, err)
	must(t, s.target.Stop(stack.CloudProvider))
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	must(t, drill.AwaitOperations(ctx, s.target, n.Namespace))
	s.wantDescribed(t, n)
	if n.UpdatePolicy != "" {
		must(t, n.Make(ctx, s.target, n.size))
	}

	without := n.Platform
	without.Without = []string{"database"}
	must(t, without.Compose(ctx, s.target))
	must(t, s.target.Start(ctx, stack.CloudProvider))
	s.awaitCompleted(t, n.Namespace)
	s.eventually(t, "the databases to be gone", func(ctx context.Context) error {
		mrs, err := n.Managed(ctx, s.target)
		if err == nil && len(mrs) != 2*n.size {
			err = fmt.Errorf("there are %d MRs", len(mrs))
		}

		return err
	})
	s.settle(t, n)

	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	want := drill.Outcome{Deletes: n.size, Adopted: 2 * n.size, Total: 3 * n.size}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	deleted, err := s.cloud.Journal(ctx, n.before.Seq, api.Delete)
	must(t, err)
	for _, e := range deleted {
		if n.before.External[e.ID] && e.Kind != api.Database {
			t.Errorf("%s %s was deleted too", e.Kind, e.ID)
		}
	}
	wantAdoptedFirst(t, n, history)
}

// wantDescribed checks that the description names what the restore waits for.
func (s *suite) wantDescribed(t *testing.T, n *tenant) {
	t.Helper()
	s.eventually(t, "the description of the restore", func(ctx context.Context) error {
		out, err := s.target.Velero(ctx, "restore", "describe", n.Namespace, "--details")
		if err != nil {
			return err
		}
		for _, want := range []string{"velero.crossplane.io/2-adopt", "0 of 3", "composed resources ready to be adopted; waiting for", "its provider has not observed it yet"} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("it lacks %q:\n%s", want, out)
			}
		}

		return nil
	})
}

// wantAdoptedFirst checks the order of each XR's states: held from its creation, reconciled under
// its old revision with all that it had, released. Only then may its database be deleted.
func wantAdoptedFirst(t *testing.T, n *tenant, history *drill.History) {
	t.Helper()
	databases := history.Of("Database")
	xrs := history.Of(n.CompositeKind())
	if len(xrs) != n.size {
		t.Fatalf("there were %d XRs, not %d", len(xrs), n.size)
	}
	for name, states := range xrs {
		if !drill.Held(states[0]) || !paused(states[0]) || !pinned(states[0]) {
			t.Errorf("XR %s was not created held, paused and pinned: %v", name, states[0].GetAnnotations())
		}
		adopted := slices.IndexFunc(states, func(u *unstructured.Unstructured) bool {
			return drill.Held(u) && !paused(u) && pinned(u) && len(n.Refs(u)) == 3 && stack.HasCondition(u, "Synced", "True") == nil
		})
		released := slices.IndexFunc(states, func(u *unstructured.Unstructured) bool { return !isHeldBack(u) })
		if adopted < 0 || released < adopted {
			t.Errorf("XR %s was released (state %d) before it was reconciled with all that it had (state %d)", name, released, adopted)

			continue
		}
		for database, states := range databases {
			i := slices.IndexFunc(states, func(u *unstructured.Unstructured) bool { return u.GetDeletionTimestamp() != nil })
			if states[0].GetLabels()["crossplane.io/composite"] != name {
				continue
			}
			// A claim is released right before its XR, to which Crossplane copies the policy.
			if i < 0 || drill.Version(states[i]) < min(drill.Version(xrs[name][released]), n.claimReleased(history, name)) {
				t.Errorf("Database %s was deleted before its XR %s was released", database, name)
			}
		}
	}
}

// claimReleased returns the resource version at which the claim of an XR was no longer held. It
// returns one that is never reached if the XR has no claim.
func (n *tenant) claimReleased(history *drill.History, xr string) int64 {
	for name, states := range history.Of("Environment") {
		if !strings.HasPrefix(xr, name+"-") {
			continue
		}
		if i := slices.IndexFunc(states, func(u *unstructured.Unstructured) bool { return !isHeldBack(u) }); i >= 0 {
			return drill.Version(states[i])
		}
	}

	return math.MaxInt64
}

func paused(u *unstructured.Unstructured) bool {
	return u.GetAnnotations()["crossplane.io/paused"] == "true"
}

func pinned(u *unstructured.Unstructured) bool {
	v1, _, _ := unstructured.NestedString(u.Object, "spec", "compositionUpdatePolicy")
	v2, _, _ := unstructured.NestedString(u.Object, "spec", "crossplane", "compositionUpdatePolicy")

	return v1 == "Manual" || v2 == "Manual"
}
