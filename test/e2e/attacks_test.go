package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// pretender is a tenant who writes marks of holds during the restore of an honest tenant.
const pretender = "pretender"

// oldHold is the former key of the mark, which Crossplane copies from a claim to its XR.
const oldHold = "velero.crossplane.io/hold"

const (
	annotationPaused = "crossplane.io/paused"
	labelRestore     = "velero.io/restore-name"
)

// An attack is what a tenant does in the target while an honest tenant is restored.
type attack struct {
	*suite

	pretender *tenant
	// restore is the Restore of the honest tenant.
	restore string
	// begun is the offset in the audit log at which the attack began.
	begun int64
	// named are the objects that the forged marks name.
	named []*unstructured.Unstructured
}

// testAttacks restores the honest tenant. At first there is no provider, so its operations are
// polled for a while.
func (s *suite) testAttacks(t *testing.T, fair *tenant, l *targets) {
	t.Helper()
	ctx := t.Context()
	a := &attack{suite: s, restore: fair.Namespace + "-again"}
	a.pretender = s.few(t, s.target, drill.Platform{Namespace: pretender}, 1)
	must(t, a.pretender.AwaitReady(ctx, s.target, 1))
	a.make(t, l)
	must(t, s.target.Stop(stack.CloudProvider))
	_, place, err := s.target.RequestsSince(ctx, 0)
	must(t, err)
	a.begun = place
	must(t, fair.StartRestore(ctx, s.target, a.restore, fair.Namespace))
	must(t, drill.AwaitOperations(ctx, s.target, a.restore))
	a.pretend(t)
	a.awaitPolls(t, 3)
	a.wantUnowned(t)
	must(t, s.target.Start(ctx, stack.CloudProvider))
	s.awaitCompleted(t, a.restore)
	s.settle(t, fair)
	s.wantSound(t, fair)
	a.wantOnlyTheirs(t)
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
		// A cluster-scoped object has its claim's name as prefix.
		theirs := r.Namespace == honest || r.Namespace == "" && strings.HasPrefix(r.Name, honest+"-")
		reported := r.Resource == "events" && slices.Contains([]string{pretender, metav1.NamespaceDefault}, r.Namespace)
		key := r.Verb == "create" && r.Resource == "secrets" && r.Namespace == "velero"
		if !theirs && !reported && !key {
			t.Errorf("the plugin has asked to %s %s, which none of the restores has brought", r.Verb, r.URI)
		}
	}
	if written == 0 {
		t.Error("the plugin has written nothing, so this tests nothing")
	}
}

// make creates what the forged marks name: in the pretender's namespace the limits of a tenant, and
// on v1, where XRs are cluster-scoped, objects that all tenants need. Where a tenant can write
// that, they look as if a restore had created them and the XR had composed them.
func (a *attack) make(t *testing.T, l *targets) {
	t.Helper()
	all := limitsIn(pretender, map[string]any{labelRestore: a.restore, "crossplane.io/composite": a.pretender.Name(0)})
	if a.version == stack.V1 {
		i := slices.IndexFunc(l.managed, func(u unstructured.Unstructured) bool { return u.GetKind() == "Bucket" })
		bucket := a.bad(&l.managed[i], "commons", nil)
		objects, err := stack.Parse([]byte("{apiVersion: v1, kind: Namespace, metadata: {name: commons}}"))
		must(t, err)
		crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
		crd.SetName("databases.cloud.example.org")
		must(t, a.target.ApplyObjects(t.Context(), objects[0], bucket))
		all = []*unstructured.Unstructured{objects[0], crd, bucket}
	} else {
		must(t, a.target.ApplyObjects(t.Context(), all...))
	}
	for _, u := range all {
		live, err := get(t.Context(), a.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		must(t, err)
		a.named = append(a.named, live)
	}
}

// pretend writes forged marks during the polls of the honest tenant's restore: on the XR or, on v1,
// on the claim, from which Crossplane copies some of them. Then it makes the XR look as if all of
// them had been copied, and as if it composed what the marks name. The marks are written without
// the key, and claim that a user had paused the XR.
func (a *attack) pretend(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	instances, err := a.pretender.Instances(ctx, a.target)
	must(t, err)
	xr, path := &instances[0], a.pretender.fieldOf("resourceRefs")
	var named []any
	for _, u := range a.named {
		named = append(named, map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName()})
	}
	b, err := json.Marshal(map[string]any{
		"restore": "velero/" + a.restore, "since": time.Now().UTC().Format(time.RFC3339), "reason": "forged", "paused": "true", "resourceRefs": named,
		"mac": strings.Repeat("A", 43) + "=",
	})
	must(t, err)
	labels := map[string]any{labelRestore: a.restore}
	if a.version == stack.V1 {
		must(t, drill.Patch(ctx, a.target, xr, map[string]any{"metadata": map[string]any{
			"labels": labels, "annotations": map[string]any{oldHold: string(b), annotationHold: string(b)},
		}}))
		xr = a.awaitCopied(t, string(b))
	}
	patch := under(path, append(listAt(xr, path), named...))
	patch["metadata"] = map[string]any{
		"labels": labels, "annotations": map[string]any{oldHold: string(b), annotationHold: string(b), annotationPaused: "true"},
	}
	must(t, drill.Patch(ctx, a.target, xr, patch))
}

// awaitCopied waits until Crossplane has copied the claim's old mark to its XR. It checks that
// Crossplane has not copied the new one.
func (a *attack) awaitCopied(t *testing.T, mark string) *unstructured.Unstructured {
	t.Helper()
	var xr *unstructured.Unstructured
	a.eventually(t, "the old mark of the claim on its XR", func(ctx context.Context) error {
		xrs, err := a.pretender.Composites(ctx, a.target)
		if err != nil {
			return err
		}
		xr = &xrs[0]
		if xr.GetAnnotations()[oldHold] != mark || xr.GetLabels()[labelRestore] != a.restore {
			return errors.New("it is not there")
		}

		return nil
	})
	if xr.GetAnnotations()[annotationHold] == mark {
		t.Errorf("Crossplane has copied the annotation %s from a claim to %s", annotationHold, xr.GetName())
	}

	return xr
}

// deletePretender deletes the pretender's instance in the foreground: its dependents go first.
func (a *attack) deletePretender(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	instances, err := a.pretender.Instances(ctx, a.target)
	must(t, err)
	a.delete(t, &instances[0], metav1.DeletePropagationForeground)
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
