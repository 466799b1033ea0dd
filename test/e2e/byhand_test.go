package e2e

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testGivenBack follows docs/gitops.md for the instances that the first restore could not adopt,
// because Argo CD had created them before. It starts from the state that testUnguarded has left. Argo
// CD applies nothing any more.
func (s *suite) testGivenBack(t *testing.T, n *tenant) {
	ctx := t.Context()
	s.awaitNamed(t, n)
	s.share(t, n)
	anew := s.anew(t, n)
	since, err := n.Record(ctx, s.target, s.cloud)
	must(t, err)
	instances, err := n.Instances(ctx, s.target)
	must(t, err)
	managed, err := n.Managed(ctx, s.target)
	must(t, err)
	replaced := 0
	for i := range instances {
		xr := s.compositeOf(t, n, &instances[i])
		if xr.GetLabels()["velero.io/restore-name"] != "" {
			continue // Its claim has had no other XR.
		}
		s.letGo(t, &instances[i], xr, managed)
		replaced++
	}
	if replaced == 0 || len(anew) == 0 {
		t.Fatalf("Argo CD has made %d instances, and %v in the cloud", replaced, anew)
	}
	again := n.Namespace + "-again"
	must(t, n.StartRestore(ctx, s.target, again, n.Namespace))
	s.awaitCompleted(t, again)
	s.settle(t, n)
	if made, deleted := s.journalSince(t, since.Seq); len(made)+len(deleted) > 0 {
		t.Errorf("in the cloud %v is made and %v is deleted", made, deleted)
	}
	kinds := map[string]api.Kind{}
	for _, u := range managed {
		kinds[u.GetAnnotations()["crossplane.io/external-name"]] = api.Kind(u.GetKind())
	}
	for id := range anew { // The last step, in the cloud.
		must(t, s.cloud.Delete(ctx, kinds[id], id))
	}
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	if got.Adopted != got.Total || got.Orphans+got.Duplicates+got.Holds > 0 {
		t.Errorf("after the second restore: %+v", got)
	}
	s.wantNoWrongMessage(t, n)
	if v := s.validate(t, 0, "-n", n.Namespace); v.Summary.Adopted != got.Total {
		t.Errorf("validate reports %d of %d as adopted", v.Summary.Adopted, got.Total)
	}
}

// compositeOf returns the XR of an instance: that of a claim, or itself.
func (s *suite) compositeOf(t *testing.T, n *tenant, instance *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	name, _, _ := unstructured.NestedString(instance.Object, "spec", "resourceRef", "name")
	if name == "" {
		return instance
	}
	xrs, err := n.Composites(t.Context(), s.target)
	must(t, err)
	i := slices.IndexFunc(xrs, func(u unstructured.Unstructured) bool { return u.GetName() == name })
	if i < 0 {
		t.Fatalf("there is no XR %s of the claim %s", name, instance.GetName())
	}

	return &xrs[i]
}

// letGo deletes an instance with all that its XR composes, and without the external resources.
func (s *suite) letGo(t *testing.T, instance, xr *unstructured.Unstructured, managed []unstructured.Unstructured) {
	t.Helper()
	ctx := t.Context()
	pause := func(value any) {
		must(t, drill.Patch(ctx, s.target, xr, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"crossplane.io/paused": value}}}))
	}
	pause("true")
	s.eventually(t, "Crossplane to see the pause of "+xr.GetName(), func(ctx context.Context) error {
		u, err := get(ctx, s.target, xr.GroupVersionKind(), xr.GetNamespace(), xr.GetName())
		if err == nil && stack.HasCondition(u, "Synced", "False") != nil {
			err = errors.New("it has not")
		}

		return err
	})
	keep := map[string]any{"managementPolicies": []any{"Observe", "Create", "Update", "LateInitialize"}}
	if s.version.IsV1() {
		keep = map[string]any{"deletionPolicy": "Orphan"}
	}
	var below []*unstructured.Unstructured
	for i := range managed {
		if managed[i].GetLabels()["crossplane.io/composite"] == xr.GetName() {
			below = append(below, &managed[i])
			must(t, drill.Patch(ctx, s.target, &managed[i], map[string]any{"spec": keep}))
		}
	}
	if len(below) == 0 {
		t.Fatalf("%s has no MRs", xr.GetName())
	}
	r, err := s.target.Resource(ctx, instance.GroupVersionKind(), instance.GetNamespace())
	must(t, err)
	must(t, r.Delete(ctx, instance.GetName(), metav1.DeleteOptions{}))
	s.eventually(t, "the deletion of "+xr.GetName()+" to begin", func(ctx context.Context) error {
		u, err := get(ctx, s.target, xr.GroupVersionKind(), xr.GetNamespace(), xr.GetName())
		if err == nil && u.GetDeletionTimestamp() == nil {
			err = errors.New("it has not")
		}

		return err
	})
	pause(nil)
	for _, u := range append(below, instance, xr) {
		s.eventually(t, u.GetKind()+" "+u.GetName()+" to be gone", func(ctx context.Context) error {
			_, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
			if apierrors.IsNotFound(err) {
				return nil
			}

			return cmp.Or(err, errors.New("it is there"))
		})
	}
}

// awaitNamed waits until all XRs and MRs are ready: those that a restore has created, and those
// that Crossplane has composed again beside them.
func (s *suite) awaitNamed(t *testing.T, n *tenant) {
	t.Helper()
	s.eventually(t, "all that was composed again to be ready", func(ctx context.Context) error {
		xrs, err := n.Composites(ctx, s.target)
		if err != nil {
			return err
		}
		managed, err := n.Managed(ctx, s.target)
		if err != nil {
			return err
		}
		for _, u := range append(xrs, managed...) {
			if err := errors.Join(stack.HasCondition(&u, "Synced", "True"), stack.HasCondition(&u, "Ready", "True")); err != nil {
				return err
			}
		}

		return nil
	})
}

// share makes one of the new buckets manage the external resource of the backup's bucket, as if
// external-names followed from names.
func (s *suite) share(t *testing.T, n *tenant) {
	t.Helper()
	const externalName = "crossplane.io/external-name"
	ctx := t.Context()
	managed, err := n.Managed(ctx, s.target)
	must(t, err)
	for _, u := range managed {
		own := u.GetAnnotations()[externalName]
		slot := drill.Slot{
			Instance: cmp.Or(u.GetLabels()["crossplane.io/claim-name"], u.GetLabels()["crossplane.io/composite"]),
			Resource: u.GetAnnotations()["crossplane.io/composition-resource-name"],
		}
		old, ok := n.before.Slots[slot]
		if u.GetKind() != "Bucket" || !ok || n.before.External[own] {
			continue
		}
		since, err := n.Record(ctx, s.target, s.cloud)
		must(t, err)
		must(t, drill.Patch(ctx, s.target, &u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{externalName: old.ExternalName}}}))
		s.eventually(t, "the provider to observe what both manage", func(ctx context.Context) error {
			entries, err := s.cloud.Journal(ctx, since.Seq, api.Read)
			if err == nil && !slices.ContainsFunc(entries, func(e api.Entry) bool { return e.ID == old.ExternalName && strings.Contains(e.ManagedBy, u.GetName()) }) {
				err = errors.New("it has not")
			}

			return err
		})
		must(t, s.cloud.Delete(ctx, api.Bucket, own))
		t.Logf("%s %s manages %s, as %s of the backup does", u.GetKind(), u.GetName(), old.ExternalName, old.Name)

		return
	}
	t.Fatal("there is no bucket that was composed again")
}

// anew returns the external resources that did not exist when the tenant was backed up.
func (s *suite) anew(t *testing.T, n *tenant) map[string]bool {
	t.Helper()
	now, err := n.Record(t.Context(), s.target, s.cloud)
	must(t, err)
	anew := map[string]bool{}
	for id := range now.External {
		if !n.before.External[id] {
			anew[id] = true
		}
	}

	return anew
}

// journalSince returns the ids that the cloud has created, and those that it has deleted.
func (s *suite) journalSince(t *testing.T, since int64) (made, deleted []string) {
	t.Helper()
	entries, err := s.cloud.Journal(t.Context(), since, api.Create, api.Delete)
	must(t, err)
	for _, e := range entries {
		switch {
		case e.Status >= http.StatusBadRequest:
		case e.Op == api.Create:
			made = append(made, e.ID)
		default:
			deleted = append(deleted, e.ID)
		}
	}
	slices.Sort(deleted)

	return made, deleted
}
