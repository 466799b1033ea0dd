package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

var (
	kindJob          = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	kindLocalBucket  = schema.GroupVersionKind{Group: "cloud.m.example.org", Version: "v1alpha1", Kind: "Bucket"}
	kindLocalNetwork = schema.GroupVersionKind{Group: "cloud.m.example.org", Version: "v1alpha1", Kind: "Network"}
)

// worldsOfOwners are worlds in which an XR, or what it composes, does not come back.
func worldsOfOwners() map[string]*shape {
	return map[string]*shape{
		"jobs": {
			reason: "Velero restores no completed Job. Crossplane makes it again, and all else is adopted.",
			Scene:  drill.Scene{Count: 2, Size: 10},
			last:   runComposedJobs,
			check:  wantJobs,
		},
		"going": {
			reason:   "What an XR composes that was being deleted at the backup is held, until a user releases it.",
			Scene:    drill.Scene{Count: 2, Size: 8},
			last:     func(ctx context.Context, c *stack.Cluster, s drill.Scene) error { return deleteKept(ctx, c, s, 1) },
			restored: wantHeldThenReleased,
			check:    wantReleased,
			reports:  "Orphaned",
		},
		"stricter": {
			reason:   "What an XR composes that the target refuses is held, until a second restore brings the XR.",
			Scene:    drill.Scene{Dir: "going", Count: 2, Size: 8},
			target:   "target.yaml",
			restored: wantHeldThenRestored,
		},
		"chosen": {
			reason: "In a restore by labels what an XR composes comes before it, held, and is adopted.",
			Scene:  drill.Scene{Dir: "going", Count: 2, Size: 8, RestoreArgs: []string{"--selector", "pick=site"}},
		},
		"yields": { // The last one, since it stops a program of the source.
			reason:   "What moves up from a nested XR that is being deleted belongs to the outer one.",
			Scene:    drill.Scene{Count: 2, Size: 6},
			target:   "target.yaml",
			last:     moveUp,
			restored: func(t *testing.T, s *suite, n *shape) { t.Helper(); awaitEnd(t, s, n.Name) },
			check:    wantMoved,
		},
	}
}

// siteKind returns a kind of a scene's XRs.
func siteKind(scene, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: scene + ".example.org", Version: "v1alpha1", Kind: kind}
}

func nameOf(s drill.Scene, n int) string { return fmt.Sprintf("%s-%02d", s.Name, n) }

// runComposedJobs writes what a Job controller would write, which the stack lacks.
func runComposedJobs(ctx context.Context, c *stack.Cluster, s drill.Scene) error {
	jobs, err := list(ctx, c, kindJob, s.Name, "")
	if err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "lastTransitionTime": now}
	}
	status := map[string]map[string]any{
		"complete": {
			"startTime": now, "completionTime": now, "succeeded": 1, "uncountedTerminatedPods": map[string]any{},
			"conditions": []any{condition("SuccessCriteriaMet"), condition("Complete")},
		},
		"failed": {
			"startTime": now, "failed": 1, "uncountedTerminatedPods": map[string]any{}, "conditions": []any{condition("FailureTarget"), condition("Failed")},
		},
		"running": {"startTime": now, "active": 1},
	}
	var errs []error
	for _, u := range jobs {
		errs = append(errs, drill.Patch(ctx, c, &u, map[string]any{"status": status[roleOf(&u)]}, "status"))
	}

	return errors.Join(errs...)
}

// roleOf returns the name of a composed resource in its Composition.
func roleOf(u *unstructured.Unstructured) string {
	return u.GetAnnotations()["crossplane.io/composition-resource-name"]
}

// wantJobs expects only the completed Jobs to be others, and all to belong to their XRs.
func wantJobs(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	jobs, err := list(t.Context(), s.target, kindJob, n.Name, "")
	must(t, err)
	roles := map[string]int{}
	for _, u := range jobs {
		id := "Job.batch " + n.Name + "/" + u.GetName()
		_, before := n.picture[id]
		if before == (roleOf(&u) == "complete") {
			t.Errorf("%s\n%s of %s existed before: %t", n.reason, id, roleOf(&u), before)
		}
		if owners := after[id].Owners; len(owners) != 1 || !strings.Contains(owners[0], "Release") || strings.Contains(owners[0], "dead") {
			t.Errorf("%s belongs to %v", id, owners)
		}
		roles[roleOf(&u)]++
	}
	for _, role := range []string{"complete", "failed", "running"} {
		if roles[role] != n.Count {
			t.Errorf("%s\nthere are %d %s Jobs, not %d", n.reason, roles[role], role, n.Count)
		}
	}
	for name, l := range n.picture {
		if strings.HasPrefix(name, "Bucket") {
			wantSame(t, n, drill.Picture{name: l}, drill.Picture{name: after[name]})
		}
	}
	if details := s.details(t, n.Name); !strings.Contains(details, "[MadeAgain]") {
		t.Errorf("the restore does not name what Velero left out:\n%s", details)
	}
}

// deleteKept deletes the n-th XR, which another finalizer keeps.
func deleteKept(ctx context.Context, c *stack.Cluster, s drill.Scene, n int) error {
	u, err := get(ctx, c, siteKind(s.Name, "Site"), s.Name, nameOf(s, n))
	if err != nil {
		return err
	}
	if err := drill.Patch(ctx, c, u, map[string]any{"metadata": map[string]any{"finalizers": append(u.GetFinalizers(), "example.org/keep")}}); err != nil {
		return err
	}
	sites, err := c.Resource(ctx, u.GroupVersionKind(), s.Name)
	if err != nil {
		return err
	}

	return sites.Delete(ctx, u.GetName(), metav1.DeleteOptions{})
}

// awaitEnd waits until a restore has ended and returns its details.
func awaitEnd(t *testing.T, s *suite, name string) (phase, details string) {
	t.Helper()
	r, err := drill.AwaitRestore(t.Context(), s.target, name)
	must(t, err)

	return drill.Phase(r), s.details(t, name)
}

// wantHeld expects the restore to have failed in part, and what the Sites composed to be held,
// without an owner and named. It returns the names of what is held.
func wantHeld(t *testing.T, s *suite, n *shape, sites ...int) (held []string) {
	t.Helper()
	phase, details := awaitEnd(t, s, n.Name)
	if phase != "PartiallyFailed" {
		t.Errorf("%s\nthe restore is %s:\n%s", n.reason, phase, details)
	}
	for _, kind := range []schema.GroupVersionKind{kindLocalNetwork, siteKind(n.Name, "Store")} {
		for _, site := range sites {
			all, err := list(t.Context(), s.target, kind, n.Name, "crossplane.io/composite="+nameOf(n.Scene, site))
			must(t, err)
			if len(all) != 1 {
				t.Fatalf("%s\nthere are %d of %s", n.reason, len(all), kind)
			}
			u := all[0]
			if !paused(&u) || !drill.Held(&u) || len(u.GetOwnerReferences()) > 0 {
				t.Errorf("%s\n%s %s is not held: %v, owners %v", n.reason, u.GetKind(), u.GetName(), u.GetAnnotations(), u.GetOwnerReferences())
			}
			if !strings.Contains(details, u.GetName()+": ") || !strings.Contains(details, "[XRNotRestored]") {
				t.Errorf("%s\nthe restore does not name %s:\n%s", n.reason, u.GetName(), details)
			}
			held = append(held, n.Name+"/"+u.GetName())
		}
	}

	return held
}

func wantHeldThenReleased(t *testing.T, s *suite, n *shape) {
	t.Helper()
	for _, name := range wantHeld(t, s, n, 1) {
		if r := command(t, s.target, "release", "--force", "--yes", name); r.code != 0 {
			t.Errorf("release %s: %+v", name, r)
		}
	}
}

// wantReleased expects what had lost its XR to be as before without an owner, and the rest to be as
// before.
func wantReleased(t *testing.T, _ *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	at := " " + n.Name + "/" + nameOf(n.Scene, 1)
	before := drill.Picture{}
	for name, l := range n.picture {
		if l.Labels["crossplane.io/composite"] == nameOf(n.Scene, 1) && !strings.HasPrefix(name, "Bucket") {
			l.Owners, l.Managers = nil, after[name].Managers
		}
		before[name] = l
	}
	delete(before, "Site."+n.Name+".example.org"+at)
	delete(after, "Site"+at) // An instance that is not there.
	wantSame(t, n, before, after)
}

// wantHeldThenRestored relaxes the target, and restores again.
func wantHeldThenRestored(t *testing.T, s *suite, n *shape) {
	t.Helper()
	wantHeld(t, s, n, 0, 1)
	must(t, n.Cure(t.Context(), s.target))
	again := n.Name + "-again"
	s.eventually(t, "the second restore of "+n.Name, func(ctx context.Context) error {
		_, err := s.target.Velero(ctx, "restore", "create", again, "--from-backup", n.Name)

		return err
	})
	s.awaitCompleted(t, again)
	must(t, n.AwaitReady(t.Context(), s.target))
}

// moveUp moves what a nested XR composes to the outer one, as users do who want to keep it.
func moveUp(ctx context.Context, c *stack.Cluster, s drill.Scene) error {
	inners, err := list(ctx, c, siteKind(s.Name, "Inner"), s.Name, "")
	if err != nil {
		return err
	}
	for _, u := range inners {
		if err := drill.Patch(ctx, c, &u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"crossplane.io/paused": "true"}}}); err != nil {
			return err
		}
	}
	// Crossplane v2.3 deletes in the foreground: the garbage collector would delete the bucket first.
	if err := c.Stop(stack.ControllerManager); err != nil {
		return err
	}
	if err := s.Cure(ctx, c); err != nil {
		return err
	}

	return c.Wait(ctx, time.Minute, "the nested XRs of "+s.Name+" to be deleted", func(ctx context.Context) error {
		inners, err := list(ctx, c, siteKind(s.Name, "Inner"), s.Name, "")
		for _, u := range inners {
			if u.GetDeletionTimestamp() == nil {
				err = errors.Join(err, fmt.Errorf("%s is not", u.GetName()))
			}
		}

		return err
	})
}

// wantMoved expects each bucket to belong to its outer XR, and to be reconciled.
func wantMoved(t *testing.T, s *suite, n *shape, _ drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	buckets, err := list(t.Context(), s.target, kindLocalBucket, n.Name, "")
	must(t, err)
	if len(buckets) != n.Count {
		t.Errorf("%s\nthere are %d buckets, not %d", n.reason, len(buckets), n.Count)
	}
	for _, u := range buckets {
		owner := metav1.GetControllerOf(&u)
		if owner == nil || owner.Kind != "Outer" || paused(&u) || drill.Held(&u) {
			t.Errorf("%s\n%s belongs to %v, with %v", n.reason, u.GetName(), owner, u.GetAnnotations())

			continue
		}
		xr, err := get(t.Context(), s.target, siteKind(n.Name, "Outer"), n.Name, owner.Name)
		must(t, err)
		if xr.GetUID() != owner.UID {
			t.Errorf("%s belongs to a dead XR", u.GetName())
		}
	}
}
