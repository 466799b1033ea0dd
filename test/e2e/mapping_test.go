package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const annotationClone = "velero.crossplane.io/clone"

// A clone is a namespace that is restored beside itself, into another one.
type clone struct {
	name   string
	reason string
	// choice is the setting on the Restore; none if empty.
	choice string
	// want is the choice that takes effect.
	want string

	tenant *tenant
}

// clonesOf returns the cases by namespace.
func clonesOf(version stack.Version) map[string]*clone {
	clones := map[string]*clone{
		"held": {
			name: "CloneHeld", want: "hold",
			reason: "Two MRs would manage one external resource, so copies are held unless a setting chooses what they do.",
		},
		"observed": {
			name: "CloneObserved", choice: "observe", want: "observe",
			reason: "Copies that only observe do no harm.",
		},
		"fresh": {
			name: "CloneNew", choice: "new", want: "new",
			reason: "A copy can have external resources of its own.",
		},
	}
	if version == stack.V1 {
		clones["observed"].want = "hold"
		clones["observed"].reason = "The MRs of a claim are cluster-scoped, so there can be no copies that look at the same external resources."
	}

	return clones
}

// copied is the tenant that is restored beside the original.
func (c *clone) copied() *tenant {
	n := *c.tenant
	n.Prefix, n.Namespace = n.Namespace, n.Namespace+"-copy"

	return &n
}

func (s *suite) startClone(t *testing.T, c *clone) {
	t.Helper()
	n := c.copied()
	args := []string{"--namespace-mappings", c.tenant.Namespace + ":" + n.Namespace}
	if c.choice != "" {
		args = append(args, "--annotations", annotationClone+"="+c.choice)
	}
	s.start(t, n, n.Namespace, args...)
}

func (s *suite) testClone(t *testing.T, c *clone) {
	n := c.copied()
	switch c.want {
	case "hold":
		s.wantPhase(t, n.Namespace, "PartiallyFailed")
		details := s.details(t, n.Namespace)
		for i := range c.tenant.size {
			wantMessage(t, "the details of the restore", details, n.Namespace+"/"+n.Name(i), "original", annotationClone, "observe", "new", "[CopyOfAnother]")
		}
		s.wantHeldCopies(t, n)
	case "observe":
		s.wantPhase(t, n.Namespace, "Completed")
		s.wantObserving(t, n)
	case "new":
		s.wantPhase(t, n.Namespace, "Completed")
		s.wantOwnTree(t, c, n)

		return
	}
	s.testUntouched(t, c)
	must(t, n.DeleteNamespace(t.Context(), s.target))
}

// testUntouched checks that the original is sound, and that its external resources are unchanged.
func (s *suite) testUntouched(t *testing.T, c *clone) {
	s.wantSound(t, c.tenant)
	changes, err := s.cloud.Journal(t.Context(), c.tenant.before.Seq, api.Create, api.Update, api.Delete)
	must(t, err)
	for _, e := range changes {
		if c.tenant.before.External[e.ID] {
			t.Errorf("%s The cloud got the call %s %s %s by %s", c.reason, e.Op, e.Kind, e.ID, e.ManagedBy)
		}
	}
}

// wantHeldCopies checks that no controller reconciles the copies, and that they can be deleted.
func (s *suite) wantHeldCopies(t *testing.T, n *tenant) {
	t.Helper()
	copies, err := n.Instances(t.Context(), s.target)
	must(t, err)
	if len(copies) != n.size {
		t.Errorf("there are %d copies of %d", len(copies), n.size)
	}
	if s.version == stack.V2 {
		mrs, err := n.Managed(t.Context(), s.target)
		must(t, err)
		if len(mrs) != 3*n.size {
			t.Errorf("there are copies of %d MRs of %d", len(mrs), 3*n.size)
		}
		copies = append(copies, mrs...)
	}
	for _, u := range copies {
		if !paused(&u) || !drill.Held(&u) || slices.ContainsFunc(u.GetFinalizers(), isCrossplanes) {
			t.Errorf("the copy %s %s is not held: annotations %v, finalizers %v", u.GetKind(), u.GetName(), u.GetAnnotations(), u.GetFinalizers())
		}
	}
}

func isCrossplanes(finalizer string) bool { return strings.Contains(finalizer, "crossplane.io") }

// wantObserving checks that the copies of MRs observe the external resources of the originals.
func (s *suite) wantObserving(t *testing.T, n *tenant) {
	t.Helper()
	xrs, err := n.Composites(t.Context(), s.target)
	must(t, err)
	for _, u := range xrs {
		if !paused(&u) || !drill.Held(&u) {
			t.Errorf("the copy of XR %s is not held: %v", u.GetName(), u.GetAnnotations())
		}
	}
	mrs, err := n.Managed(t.Context(), s.target)
	must(t, err)
	if len(xrs) != n.size || len(mrs) != 3*n.size {
		t.Errorf("there are copies of %d XRs and %d MRs", len(xrs), len(mrs))
	}
	for _, u := range mrs {
		policies, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "managementPolicies")
		if diff := cmp.Diff([]string{"Observe"}, policies); diff != "" {
			t.Errorf("the copy of %s %s may do more than observe: %s", u.GetKind(), u.GetName(), diff)
		}
		if err := stack.HasCondition(&u, "Synced", "True"); err != nil {
			t.Error(err)
		}
		if id := u.GetAnnotations()["crossplane.io/external-name"]; !n.before.External[id] {
			t.Errorf("the copy of %s %s observes %q", u.GetKind(), u.GetName(), id)
		}
	}
}

// wantOwnTree checks that each copy created its own external resources, once.
func (s *suite) wantOwnTree(t *testing.T, c *clone, n *tenant) {
	t.Helper()
	s.settle(t, n)
	now, err := n.Record(t.Context(), s.target, s.cloud)
	must(t, err)
	for slot, holder := range now.Slots {
		if n.before.External[holder.ExternalName] || !now.External[holder.ExternalName] {
			t.Errorf("%s The %s of the copy %s is %q", c.reason, slot.Resource, slot.Instance, holder.ExternalName)
		}
	}
	got, err := c.tenant.Compare(t.Context(), s.target, s.cloud, c.tenant.before)
	must(t, err)
	all := 3 * n.size
	// Each new external resource is a second one for its slot.
	if diff := cmp.Diff(drill.Outcome{Creates: all, Duplicates: all, Adopted: all, Total: all}, got); diff != "" {
		t.Errorf("%s -want, +got:\n%s", c.reason, diff)
	}
	if len(now.Slots) != all {
		t.Errorf("the copies have %d composed resources, not %d", len(now.Slots), all)
	}
	s.wantNothingLeft(t, n)
}

// testCloneInvalid checks that an unknown choice is not guessed at: the copies do nothing.
func (s *suite) testCloneInvalid(t *testing.T, n *tenant) {
	to := *n
	to.Prefix, to.Namespace = n.Namespace, n.Namespace+"-invalid"
	s.start(t, &to, to.Namespace, "--namespace-mappings", n.Namespace+":"+to.Namespace, "--annotations", annotationClone+"=foo")
	s.wantPhase(t, to.Namespace, "PartiallyFailed")
	wantMessage(t, "the details of the restore", s.details(t, to.Namespace), annotationClone, "foo")
	copies, err := to.Instances(t.Context(), s.target)
	must(t, err)
	if len(copies) != n.size {
		t.Errorf("there are %v", names(copies))
	}
	for _, u := range copies {
		if !paused(&u) || markOf(&u) == "" {
			t.Errorf("%s is not held", u.GetName())
		}
	}
}

// renamespaced returns wishes in which each reference into one namespace points into another one.
func renamespaced(wishes map[string]any, from, to string) map[string]any {
	led := map[string]any{}
	for key, value := range wishes {
		switch v := value.(type) {
		case map[string]any:
			led[key] = renamespaced(v, from, to)
		case map[string]string:
			led[key] = maps.Clone(v)
			if v["crossplane.io/claim-namespace"] == from {
				led[key].(map[string]string)["crossplane.io/claim-namespace"] = to //nolint:forcetypeassert // It was just cloned.
			}
		case string:
			led[key] = value
			if key == "namespace" && v == from {
				led[key] = to
			}
		default: // A list of references to cluster-scoped objects or to objects of the XR's own namespace.
			led[key] = value
		}
	}

	return led
}
