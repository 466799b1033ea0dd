//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A gitChange is a change in Git that is applied while the restored objects are held.
type gitChange struct {
	*tenant

	reason string
	// prepare runs in the cluster before the change is applied. It may be nil.
	prepare func(ctx context.Context, c *stack.Cluster, n *tenant) error
	// edit changes the manifest of an instance.
	edit func(ctx context.Context, c *stack.Cluster, n *tenant, m *unstructured.Unstructured) error
	// hasWarning are in the warning about each instance. Without them there is no warning.
	tells []string
	// drops is whether the change removes the databases.
	drops bool
	// then checks the result. It may be nil.
	then func(ctx context.Context, c *stack.Cluster, n *tenant) error
}

func gitChanges() map[string]*gitChange {
	return map[string]*gitChange{
		"Composition": {
			reason: "Another Composition acts when the hold is lifted.", prepare: composeOther, edit: followOther, drops: true,
			tells: []string{"[CompositionChanged]", "its compositionRef from environments-", "kustomize-controller", "Crossplane deletes"},
		},
		"Revision": {
			reason: "So does another revision.", drops: true,
			prepare: func(ctx context.Context, c *stack.Cluster, n *tenant) error {
				return withoutDatabase(n.Platform).Compose(ctx, c)
			},
			edit:  followNewest,
			tells: []string{"[CompositionChanged]", "its compositionRevisionRef from environments-"},
			then:  func(ctx context.Context, c *stack.Cluster, n *tenant) error { return n.arePinned(ctx, c) },
		},
		"Spec": {
			reason: "A change of the spec acts when the hold is lifted.",
			edit: func(_ context.Context, _ *stack.Cluster, _ *tenant, m *unstructured.Unstructured) error {
				return unstructured.SetNestedField(m.Object, "10.99.0.0/16", "spec", "cidr")
			},
			then: func(ctx context.Context, c *stack.Cluster, n *tenant) error {
				return n.networksAre(ctx, c, "10.99.0.0/16")
			},
		},
		"XRD": {
			reason: "An XRD that changes meanwhile changes nothing of what is held.", prepare: addNote,
			edit: func(_ context.Context, _ *stack.Cluster, _ *tenant, m *unstructured.Unstructured) error {
				return unstructured.SetNestedField(m.Object, "new", "spec", "note")
			},
			then: func(ctx context.Context, c *stack.Cluster, n *tenant) error { return n.haveNotes(ctx, c) },
		},
	}
}

func TestMatrixGitChangesV2(t *testing.T) { testGitChanges(t, stack.V2) }

func TestMatrixGitChangesV1(t *testing.T) { testGitChanges(t, stack.V1) }

// testGitChanges applies changes from Git when all objects are back and held. The provider is down
// until then. The control is the same change without a restore, which acts at once.
func testGitChanges(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	s := newSuite(t, version)
	g := newGit(t)
	alone := &gitChange{tenant: s.applied(t, g, flux, drill.Platform{Namespace: "changealone"}, 2), reason: "Nothing holds it."}
	s.remember(t, s.source, alone.tenant)
	all := gitChanges()
	tenants := []*tenant{alone.tenant}
	for name, c := range all {
		c.tenant = s.applied(t, g, flux, drill.Platform{Namespace: "change" + strings.ToLower(name)}, 2)
		tenants = append(tenants, c.tenant)
	}
	for _, c := range all {
		s.backUp(t, s.source, c.tenant)
	}
	t.Run("NotHeld", func(t *testing.T) {
		alone.prepare, alone.edit = composeOther, followOther
		must(t, alone.apply(ctx, g, s.source))
		must(t, s.source.Wait(ctx, patience, "the databases to be gone", func(ctx context.Context) error { return alone.wrong(ctx, s, s.source, 2) }))
	})
	s.loseSource(t, tenants...)
	must(t, s.target.Stop(stack.CloudProvider))
	for _, c := range all {
		must(t, c.StartRestore(ctx, s.target, c.Namespace, c.Namespace))
	}
	for _, c := range all {
		must(t, drill.AwaitItems(ctx, s.target, c.Namespace))
		must(t, c.apply(ctx, g, s.target))
	}
	for name, c := range all {
		t.Run("Held"+name, func(t *testing.T) { s.testChangeWaits(t, c) })
	}
	must(t, s.target.Start(ctx, stack.CloudProvider))
	for name, c := range all {
		t.Run(name, func(t *testing.T) { s.testChangeActs(t, c) })
	}
}

// apply applies the changed manifests with Flux.
func (c *gitChange) apply(ctx context.Context, g *git, cluster *stack.Cluster) error {
	if c.prepare != nil {
		if err := c.prepare(ctx, cluster, c.tenant); err != nil {
			return err
		}
	}
	manifests := c.manifests()
	for _, m := range manifests {
		if err := c.edit(ctx, cluster, c.tenant, m); err != nil {
			return err
		}
	}

	return g.apply(ctx, cluster, flux, manifests)
}

// testChangeWaits checks that the change has no effect yet, and that a warning describes it.
func (s *suite) testChangeWaits(t *testing.T, c *gitChange) {
	ctx := t.Context()
	s.eventually(t, "the restore to name what it waits for", func(ctx context.Context) error {
		out, err := s.target.Velero(ctx, "restore", "describe", c.Namespace, "--details")
		for i := range c.size {
			words := append([]string{c.Name(i), "its provider has not observed it yet"}, c.tells...)
			if err == nil && linesWith(out, words...) == 0 {
				err = fmt.Errorf("no line has %q:\n%s", words, out)
			}
		}

		return err
	})
	xrs, err := c.Composites(ctx, s.target)
	must(t, err)
	for _, u := range xrs {
		if !drill.Held(&u) || !paused(&u) || len(c.Refs(&u)) != 3 {
			t.Errorf("%s %s is not held with all that it composes: %v", c.reason, u.GetName(), u.Object)
		}
	}
	mrs, err := c.Managed(ctx, s.target)
	must(t, err)
	for _, u := range mrs {
		if u.GetDeletionTimestamp() != nil {
			t.Errorf("%s %s is being deleted", c.reason, u.GetName())
		}
	}
}

func (s *suite) testChangeActs(t *testing.T, c *gitChange) {
	ctx := t.Context()
	s.awaitCompleted(t, c.Namespace)
	deletes := 0
	if c.drops {
		deletes = c.size
	}
	s.eventually(t, "the state that Git has", func(ctx context.Context) error {
		err := c.wrong(ctx, s, s.target, deletes)
		if err == nil && c.then != nil {
			err = c.then(ctx, s.target, c.tenant)
		}

		return err
	})
	s.settleChanged(t, c)
	must(t, c.wrong(ctx, s, s.target, deletes))
	if len(c.tells) == 0 {
		return
	}
	events, err := list(ctx, s.target, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, c.Namespace, "")
	must(t, err)
	for i := range c.size {
		if !hasWarning(events, c.Name(i), c.tells) {
			t.Errorf("%s No Event about %s has %q", c.reason, c.Name(i), c.tells)
		}
	}
}

// settleChanged waits until the remaining MRs were reconciled once more.
func (s *suite) settleChanged(t *testing.T, c *gitChange) {
	t.Helper()
	must(t, c.AwaitReady(t.Context(), s.target, c.size))
	now, err := c.Record(t.Context(), s.target, s.cloud)
	must(t, err)
	must(t, c.AwaitReads(t.Context(), s.target, s.cloud, now, now.Seq))
}

// wrong returns an error unless just that many databases were deleted, and all else is as it was.
func (c *gitChange) wrong(ctx context.Context, s *suite, cluster *stack.Cluster, deletes int) error {
	got, err := c.Compare(ctx, cluster, s.cloud, c.before)
	if err != nil {
		return err
	}
	want := drill.Outcome{Deletes: deletes, Adopted: 3*c.size - deletes, Total: 3 * c.size}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s -want, +got:\n%s", c.reason, diff)
	}
	deleted, err := s.cloud.Journal(ctx, c.before.Seq, api.Delete)
	for _, e := range deleted {
		if c.before.External[e.ID] && e.Kind != api.Database {
			err = errors.Join(err, fmt.Errorf("%s %s was deleted", e.Kind, e.ID))
		}
	}

	return err
}

func withoutDatabase(p drill.Platform) drill.Platform {
	p.Without = []string{"database"}

	return p
}

// other returns a platform with another Composition, which has no database.
func other(n *tenant) drill.Platform {
	p := withoutDatabase(n.Platform)
	p.Prefix = n.Namespace + "-other"

	return p
}

func composeOther(ctx context.Context, c *stack.Cluster, n *tenant) error {
	return other(n).Compose(ctx, c)
}

// choose sets a field in a manifest, of those that Crossplane keeps under spec.crossplane since v2.
func choose(n *tenant, m *unstructured.Unstructured, value any, path ...string) error {
	if !n.Crossplane.IsV1() {
		path = append([]string{"crossplane"}, path...)
	}

	return unstructured.SetNestedField(m.Object, value, append([]string{"spec"}, path...)...)
}

func followOther(_ context.Context, _ *stack.Cluster, n *tenant, m *unstructured.Unstructured) error {
	return choose(n, m, "environments-"+n.Namespace+"-other", "compositionRef", "name")
}

// followNewest pins an instance to the newest revision of its Composition.
func followNewest(ctx context.Context, c *stack.Cluster, n *tenant, m *unstructured.Unstructured) error {
	kind := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}
	revisions, err := list(ctx, c, kind, "", "crossplane.io/composition-name=environments-"+n.Namespace)
	if err != nil {
		return err
	}
	newest, name := int64(0), ""
	for _, r := range revisions {
		if i, _, _ := unstructured.NestedInt64(r.Object, "spec", "revision"); i > newest {
			newest, name = i, r.GetName()
		}
	}

	return errors.Join(choose(n, m, name, "compositionRevisionRef", "name"), choose(n, m, "Manual", "compositionUpdatePolicy"))
}

// arePinned returns an error if an instance or an XR is not pinned as in Git.
func (n *tenant) arePinned(ctx context.Context, c *stack.Cluster) error {
	want := n.Manifest(0)
	if err := followNewest(ctx, c, n, want); err != nil {
		return err
	}
	all, err := n.Instances(ctx, c)
	if err != nil {
		return err
	}
	xrs, err := n.Composites(ctx, c)
	path := []string{"spec", "crossplane"}
	if n.Crossplane.IsV1() {
		path = path[:1]
	}
	for _, u := range append(all, xrs...) {
		for _, field := range []string{"compositionRevisionRef", "compositionUpdatePolicy"} {
			is, _, _ := unstructured.NestedFieldNoCopy(u.Object, append(slices.Clone(path), field)...)
			should, _, _ := unstructured.NestedFieldNoCopy(want.Object, append(slices.Clone(path), field)...)
			if diff := cmp.Diff(should, is); diff != "" {
				err = errors.Join(err, fmt.Errorf("the %s of %s %s is not as in Git:\n%s", field, u.GetKind(), u.GetName(), diff))
			}
		}
	}

	return err
}

// addNote adds a field to the XRD, and waits until the API server serves it.
func addNote(ctx context.Context, c *stack.Cluster, n *tenant) error {
	name := "environments.platform.example.org"
	if n.Crossplane.IsV1() {
		name = "x" + name
	}
	xrd, err := get(ctx, c, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition"}, "", name)
	if err != nil {
		return err
	}
	versions, _, err := unstructured.NestedSlice(xrd.Object, "spec", "versions")
	if err != nil {
		return err
	}
	v, _ := versions[0].(map[string]any)
	err = unstructured.SetNestedField(v, "string", "schema", "openAPIV3Schema", "properties", "spec", "properties", "note", "type")
	if err != nil {
		return err
	}
	if err := drill.Patch(ctx, c, xrd, map[string]any{"spec": map[string]any{"versions": versions}}); err != nil {
		return err
	}

	return c.Wait(ctx, patience, "the field to be served", func(ctx context.Context) error {
		crd, err := get(ctx, c, crdKind, "", "environments.platform.example.org")
		if err != nil {
			return err
		}
		if served, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions"); !strings.Contains(fmt.Sprint(served), "note:map") {
			return errors.New("it is not")
		}

		return nil
	})
}

// haveNotes returns an error if an instance or an XR lacks the field that only the new XRD allows.
func (n *tenant) haveNotes(ctx context.Context, c *stack.Cluster) error {
	all, err := n.Instances(ctx, c)
	if err != nil {
		return err
	}
	xrs, err := n.Composites(ctx, c)
	for _, u := range append(all, xrs...) {
		if note, _, _ := unstructured.NestedString(u.Object, "spec", "note"); note != "new" {
			err = errors.Join(err, fmt.Errorf("%s %s has the note %q", u.GetKind(), u.GetName(), note))
		}
	}

	return err
}

// networksAre returns an error if a Network does not have the cidr that Git has now.
func (n *tenant) networksAre(ctx context.Context, c *stack.Cluster, cidr string) error {
	mrs, err := n.Managed(ctx, c)
	for _, u := range mrs {
		if got, _, _ := unstructured.NestedString(u.Object, "spec", "forProvider", "cidr"); u.GetKind() == "Network" && got != cidr {
			err = errors.Join(err, fmt.Errorf("%s has the cidr %q", u.GetName(), got))
		}
	}

	return err
}
