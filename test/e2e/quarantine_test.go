package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const holdAll = "velero.crossplane.io/hold=all"

// bucketsAlone are MRs without an XR. The one named new is backed up before it is observed.
const bucketsAlone = `
apiVersion: cloud.m.example.org/v1alpha1
kind: Bucket
metadata:
  namespace: away
  name: %s
spec:
  forProvider:
    region: eu-central
`

// testQuarantine restores while the source and its provider run. The first restore has no
// quarantine and shows that two providers then manage one external resource; the second has one.
func testQuarantine(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	ctx := t.Context()
	free := s.few(t, s.source, drill.Platform{Namespace: "free"}, 1)
	away := s.few(t, s.source, drill.Platform{Namespace: "away", Without: []string{"database"}}, 3)
	s.settings(t, away)
	s.backUp(t, s.source, free)
	s.remember(t, s.source, away)
	s.backUpNew(t, away)
	s.target = s.cluster(t, "target")
	for _, n := range []*tenant{free, away} {
		must(t, n.Compose(ctx, s.target))
	}

	t.Run("Free", func(t *testing.T) { s.testWithout(t, free) })
	since := s.last(t)
	t.Run("Away", func(t *testing.T) { s.testAway(t, away) })
	t.Run("Nothing", func(t *testing.T) { s.testNothingAsked(t, free, away, since) })
	must(t, s.source.Destroy())
	t.Run("Released", func(t *testing.T) { s.testReleased(t, away) })
}

// backUpNew backs up with an MR that was just created.
func (s *suite) backUpNew(t *testing.T, n *tenant) {
	t.Helper()
	ctx := t.Context()
	if s.version == stack.V1 {
		must(t, n.Backup(ctx, s.source, n.Namespace))

		return
	}
	must(t, s.source.Apply(ctx, fmt.Appendf(nil, bucketsAlone, "alone")))
	s.awaitAlone(t, s.source, "alone")
	must(t, s.source.Stop(stack.CloudProvider))
	must(t, s.source.Apply(ctx, fmt.Appendf(nil, bucketsAlone, "new")))
	must(t, n.Backup(ctx, s.source, n.Namespace))
	must(t, s.source.Start(ctx, stack.CloudProvider))
	s.awaitAlone(t, s.source, "new")
}

func (s *suite) awaitAlone(t *testing.T, c *stack.Cluster, name string) {
	t.Helper()
	must(t, c.Wait(t.Context(), patience, "Bucket "+name, func(ctx context.Context) error {
		u, err := get(ctx, c, bucketKind, "away", name)
		if err != nil {
			return err
		}

		return stack.HasCondition(u, "Ready", "True")
	}))
}

var bucketKind = schema.GroupVersionKind{Group: "cloud.m.example.org", Version: "v1alpha1", Kind: "Bucket"}

// last returns the number of the last entry of the cloud's journal.
func (s *suite) last(t *testing.T) int64 {
	t.Helper()
	entries, err := s.cloud.Journal(t.Context(), 0)
	must(t, err)

	return entries[len(entries)-1].Seq
}

// calls returns the calls of a cluster to the cloud for a tenant.
func (s *suite) calls(ctx context.Context, c *stack.Cluster, n *tenant, since int64, ops ...api.Op) ([]api.Entry, error) {
	entries, err := s.cloud.Journal(ctx, since, ops...)

	return slices.DeleteFunc(entries, func(e api.Entry) bool {
		return e.Cluster != c.Name() || !strings.Contains(e.ManagedBy, ", "+n.Namespace)
	}), err
}

// awaitCall waits until a cluster has made such a call for a tenant.
func (s *suite) awaitCall(t *testing.T, c *stack.Cluster, n *tenant, since int64, op api.Op) {
	t.Helper()
	s.eventually(t, fmt.Sprintf("cluster %s to %s for %s", c.Name(), op, n.Namespace), func(ctx context.Context) error {
		calls, err := s.calls(ctx, c, n, since, op)
		if err == nil && len(calls) == 0 {
			err = errors.New("it did not")
		}

		return err
	})
}

// change changes the spec of the last instance in the source.
func (s *suite) change(t *testing.T, n *tenant) {
	t.Helper()
	instances, err := n.Instances(t.Context(), s.source)
	must(t, err)
	for _, u := range instances {
		if u.GetName() == n.Name(n.size-1) {
			must(t, drill.Patch(t.Context(), s.source, &u, map[string]any{"spec": map[string]any{"region": "eu-west"}}))
		}
	}
}

// testWithout is the control: without a quarantine the target undoes a change of the source.
func (s *suite) testWithout(t *testing.T, n *tenant) {
	s.restore(t, n, n.Namespace)
	since := s.last(t)
	s.awaitCall(t, s.target, n, since, api.Read)
	s.change(t, n)
	s.awaitCall(t, s.source, n, since, api.Update)
	s.awaitCall(t, s.target, n, since, api.Update)
}

// testAway restores into quarantine, twice, and checks what the commands report.
func (s *suite) testAway(t *testing.T, n *tenant) {
	s.restore(t, n, n.Namespace, "--annotations", holdAll)
	wantMessage(t, "the details of the restore", s.details(t, n.Namespace), "quarantine", "release --restore velero/"+n.Namespace)
	s.wantAway(t, n)
	s.restore(t, n, n.Namespace+"-again")
	s.wantAway(t, n)

	held := len(s.quarantined(t, n))
	reported := 0
	for _, p := range s.validate(t, 3, "-n", n.Namespace).Problems {
		switch {
		case p.Code == "Quarantined" && strings.HasSuffix(p.Next, "release --restore velero/"+n.Namespace):
			reported++
		case p.Code == "LeakedHold" || p.Code == "Held":
			t.Errorf("validate reports %s with the problem %s: %s", p.Object.Name, p.Code, p.Reason)
		}
	}
	if reported != held {
		t.Errorf("validate names %d of %d", reported, held)
	}
	for args, want := range map[string]string{"-n " + n.Namespace: "left-alone", "--dry-run --restore " + n.Namespace: "would-release"} {
		releases := s.released(t, strings.Fields(args)...)
		if len(releases) != held {
			t.Errorf("release %s names %d of %d", args, len(releases), held)
		}
		for _, r := range releases {
			if r["result"] != want {
				t.Errorf("release %s: %v", args, r)
			}
		}
	}
	s.wantAway(t, n)
}

// quarantined returns the objects of a tenant in the target that a controller reconciles.
func (s *suite) quarantined(t *testing.T, n *tenant) []unstructured.Unstructured {
	t.Helper()
	mrs, err := n.Managed(t.Context(), s.target)
	must(t, err)
	all := append(s.roots(t, n), mrs...)
	if s.version != stack.V1 {
		for _, name := range []string{"alone", "new"} {
			u, err := get(t.Context(), s.target, bucketKind, n.Namespace, name)
			must(t, err)
			all = append(all, *u)
		}
	}

	return all
}

// wantAway checks that everything is in quarantine.
func (s *suite) wantAway(t *testing.T, n *tenant) {
	t.Helper()
	want := len(n.before.Slots) + n.size + 2
	if s.version == stack.V1 {
		want = len(n.before.Slots) + 2*n.size
	}
	all := s.quarantined(t, n)
	if len(all) != want {
		t.Errorf("%d objects have come back, not %d: %v", len(all), want, names(all))
	}
	for _, u := range all {
		mark := u.GetAnnotations()[annotationHold]
		var h struct {
			Quarantine bool   `json:"quarantine"`
			Restore    string `json:"restore"`
		}
		if err := json.Unmarshal([]byte(mark), &h); err != nil || !h.Quarantine || h.Restore != "velero/"+n.Namespace || !paused(&u) {
			t.Errorf("%s %s is not in quarantine: %v", u.GetKind(), u.GetName(), u.GetAnnotations())
		}
	}
}

// testNothingAsked checks that the target's provider makes no call for MRs in quarantine, while it
// polls and the source's provider continues.
func (s *suite) testNothingAsked(t *testing.T, free, away *tenant, since int64) {
	for _, u := range s.quarantined(t, away) {
		s.eventually(t, "the controller of "+u.GetName()+" to see that it is paused", func(ctx context.Context) error {
			live, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
			if err != nil {
				return err
			}

			return stack.HasCondition(live, "Synced", "False")
		})
	}
	s.change(t, away)
	s.awaitCall(t, s.source, away, since, api.Update)
	// Each of these is a poll, which would reach the MRs in quarantine too.
	for range 2 {
		s.awaitCall(t, s.target, free, s.last(t), api.Read)
	}
	calls, err := s.calls(t.Context(), s.target, away, since)
	must(t, err)
	for _, e := range calls {
		t.Errorf("the target's provider was at work: %s %s %s for %s", e.Op, e.Kind, e.ID, e.ManagedBy)
	}
	s.wantAway(t, away)
}

// testReleased releases the quarantined objects in the target, now that the source is lost.
func (s *suite) testReleased(t *testing.T, n *tenant) {
	ctx := t.Context()
	all := s.quarantined(t, n)
	releases := s.released(t, "--restore", n.Namespace)
	for _, r := range releases {
		if r["result"] != "released" {
			t.Errorf("%v", r)
		}
	}
	if len(releases) != len(all) {
		t.Errorf("%d of %d are released", len(releases), len(all))
	}
	s.settle(t, n)
	s.wantSound(t, n)
	for _, u := range s.quarantined(t, n) {
		for key := range u.GetAnnotations() {
			if strings.HasPrefix(key, ours) {
				t.Errorf("%s %s still has the annotation %s", u.GetKind(), u.GetName(), key)
			}
		}
	}
	if s.version == stack.V1 {
		return
	}
	for _, name := range []string{"alone", "new"} {
		s.awaitAlone(t, s.target, name)
	}
	made, err := s.calls(ctx, s.target, n, 0, api.Create, api.Delete)
	must(t, err)
	for _, e := range made {
		t.Errorf("the target's provider had to %s %s %s for %s", e.Op, e.Kind, e.ID, e.ManagedBy)
	}
}
