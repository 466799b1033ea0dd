package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testAloneLost is the control: the provider in another cluster does not know what it created here.
func (s *identity) testAloneLost(t *testing.T) {
	s.eventually(t, "a second database made after a restore by Velero alone, without which the other tests prove nothing", func(ctx context.Context) error {
		if n := len(s.creates(ctx, t, s.lost, s.called("Database", "lost-00"))); n != 1 {
			return fmt.Errorf("%d were made", n)
		}

		return nil
	})
}

// testAloneInFlight is the control: the provider never goes on with a pending create, and no MR
// knows what it created.
func (s *identity) testAloneInFlight(t *testing.T) {
	s.eventually(t, "the provider to refuse what was being created, without which the other tests prove nothing", func(ctx context.Context) error {
		mrs := s.managed(ctx, t, s.target, "pending")
		if len(mrs) != 1 {
			return fmt.Errorf("there are %v", names(mrs))
		}

		return wantStuck(&mrs[0])
	})
}

// leftOut returns, by scene, how many MRs a function leaves out when Velero alone restores it.
func (s *identity) leftOut() map[string]int {
	left := map[string]int{"dropped": 2, "uninformed": 1}
	maps.DeleteFunc(left, func(scene string, _ int) bool { return s.scenes[scene] == nil })

	return left
}

// givenUp returns the MRs that an XR has removed: they are being deleted. Since v2.4 they are only
// unlisted: Crossplane deletes nothing that the XR does not control.
func (s *identity) givenUp(ctx context.Context, t *testing.T, scene string) []unstructured.Unstructured {
	t.Helper()
	listed := map[string]bool{}
	if s.version == stack.V24 {
		for _, u := range s.composites(t, scene) {
			refs, _, err := unstructured.NestedSlice(u.Object, "spec", "crossplane", "resourceRefs")
			must(t, err)
			for _, r := range refs {
				ref, _ := r.(map[string]any)
				listed[fmt.Sprint(ref["kind"], "/", ref["name"])] = true
			}
		}
	}

	return slices.DeleteFunc(s.managed(ctx, t, s.target, scene), func(u unstructured.Unstructured) bool {
		return (s.version != stack.V24 && u.GetDeletionTimestamp() == nil) || listed[u.GetKind()+"/"+u.GetName()]
	})
}

// testAloneGated is the control: what the function left out is deleted in the cloud as soon as its
// provider runs. Since v2.4 it is orphaned instead, and created again when the gate opens. The gate
// of an EnvironmentConfig does not open.
func (s *identity) testAloneGated(t *testing.T) {
	anew := map[string]int{"dropped": 2}
	s.eventually(t, "what the function left out to be lost in the cloud, without which the other tests prove nothing", func(ctx context.Context) error {
		for scene, want := range s.leftOut() {
			deleted := s.entries(ctx, t, s.lost, "", api.Delete)
			deleted = slices.DeleteFunc(deleted, func(e api.Entry) bool { return !s.scenes[scene].ledger.External[string(e.Kind)+" "+e.ID] })
			if s.version == stack.V24 {
				made, left := s.creates(ctx, t, s.lost, ", "+scene+"/"), s.givenUp(ctx, t, scene)
				if len(made) != anew[scene] || len(left) != want || len(deleted) > 0 {
					return fmt.Errorf("of %d of %s were created again %v, and deleted %v; orphaned are %v", want, scene, made, deleted, names(left))
				}

				continue
			}
			if len(deleted) != want {
				return fmt.Errorf("%d of %d of %s were: %v", len(deleted), want, scene, deleted)
			}
		}

		return nil
	})
}

// called returns the part of a caller's name that identifies an MR of a scene.
func (s *identity) called(kind, name string) string {
	if s.version == stack.V1 {
		return ", " + kind + ", " + name
	}
	scene, _, _ := strings.Cut(name, "-")

	return ", " + kind + ", " + scene + "/" + name
}

// testGatedBefore checks that XRs are held with their status while their provider is down.
func (s *identity) testGatedBefore(t *testing.T) {
	for _, u := range s.composites(t, "gated") {
		if endpoint, _, _ := unstructured.NestedString(u.Object, "status", "endpoint"); endpoint == "" || !paused(&u) || !drill.Held(&u) {
			t.Errorf("%s XR %s has the status %v, annotations %v", s.scenes["gated"].reason, u.GetName(), u.Object["status"], u.GetAnnotations())
		}
	}
	mrs := s.managed(t.Context(), t, s.target, "gated")
	if len(mrs) != 3 {
		t.Errorf("there are %v", names(mrs))
	}
	s.uids = map[string]types.UID{}
	for _, u := range mrs {
		s.uids[u.GetKind()+"/"+u.GetName()] = u.GetUID()
	}
}

// testGated checks that the MRs that the gate could have closed on are the restored ones, and were
// not created again.
func (s *identity) testGated(t *testing.T, since int64) {
	s.testSame(t, s.scenes["gated"], since)
	uids := map[string]types.UID{}
	for _, u := range s.managed(t.Context(), t, s.target, "gated") {
		uids[u.GetKind()+"/"+u.GetName()] = u.GetUID()
	}
	if diff := cmp.Diff(s.uids, uids); diff != "" {
		t.Errorf("%s UIDs: -restored, +later:\n%s", s.scenes["gated"].reason, diff)
	}
}

// composites returns the XRs of a scene in the target.
func (s *identity) composites(t *testing.T, scene string) []unstructured.Unstructured {
	t.Helper()
	kind := "Site"
	if s.version == stack.V1 {
		kind = "XSite"
	}
	all, err := list(t.Context(), s.target, schema.GroupVersionKind{Group: "identity.example.org", Version: "v1alpha1", Kind: kind}, scene, "")
	must(t, err)
	all = slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return !strings.HasPrefix(u.GetName(), scene+"-") })
	if len(all) != 1 {
		t.Errorf("there are %v of %s", names(all), scene)
	}

	return all
}

// testObservedFirstBefore checks that MRs only observe while their provider is down.
func (s *identity) testObservedFirstBefore(t *testing.T) {
	mrs := s.managed(t.Context(), t, s.target, "first")
	if len(mrs) != 3 {
		t.Errorf("there are %v", names(mrs))
	}
	for _, u := range mrs {
		if diff := cmp.Diff([]any{"Observe"}, policies(&u)); diff != "" {
			t.Errorf("%s %s %s: -want, +got:\n%s", s.scenes["first"].reason, u.GetKind(), u.GetName(), diff)
		}
	}
}

func policies(u *unstructured.Unstructured) []any {
	p, _, _ := unstructured.NestedSlice(u.Object, "spec", "managementPolicies")

	return p
}

// restoreOf returns the name of the restore that has a scene.
func (s *identity) restoreOf(scene string) string {
	switch {
	case s.program != stack.CloudProvider:
	case slices.Contains([]string{"proven", "gated", "kept"}, scene):
		return "sound"
	case slices.Contains([]string{"arn", "killed"}, scene):
		return "held"
	}

	return scene
}

// testSame waits until every MR was reconciled since an entry of the cloud's journal. It checks
// that a scene is what it was, with the right external-names, and that nothing was written to the
// cloud.
func (s *identity) testSame(t *testing.T, n *shape, since int64) {
	ctx := t.Context()
	s.awaitCompleted(t, s.restoreOf(n.Name))
	must(t, n.AwaitReady(ctx, s.target))
	s.awaitReads(t, n, since)
	after, err := n.Picture(ctx, s.target)
	must(t, err)
	want := s.completed(t, n.picture)
	for key, l := range want {
		if slices.ContainsFunc(n.mended, func(name string) bool { return strings.HasSuffix(key, name) }) {
			l.Managers = after[key].Managers.Without("velero")
			want[key] = l
		}
	}
	wantSame(t, n, want, after)
	s.wantUnwritten(t, n)
	if t.Failed() {
		t.Log(drill.Problems(ctx, s.target, s.restoreOf(n.Name)))
	}
}

// wantUnwritten checks that nothing was written to the cloud for a scene since the source was lost.
func (s *identity) wantUnwritten(t *testing.T, n *shape) {
	t.Helper()
	for _, e := range s.entries(t.Context(), t, s.lost, "", api.Create, api.Update, api.Delete) {
		if strings.Contains(e.ManagedBy, n.Name+"-00") || n.ledger.External[string(e.Kind)+" "+e.ID] {
			t.Errorf("%s The cloud has logged a call to %s %s %s by %s of %s", n.reason, e.Op, e.Kind, e.ID, e.ManagedBy, e.Cluster)
		}
	}
}

// completed returns a picture in which each MR has the external-name that the cloud has.
func (s *identity) completed(t *testing.T, p drill.Picture) drill.Picture {
	t.Helper()
	resources, err := s.cloud.List(t.Context())
	must(t, err)
	p = maps.Clone(p)
	for key, l := range p {
		kind, name, _ := strings.Cut(key, " ")
		if kind, group, _ := strings.Cut(kind, "."); s.manages(group) && l.Annotations[externalName] == "" {
			l.Annotations = maps.Clone(l.Annotations)
			for _, r := range resources {
				if strings.Contains(r.CreatedBy.ManagedBy, ", "+kind+", "+name+", ") {
					l.Annotations[externalName] = r.ID
				}
			}
			p[key] = l
		}
	}

	return p
}

// testKept checks that an MR has the external-name and the policies that it had.
func (s *identity) testKept(t *testing.T, since int64, resource, external string, want []any) {
	n := s.scenes["kept"]
	s.testSame(t, n, since)
	for _, u := range s.managed(t.Context(), t, s.target, "kept") {
		if u.GetAnnotations()["crossplane.io/composition-resource-name"] != resource {
			continue
		}
		if diff := cmp.Diff(want, policies(&u)); diff != "" || u.GetAnnotations()[externalName] != external {
			t.Errorf("%s %s has the external-name %q; policies: -want, +got:\n%s", n.reason, u.GetName(), u.GetAnnotations()[externalName], diff)
		}

		return
	}
	t.Errorf("there is no %s", resource)
}

// wantHeld waits until an MR of a scene is held for a reason with all of these words, and the
// details of the restore have them too.
func (s *identity) wantHeld(t *testing.T, restore, scene, kind string, words ...string) *unstructured.Unstructured {
	t.Helper()
	var held *unstructured.Unstructured
	s.eventually(t, "the restore to report the hold", func(ctx context.Context) error {
		held = nil
		for _, u := range s.managed(ctx, t, s.target, scene) {
			if u.GetKind() == kind && hasAll(u.GetAnnotations()[annotationHold], words) {
				held = &u
			}
		}
		if held == nil {
			return fmt.Errorf("none is held for %q", words)
		}
		details := s.details(t, restore)
		if linesWith(details, append(words, held.GetName())...) == 0 {
			return fmt.Errorf("no line has all of %q and %s:\n%s", words, held.GetName(), details)
		}

		return nil
	})
	if !paused(held) && !cmp.Equal([]any{"Observe"}, policies(held)) {
		t.Errorf("%s %s is neither paused nor does it only observe", held.GetKind(), held.GetName())
	}
	s.wantUnwritten(t, s.scenes[scene])

	return held
}

// testInFlight checks that an MR with a pending create is held until a user sets its external-name.
// An MR of an asynchronous kind does not even have the annotation of a pending create.
func (s *identity) testInFlight(t *testing.T) {
	n := s.scenes["flight"]
	pending := s.wantHeld(t, "flight", "flight", s.announced, "being created", externalName, createPending)
	unknown := s.wantHeld(t, "flight", "flight", s.silent, "no external-name", externalName)
	if xr := s.composites(t, "flight")[0]; !paused(&xr) || !drill.Held(&xr) {
		t.Errorf("%s Its XR is not held: %v", n.reason, xr.GetAnnotations())
	}
	for _, u := range []*unstructured.Unstructured{pending, unknown} {
		made := s.creates(t.Context(), t, 0, s.called(u.GetKind(), u.GetName()))
		if len(made) != 1 {
			t.Fatalf("the cloud made %v", made)
		}
		annotations := map[string]any{externalName: made[0].ID}
		if u == pending {
			annotations[createPending] = nil
		}
		must(t, drill.Patch(t.Context(), s.target, u, map[string]any{"metadata": map[string]any{"annotations": annotations}}))
	}
	for key, l := range n.picture {
		if strings.HasSuffix(key, pending.GetName()) {
			delete(l.Annotations, createPending)
		}
	}
	n.mended = append(n.mended, pending.GetName(), unknown.GetName())
	s.testSame(t, n, s.seq(t))
}

// testNotTheName checks that an id does not become the external-name where that would be wrong. The
// reason of the hold has the id.
func (s *identity) testNotTheName(t *testing.T, kind, id string) {
	held := s.wantHeld(t, s.restoreOf("arn"), "arn", kind, "no external-name", id, externalName)
	if name, ok := held.GetAnnotations()[externalName]; ok {
		t.Errorf("%s It is %q", s.scenes["arn"].reason, name)
	}
	s.wantGivenUp(t, "arn", kind)
}

// testObservedGone checks that an external resource that no longer exists is reported, and not
// created again.
func (s *identity) testObservedGone(t *testing.T, kind string) {
	held := s.wantHeld(t, "gone", "gone", kind, "only observes")
	if diff := cmp.Diff([]any{"Observe"}, policies(held)); diff != "" {
		t.Errorf("%s -want, +got:\n%s", s.scenes["gone"].reason, diff)
	}
	wantMessage(t, "the details of the restore", s.details(t, "gone"), held.GetName(), "does not exist", "managementPolicies")
}

// wantGivenUp waits until the restore has timed out, and checks that the hold is still on.
func (s *identity) wantGivenUp(t *testing.T, scene, kind string) {
	t.Helper()
	s.wantPhase(t, s.restoreOf(scene), "PartiallyFailed")
	held := slices.DeleteFunc(s.managed(t.Context(), t, s.target, scene), func(u unstructured.Unstructured) bool {
		_, ok := u.GetAnnotations()[annotationHold]

		return !ok || !paused(&u)
	})
	if len(held) != 1 || held[0].GetKind() != kind {
		t.Errorf("when the restore has ended, there is no hold but on %v", names(held))
	}
	s.wantUnwritten(t, s.scenes[scene])
}

// testProviderKilled checks that an MR is held if the provider was killed during its create,
// whatever the provider has done since.
func (s *identity) testProviderKilled(t *testing.T) {
	s.wantHeld(t, s.restoreOf("killed"), "killed", s.announced, "being created", externalName, createPending)
	s.wantGivenUp(t, "killed", s.announced)
	for _, u := range s.managed(t.Context(), t, s.target, "killed") {
		if u.GetKind() == s.silent {
			must(t, stack.HasCondition(&u, "Ready", "True"))
		}
	}
}
