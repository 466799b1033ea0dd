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

func (s *suite) usageKind() schema.GroupVersionKind {
	if s.version == stack.V1 {
		return schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1beta1", Kind: "Usage"}
	}

	return schema.GroupVersionKind{Group: "protection.crossplane.io", Version: "v1beta1", Kind: "Usage"}
}

// mrKind returns a kind of the cloud's provider that XRs of the version compose.
func (s *suite) mrKind(kind string) schema.GroupVersionKind {
	group := "cloud.m.example.org"
	if s.version == stack.V1 {
		group = "cloud.example.org"
	}

	return schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind}
}

// of returns the objects of a kind that belong to a scene.
func (s *suite) of(ctx context.Context, c *stack.Cluster, scene string, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	all, err := list(ctx, c, kind, scene, "")
	if err != nil {
		return nil, fmt.Errorf("cannot list the %ss of %s: %w", kind.Kind, scene, err)
	}
	var mine []unstructured.Unstructured
	for _, u := range all {
		if u.GetNamespace() == scene || strings.HasPrefix(u.GetName(), scene+"-") {
			mine = append(mine, u)
		}
	}

	return mine, nil
}

// leftover returns a Usage of an XR's bucket by its network, as Crossplane 1.18.0 left one when the
// Composition dropped it: it has all references to the XR, but the XR does not list it.
func (s *suite) leftover(xr *unstructured.Unstructured, scene, suffix string) *unstructured.Unstructured {
	uses := map[string]any{}
	for _, path := range [][]string{{"spec", "resourceRefs"}, {"spec", "crossplane", "resourceRefs"}} {
		refs, _, _ := unstructured.NestedSlice(xr.Object, path...)
		for _, entry := range refs {
			m, _ := entry.(map[string]any)
			field, ok := map[any]string{"Bucket": "of", "Network": "by"}[m["kind"]]
			if !ok {
				continue
			}
			uses[field] = map[string]any{"apiVersion": m["apiVersion"], "kind": m["kind"], "resourceRef": map[string]any{"name": m["name"]}}
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": uses}}
	u.SetGroupVersionKind(s.usageKind())
	u.SetName(xr.GetName() + "-" + suffix)
	u.SetNamespace(xr.GetNamespace())
	u.SetLabels(map[string]string{"crossplane.io/composite": xr.GetName(), "scene": scene})
	u.SetAnnotations(map[string]string{"crossplane.io/composition-resource-name": "usage"})

	return u
}

// orderKind returns the kind of a scene's XRs.
func (s *suite) orderKind(scene string) schema.GroupVersionKind {
	return s.keeper(scene).GroupVersionKind()
}

// leaveBehind creates two leftovers of each XR, one with the XR as controller and one without.
func (s *suite) leaveBehind(ctx context.Context, c *stack.Cluster, scene drill.Scene) error {
	xrs, err := s.of(ctx, c, scene.Name, s.orderKind(scene.Name))
	if err != nil {
		return err
	}
	for _, xr := range xrs {
		own, lost := s.leftover(&xr, scene.Name, "left"), s.leftover(&xr, scene.Name, "lost")
		own.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(&xr, xr.GroupVersionKind())})
		if err := c.ApplyObjects(ctx, own, lost); err != nil {
			return err
		}
	}

	return s.awaitUsages(ctx, c, scene.Name, len(xrs)*2)
}

// awaitUsages waits until a scene has the wanted number of Usages, and each is Ready.
func (s *suite) awaitUsages(ctx context.Context, c *stack.Cluster, scene string, want int) error {
	return c.Wait(ctx, patience, fmt.Sprintf("%d Usages of %s", want, scene), func(ctx context.Context) error {
		usages, err := s.of(ctx, c, scene, s.usageKind())
		if err != nil {
			return err
		}
		if len(usages) != want {
			return fmt.Errorf("there are %v", names(usages))
		}
		for _, u := range usages {
			if err := stack.HasCondition(&u, "Ready", "True"); err != nil {
				return err
			}
		}

		return nil
	})
}

// leaveTerminating leaves Usages that are being deleted behind, as Crossplane before v1.18.2 does
// when a Composition drops them.
func (s *suite) leaveTerminating(ctx context.Context, c *stack.Cluster, scene drill.Scene) error {
	if err := s.leaveBehind(ctx, c, scene); err != nil {
		return err
	}
	usages, err := s.of(ctx, c, scene.Name, s.usageKind())
	if err != nil {
		return err
	}
	for _, u := range usages {
		r, err := c.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
		if err != nil {
			return err
		}
		if err := r.Delete(ctx, u.GetName(), metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("cannot delete %s: %w", u.GetName(), err)
		}
	}

	return nil
}

// leaveInTarget creates a leftover in the target of each XR that is to be restored there.
func (s *suite) leaveInTarget(t *testing.T, n *shape) {
	t.Helper()
	if s.version != stack.V1 {
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": n.Name}}}
		must(t, s.target.ApplyObjects(t.Context(), namespace))
	}
	for _, u := range n.leftovers {
		must(t, s.target.ApplyObjects(t.Context(), u))
	}
	if len(n.leftovers) != two {
		t.Fatalf("there are %d leftovers", len(n.leftovers))
	}
}

// foresee computes the leftovers that the target is to have, and creates none in the source.
func (s *suite) foresee(n *shape) func(ctx context.Context, c *stack.Cluster, scene drill.Scene) error {
	return func(ctx context.Context, c *stack.Cluster, scene drill.Scene) error {
		xrs, err := s.of(ctx, c, scene.Name, s.orderKind(scene.Name))
		for _, xr := range xrs {
			n.leftovers = append(n.leftovers, s.leftover(&xr, scene.Name, "left"))
		}

		return err
	}
}

// testLeftoverAlone is the control: leftovers come back and protect.
func (s *suite) testLeftoverAlone(t *testing.T, n *shape) {
	s.awaitCompleted(t, n.Name)
	usages, err := s.of(t.Context(), s.target, n.Name, s.usageKind())
	must(t, err)
	if len(usages) != 2*two {
		t.Fatalf("Velero alone does not restore leftovers, so the other tests prove nothing: %v", names(usages))
	}
	s.wantProtected(t, n, true)
}

// wantProtected checks whether the scene's buckets could be deleted. Crossplane records each
// attempt, and wantProtected removes that record.
func (s *suite) wantProtected(t *testing.T, n *shape, want bool) {
	t.Helper()
	ctx := t.Context()
	buckets, err := s.of(ctx, s.target, n.Name, s.mrKind("Bucket"))
	must(t, err)
	if want { // With Velero alone there can be others, which were created again.
		buckets = slices.DeleteFunc(buckets, func(u unstructured.Unstructured) bool { return u.GetLabels()["crossplane.io/in-use"] != "true" })
	}
	if len(buckets) != two {
		t.Fatalf("%s There are the buckets %v", n.reason, names(buckets))
	}
	for _, u := range buckets {
		r, err := s.target.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
		must(t, err)
		err = r.Delete(ctx, u.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if refused := err != nil && strings.Contains(err.Error(), "in-use"); refused != want || err != nil && !refused {
			t.Errorf("%s The answer to the deletion of bucket %s is %v", n.reason, u.GetName(), err)
		}
		must(t, drill.Patch(ctx, s.target, &u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{attempt: nil}}}))
	}
}

// testLeftoverInBackup expects the leftovers that an XR controlled not to come back, and the others
// to be reported, each by name with the command.
func (s *suite) testLeftoverInBackup(t *testing.T, n *shape) {
	ctx := t.Context()
	must(t, n.AwaitReady(ctx, s.target))
	usages, err := s.of(ctx, s.target, n.Name, s.usageKind())
	must(t, err)
	if len(usages) != two {
		t.Errorf("%s There are the Usages %v", n.reason, names(usages))
	}
	logs, details := drill.Problems(ctx, s.target, n.Name), s.details(t, n.Name)
	for _, xr := range s.orders(t, n, two) {
		command := s.command(&xr, "left")
		wantMessage(t, "the problems of the restore", logs, "level=warning", "[UsageLeftBehind]", "name="+xr.GetName()+"-left", command[0], command[1])
		s.wantMessageOf(t, n, details, &xr, "lost")
	}
	s.clear(t, usages)
	s.wantProtected(t, n, false)
}

// command returns the command that clears a leftover of an XR, in parts.
func (s *suite) command(xr *unstructured.Unstructured, suffix string) []string {
	name := fmt.Sprintf("Usage.v1beta1.%s %s-%s", s.usageKind().Group, xr.GetName(), suffix)
	if xr.GetNamespace() != "" {
		name += " -n " + xr.GetNamespace()
	}

	return []string{"kubectl label " + name + " crossplane.io/composite-", "kubectl delete " + name}
}

// wantMessageOf checks that the restore's output and an Event about the XR report a leftover.
func (s *suite) wantMessageOf(t *testing.T, n *shape, details string, xr *unstructured.Unstructured, suffix string) {
	t.Helper()
	words := append(s.command(xr, suffix), xr.GetName()+"-"+suffix+": ", "[UsageLeftBehind]")
	wantMessage(t, "the details of the restore", details, words...)
	namespace := xr.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	events, err := list(t.Context(), s.target, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, namespace, "")
	must(t, err)
	for _, e := range events {
		message, _ := e.Object["message"].(string)
		about, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
		if e.Object["reason"] == "UsagesLeftBehind" && about == xr.GetName() && hasAll(message, words) {
			return
		}
	}
	t.Errorf("%s No Event about %s has all of %q", n.reason, xr.GetName(), words)
}

// clear runs the command that clears leftovers, and waits until they are gone.
func (s *suite) clear(t *testing.T, usages []unstructured.Unstructured) {
	t.Helper()
	for _, u := range usages {
		must(t, drill.Patch(t.Context(), s.target, &u, map[string]any{"metadata": map[string]any{"labels": map[string]any{"crossplane.io/composite": nil}}}))
		s.delete(t, &u, metav1.DeletePropagationBackground)
	}
	for _, u := range usages {
		s.awaitGone(t, &u)
	}
}

// testLeftoverInTarget expects the leftovers to be reported, and to protect until they are cleared.
func (s *suite) testLeftoverInTarget(t *testing.T, n *shape) {
	ctx := t.Context()
	must(t, n.AwaitReady(ctx, s.target))
	details := s.details(t, n.Name)
	for _, xr := range s.orders(t, n, two) {
		s.wantMessageOf(t, n, details, &xr, "left")
	}
	must(t, s.awaitUsages(ctx, s.target, n.Name, two))
	s.wantProtected(t, n, true)
	usages, err := s.of(ctx, s.target, n.Name, s.usageKind())
	must(t, err)
	s.clear(t, usages)
	s.wantProtected(t, n, false)
}

// testTerminatingInSource expects the backup to name terminating Usages, which must not come back.
func (s *suite) testTerminatingInSource(t *testing.T, n *shape) {
	ctx := t.Context()
	must(t, n.AwaitReady(ctx, s.target))
	logs, err := s.target.Velero(ctx, "backup", "logs", n.Name)
	must(t, err)
	for _, xr := range s.orders(t, n, two) { // Velero's message has no name.
		for _, suffix := range []string{"left", "lost"} {
			wantMessage(t, "the problems of the backup", problems(logs), "level=warning", xr.GetName()+"-"+suffix, "is being deleted", "[UsageLeftBehind]")
		}
	}
	usages, err := s.of(ctx, s.target, n.Name, s.usageKind())
	must(t, err)
	if len(usages) > 0 {
		t.Errorf("%s There are %v", n.reason, names(usages))
	}
	s.wantProtected(t, n, false)
}

// testTerminatingInTarget deletes the XRs' Usages, which wait for their users, and restores again.
func (s *suite) testTerminatingInTarget(t *testing.T, n *shape) {
	ctx := t.Context()
	usages, err := s.of(ctx, s.target, n.Name, s.usageKind())
	must(t, err)
	for _, u := range usages {
		s.delete(t, &u, metav1.DeletePropagationBackground)
	}
	s.again(t, n)
	logs := drill.Problems(ctx, s.target, n.Name+"-again")
	for _, u := range usages {
		wantMessage(t, "the problems of the restore", logs, "level=warning", "exists and is being deleted", "name="+u.GetName(), "Network", "is gone")
		live, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		if apierrors.IsNotFound(err) {
			err = errors.New("it is gone, so this tests nothing")
		}
		must(t, err)
		if live.GetUID() != u.GetUID() || live.GetDeletionTimestamp() == nil {
			t.Errorf("%s Usage %s was not left as it was: %v", n.reason, u.GetName(), live.Object["metadata"])
		}
	}
	if len(usages) != two {
		t.Errorf("%s There are %v", n.reason, names(usages))
	}
}
