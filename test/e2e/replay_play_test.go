package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const (
	holdAnnotation  = "velero.crossplane.x-k8s.io/hold"
	pauseAnnotation = "crossplane.io/paused"
)

// resourceOf returns the name of a replay's composed resource in the Composition.
func resourceOf(part string) string {
	if part[0] == 'x' {
		return "network"
	}

	return "database"
}

// A replayRun is a replay on the real stack, with one tenant to lose and one to restore.
type replayRun struct {
	*suite

	found        counterexample
	tenant, twin *tenant
	// parts are the objects of the tree before the loss.
	parts map[string]*unstructured.Unstructured
}

// cast creates a tenant with one instance, of a Composition that has the gates of the replay.
func (p *replayRun) cast(t *testing.T, namespace string) *tenant {
	t.Helper()
	ctx := t.Context()
	platform := drill.Platform{Crossplane: p.version, Namespace: namespace, Without: []string{"bucket"}}
	must(t, platform.Compose(ctx, p.source))
	switch p.found.Mutation {
	case "without status":
		p.gate(t, platform, map[string]any{"resource": "database", "field": "status.address"})
	case "without waiting for what is composed":
		p.gate(t, platform, map[string]any{"resource": "database", "after": "network"})
	}
	must(t, platform.Make(ctx, p.source, 1))

	return &tenant{Platform: platform, size: 1}
}

// actors returns the actors in the order in which they are stopped.
func actors() []string {
	return []string{stack.Crossplane, stack.CloudProvider, stack.ControllerManager}
}

func (p *replayRun) start(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, p.target.Start(t.Context(), name))
	}
}

func (p *replayRun) stop(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, p.target.Kill(name))
	}
}

// lose stops all actors and removes the tenants' objects, as if the cluster were lost.
func (p *replayRun) lose(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	p.stop(t, actors()...)
	p.parts = map[string]*unstructured.Unstructured{}
	xrs, err := p.tenant.Composites(ctx, p.target)
	must(t, err)
	mrs, err := p.tenant.Managed(ctx, p.target)
	must(t, err)
	p.parts["a"] = &xrs[0]
	for _, u := range mrs {
		for _, part := range []string{"x", "y"} {
			if u.GetAnnotations()["crossplane.io/composition-resource-name"] == resourceOf(part) {
				p.parts[part] = &u
			}
		}
	}
	if len(p.parts) != 3 {
		t.Fatalf("there are %d parts, not 3", len(p.parts))
	}
	for _, n := range []*tenant{p.tenant, p.twin} {
		p.remove(t, n)
	}
	if p.found.hasChange() {
		// The revision of the user's change is created now, and is not the newest. At the step,
		// Crossplane would do more than create it.
		changed := p.tenant.Platform
		changed.Without = append(slices.Clone(changed.Without), "database")
		p.start(t, stack.Crossplane)
		must(t, changed.Compose(ctx, p.target))
		must(t, p.tenant.Compose(ctx, p.target))
		p.stop(t, stack.Crossplane)
	}
}

// remove removes a tenant's objects and connection secrets, without their finalizers.
func (p *replayRun) remove(t *testing.T, n *tenant) {
	t.Helper()
	ctx := t.Context()
	instances, err := n.Instances(ctx, p.target)
	must(t, err)
	xrs, err := n.Composites(ctx, p.target)
	must(t, err)
	mrs, err := n.Managed(ctx, p.target)
	must(t, err)
	all := slices.Concat(instances, xrs, mrs)
	for _, namespace := range []string{n.Namespace, "crossplane-system"} {
		secrets, err := list(ctx, p.target, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, namespace, "")
		must(t, err)
		for _, u := range secrets {
			if c := metav1.GetControllerOf(&u); c != nil && slices.ContainsFunc(all, func(o unstructured.Unstructured) bool { return o.GetUID() == c.UID }) {
				all = append(all, u)
			}
		}
	}
	for _, u := range all {
		r, err := p.target.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
		must(t, err)
		if len(u.GetFinalizers()) > 0 {
			err := drill.Patch(ctx, p.target, &u, map[string]any{"metadata": map[string]any{"finalizers": nil}})
			if !apierrors.IsNotFound(err) {
				must(t, err)
			}
		}
		if err := r.Delete(ctx, u.GetName(), metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			must(t, err)
		}
	}
}

// play lets one actor after the other take its steps, and stops it when their effects are visible.
func (p *replayRun) play(t *testing.T) {
	t.Helper()
	for n := 0; n < len(p.found.Steps); {
		actor, last := p.found.Steps[n].Actor, n
		for last < len(p.found.Steps) && p.found.Steps[last].Actor == actor {
			last++
		}
		p.act(t, actor, p.found.Steps[n:last])
		n = last
	}
	if p.found.Damage == "a change of a Composition acts on what is not adopted (P4)" {
		p.act(t, "provider", []replayStep{{Actor: "provider", Verb: "deletes the external resource of", Object: "y"}})
	}
}

func (p *replayRun) act(t *testing.T, actor string, frames []replayStep) {
	t.Helper()
	component := map[string]string{"crossplane": stack.Crossplane, "kubernetes": stack.ControllerManager, "provider": stack.CloudProvider}[actor]
	if component != "" {
		p.start(t, component)
		defer p.stop(t, component)
	}
	if slices.ContainsFunc(frames, func(f replayStep) bool { return strings.HasPrefix(f.Verb, "deletes the external") }) {
		// Crossplane v2 deletes in the foreground. A provider waits for that finalizer to go.
		p.start(t, stack.ControllerManager)
		defer p.stop(t, stack.ControllerManager)
	}
	for _, f := range frames {
		t.Log(f)
		switch {
		case component != "":
			must(t, p.target.Wait(t.Context(), patience, f.String(), func(ctx context.Context) error { return p.seen(ctx, f) }))
		case f.Actor == "velero" && f.Verb == "creates":
			p.create(t, f)
		case f.Actor == "plugin" && f.Object != "":
			p.change(t, f)
		case f.Actor == "person":
			p.revise(t)
		}
	}
}

// create creates what Velero would, with only those additions of the plugin that the step has.
func (p *replayRun) create(t *testing.T, f replayStep) {
	t.Helper()
	ctx := t.Context()
	was := p.parts[f.Object]
	u := was.DeepCopy()
	for _, field := range []string{
		"generateName", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "ownerReferences", "managedFields",
	} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	if f.Owner != "" {
		owners := was.GetOwnerReferences()
		if f.Owner == "live" {
			xr, err := p.part(ctx, "a")
			must(t, err)
			owners[0].UID = xr.GetUID()
		}
		u.SetOwnerReferences(owners)
	}
	if f.Held {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[holdAnnotation], annotations[pauseAnnotation] = "{}", "true"
		u.SetAnnotations(annotations)
		must(t, unstructured.SetNestedField(u.Object, "Manual", p.policy()...))
	}
	r, err := p.target.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
	must(t, err)
	_, err = r.Create(ctx, u, metav1.CreateOptions{})
	must(t, err)
}

func (p *replayRun) policy() []string {
	if p.version.IsV1() {
		return []string{"spec", "compositionUpdatePolicy"}
	}

	return []string{"spec", "crossplane", "compositionUpdatePolicy"}
}

// change changes a held object as the plugin did.
func (p *replayRun) change(t *testing.T, f replayStep) {
	t.Helper()
	u, err := p.part(t.Context(), f.Object)
	must(t, err)
	annotations := map[string]any{pauseAnnotation: nil}
	patch := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	if !f.Held {
		annotations[holdAnnotation] = nil
		spec := under(p.policy(), nil)["spec"]
		patch["spec"] = spec
	}
	must(t, drill.Patch(t.Context(), p.target, u, patch))
}

// revise makes the revision without the database the newest, as Crossplane does with one that it
// finds again (composition/reconciler.go).
func (p *replayRun) revise(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	changed := p.tenant.Platform
	changed.Without = append(slices.Clone(changed.Without), "database")
	all, err := list(ctx, p.target, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}, "",
		"crossplane.io/composition-name=environments-"+p.tenant.Namespace)
	must(t, err)
	slices.SortFunc(all, func(a, b unstructured.Unstructured) int { return int(numberOf(&a) - numberOf(&b)) })
	if len(all) < 2 {
		t.Fatalf("there are %d revisions", len(all))
	}
	highest := numberOf(&all[len(all)-1])
	must(t, drill.Patch(ctx, p.target, &all[len(all)-2], map[string]any{"spec": map[string]any{"revision": highest + 1}}))
	must(t, changed.Compose(ctx, p.target)) // Crossplane finds that it has the newest revision already.
}

func numberOf(revision *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(revision.Object, "spec", "revision")

	return n
}

// part returns the current object of a part, or the one that was created again in its role.
func (p *replayRun) part(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	if was := p.parts[name]; was != nil {
		return get(ctx, p.target, was.GroupVersionKind(), was.GetNamespace(), was.GetName())
	}
	mrs, err := p.tenant.Managed(ctx, p.target)
	if err != nil {
		return nil, err
	}
	for _, u := range mrs {
		if u.GetAnnotations()["crossplane.io/composition-resource-name"] == resourceOf(name) && u.GetName() != p.parts[name[:1]].GetName() {
			return &u, nil
		}
	}

	return nil, errors.New("there is no " + name)
}

// seen returns an error until the effect of a step is visible.
func (p *replayRun) seen(ctx context.Context, f replayStep) error {
	switch f.Verb {
	case "notices the pause of":
		u, err := p.part(ctx, f.Object)
		if err != nil {
			return err
		}

		return stack.HasCondition(u, "Synced", "False")
	case "says that it has reconciled", "observes":
		u, err := p.part(ctx, f.Object)
		if err != nil {
			return err
		}

		return stack.HasCondition(u, "Synced", "True")
	case "replaces the refs of":
		u, err := p.part(ctx, f.Object)
		if err == nil && slices.Equal(slices.Sorted(slices.Values(p.tenant.Refs(u))), slices.Sorted(slices.Values(p.tenant.Refs(p.parts["a"])))) {
			err = errors.New("they are unchanged")
		}

		return err
	case "deletes what is not wanted of", "garbage-collects":
		return p.areGoing(ctx, f)
	case "applies":
		return p.isApplied(ctx, f)
	case "creates an external resource for", "deletes the external resource of":
		got, err := p.tenant.Compare(ctx, p.target, p.cloud, p.tenant.before)
		if n := map[bool]int{true: got.Creates, false: got.Deletes}[f.Verb == "creates an external resource for"]; err == nil && n == 0 {
			err = errors.New("the cloud was not asked for it")
		}

		return err
	default:
		return nil
	}
}

func (p *replayRun) areGoing(ctx context.Context, f replayStep) error {
	for _, name := range f.Changed {
		if name == "a" {
			continue
		}
		u, err := p.part(ctx, name)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil && u.GetDeletionTimestamp() == nil {
			return fmt.Errorf("%s is not being deleted", name)
		}
	}

	return nil
}

func (p *replayRun) isApplied(ctx context.Context, f replayStep) error {
	u, err := p.part(ctx, f.Object)
	if err != nil {
		return err
	}
	xr, err := p.part(ctx, "a")
	if err == nil && (metav1.GetControllerOf(u) == nil || metav1.GetControllerOf(u).UID != xr.GetUID()) {
		err = errors.New("the XR does not control it")
	}

	return err
}
