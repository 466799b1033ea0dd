package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/url"
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

// Tenants that attack during the restore of an honest tenant.
const (
	// pretender writes marks of holds.
	pretender = "pretender"
	// replayer writes genuine marks again that the plugin has removed.
	replayer = "replayer"
	// looper creates objects that are their own claim and XR.
	looper = "looper"
)

// oldHold is the former key of the mark, which Crossplane copies from a claim to its XR.
const oldHold = "velero.crossplane.io/hold"

const (
	annotationPaused = "crossplane.io/paused"
	labelRestore     = "velero.io/restore-name"
)

// An attack is the set of tenants in the target that attack while an honest tenant is restored.
type attack struct {
	*suite

	honest, pretender, replayer *tenant
	// restore and replayed are the Restores of the honest tenant and of the replayer.
	restore, replayed string
	// begun is the offset in the audit log at which the attack began.
	begun int64
	// named are the objects that the forged marks name.
	named []*unstructured.Unstructured
}

// testAttacks restores the honest tenant. At first there is no provider, so its operations are
// polled for a while.
func (s *suite) testAttacks(t *testing.T, honest, robber *tenant, l *targets) {
	t.Helper()
	ctx := t.Context()
	a := &attack{suite: s, honest: honest, replayer: robber, restore: honest.Namespace + "-again", replayed: replayer + "-again"}
	a.pretender = s.few(t, s.target, drill.Platform{Namespace: pretender}, 1)
	must(t, a.pretender.AwaitReady(ctx, s.target, 1))
	a.make(t, l)
	a.loop(t)
	must(t, s.target.Stop(stack.CloudProvider))
	_, place, err := s.target.RequestsSince(ctx, 0)
	must(t, err)
	a.begun = place
	// An object that is paused again, or whose claim has a mark of another object, waits until its
	// writer stops.
	must(t, robber.StartRestore(ctx, s.target, a.replayed, robber.Namespace, "--item-operation-timeout", "40s"))
	must(t, drill.AwaitOperations(ctx, s.target, a.replayed))
	must(t, honest.StartRestore(ctx, s.target, a.restore, honest.Namespace))
	must(t, drill.AwaitOperations(ctx, s.target, a.restore))
	a.pretend(t)
	a.awaitPolls(t, 3)
	a.wantUnowned(t)
	replays := a.replay(t)
	must(t, s.target.Start(ctx, stack.CloudProvider))
	s.awaitCompleted(t, a.restore)
	s.settle(t, honest)
	s.wantSound(t, honest)
	a.wantReplayed(t, replays)
	a.wantUnowned(t)
	a.wantOnlyTheirs(t)
	t.Run("Commands", func(t *testing.T) { a.testCommands(t) })
	a.deletePretender(t)
}

// awaitPolls waits until that many polls of the honest tenant's restore have begun from now on.
// Each begins with a list of what the restore has created.
func (a *attack) awaitPolls(t *testing.T, polls int) {
	t.Helper()
	_, place, err := a.target.RequestsSince(t.Context(), 0)
	must(t, err)
	selector := "labelSelector=" + url.QueryEscape(labelRestore+"="+a.restore)
	begun := map[string]int{}
	a.eventually(t, "polls of "+a.restore, func(ctx context.Context) error {
		requests, next, err := a.target.RequestsSince(ctx, place)
		if err != nil {
			return err
		}
		place = next
		most := 0
		for _, r := range requests {
			if r.UserAgent == plugin && r.Verb == "list" && strings.Contains(r.URI, selector) {
				begun[r.Resource]++
			}
		}
		for _, n := range begun {
			most = max(most, n)
		}
		if most < polls {
			return fmt.Errorf("there were %d", most)
		}

		return nil
	})
}

// wantOnlyTheirs checks in the audit log that the plugin has written to restored objects only,
// apart from Events and its key, and that it has listed no kinds that only forged marks name.
func (a *attack) wantOnlyTheirs(t *testing.T) {
	t.Helper()
	requests, _, err := a.target.RequestsSince(t.Context(), a.begun)
	must(t, err)
	never := append(slices.Clone(limits), "namespaces", "customresourcedefinitions")
	restored := []string{a.honest.Namespace, a.replayer.Namespace}
	written := 0
	for _, r := range requests {
		if r.UserAgent != plugin {
			continue
		}
		if r.Verb == "get" || r.Verb == "list" || r.Verb == "watch" {
			if r.Verb != "get" && slices.Contains(never, r.Resource) {
				t.Errorf("because of a forged mark the plugin has asked to %s %s", r.Verb, r.URI)
			}

			continue
		}
		written++
		theirs := slices.Contains(restored, r.Namespace)
		if r.Namespace == "" { // A cluster-scoped object has its claim's name as prefix.
			theirs = slices.ContainsFunc(restored, func(n string) bool { return strings.HasPrefix(r.Name, n+"-") })
		}
		reported := r.Resource == "events" && slices.Contains([]string{pretender, looper, metav1.NamespaceDefault}, r.Namespace)
		key := r.Verb == "create" && r.Resource == "secrets" && r.Namespace == "velero"
		if !theirs && !reported && !key {
			t.Errorf("the plugin has asked to %s %s, which none of the restores has brought", r.Verb, r.URI)
		}
	}
	if written == 0 {
		t.Error("the plugin has written nothing, so this tests nothing")
	}
}

// loop creates objects that are their own claim and XR, and that claim to be from the honest
// tenant's restore.
func (a *attack) loop(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	a.allowAnything(t)
	must(t, drill.Platform{Crossplane: a.version, Namespace: looper}.Make(ctx, a.target, 0))
	instances, err := a.pretender.Instances(ctx, a.target)
	must(t, err)
	for _, name := range []string{looper + "-held", looper + "-free"} {
		self := map[string]any{
			"apiVersion": instances[0].GetAPIVersion(), "kind": instances[0].GetKind(), "namespace": looper, "name": name,
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"region": "eu-central", "cidr": "10.0.0.0/16", "resourceRef": self, "claimRef": self,
		}}}
		u.SetGroupVersionKind(instances[0].GroupVersionKind())
		u.SetNamespace(looper)
		u.SetName(name)
		u.SetLabels(map[string]string{labelRestore: a.restore})
		annotations := map[string]string{annotationPaused: "true"}
		if strings.HasSuffix(name, "-held") {
			annotations[annotationHold] = a.mark(t, "looped")
		}
		u.SetAnnotations(annotations)
		u.SetFinalizers([]string{"finalizer.apiextensions.crossplane.io", "composite.apiextensions.crossplane.io"})
		must(t, a.target.ApplyObjects(ctx, u))
		live, err := get(ctx, a.target, u.GroupVersionKind(), looper, name)
		must(t, err)
		for _, field := range []string{"resourceRef", "claimRef"} {
			if got, _, _ := unstructured.NestedString(live.Object, "spec", field, "name"); got != name {
				t.Fatalf("the API server has not kept the %s of %s", field, name)
			}
		}
	}
}

// allowAnything makes the XRD accept any field, as some platforms do.
func (a *attack) allowAnything(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	const keep = "x-kubernetes-preserve-unknown-fields"
	name := "environments.platform.example.org"
	crd := name
	if a.version == stack.V1 {
		name = "x" + name
	}
	schemaOf := func(u *unstructured.Unstructured) map[string]any {
		versions, _, err := unstructured.NestedSlice(u.Object, "spec", "versions")
		must(t, err)

		return versions[0].(map[string]any) //nolint:forcetypeassert // The API server has validated it.
	}
	kind := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition"}
	xrds, err := a.target.Resource(ctx, kind, "")
	must(t, err)
	a.eventually(t, "the XRD to allow anything", func(ctx context.Context) error {
		xrd, err := xrds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		version := schemaOf(xrd)
		if err := unstructured.SetNestedField(version, true, "schema", "openAPIV3Schema", "properties", "spec", keep); err != nil {
			return err
		}
		if err := unstructured.SetNestedSlice(xrd.Object, []any{version}, "spec", "versions"); err != nil {
			return err
		}
		_, err = xrds.Update(ctx, xrd, metav1.UpdateOptions{})

		return err
	})
	a.eventually(t, "the kind to allow anything", func(ctx context.Context) error {
		u, err := get(ctx, a.target, schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "", crd)
		if err != nil {
			return err
		}
		if kept, _, _ := unstructured.NestedBool(schemaOf(u), "schema", "openAPIV3Schema", "properties", "spec", keep); !kept {
			return errors.New("it does not yet")
		}

		return nil
	})
}

// deletePretender deletes the pretender's instance in the foreground: its dependents go first.
func (a *attack) deletePretender(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	instances, err := a.pretender.Instances(ctx, a.target)
	must(t, err)
	r, err := a.target.Resource(ctx, instances[0].GroupVersionKind(), pretender)
	must(t, err)
	foreground := metav1.DeletePropagationForeground
	must(t, r.Delete(ctx, instances[0].GetName(), metav1.DeleteOptions{PropagationPolicy: &foreground}))
	a.eventually(t, "the pretender's XR to be gone", func(ctx context.Context) error {
		xrs, err := a.pretender.Composites(ctx, a.target)
		if err != nil || len(xrs) == 0 {
			return err
		}
		if xrs[0].GetDeletionTimestamp() == nil {
			return errors.New("it is not being deleted")
		}
		if err := drill.Patch(ctx, a.target, &xrs[0], map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationPaused: nil}}}); err != nil &&
			!apierrors.IsNotFound(err) {
			return err
		}

		return errors.New("it is there")
	})
	a.wantUnowned(t)
}

// wantUnowned checks that no object that the forged marks name has an owner or was deleted.
func (a *attack) wantUnowned(t *testing.T) {
	t.Helper()
	for _, u := range a.named {
		live, err := get(t.Context(), a.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		switch {
		case err != nil:
			t.Errorf("what a forged mark names: %v", err)
		case live.GetUID() != u.GetUID() || live.GetDeletionTimestamp() != nil:
			t.Errorf("%s %s was deleted with the XR of a forged mark", u.GetKind(), u.GetName())
		case len(live.GetOwnerReferences()) > 0:
			t.Errorf("a forged mark has made %v the owner of %s %s", live.GetOwnerReferences(), u.GetKind(), u.GetName())
		}
	}
}
