package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// damagedBackup is a backup with damaged managedFields, of two namespaces: one that Velero alone
// restores, and one that it restores with the plugin.
const damagedBackup = "damaged-managers"

// damagedTenants are two equal tenants with damaged managedFields in the backup. The one called alone is
// restored by Velero alone.
type damagedTenants struct {
	with, alone *tenant
	// objects are the numbers of damaged objects in the backup by namespace. owners are the owners
	// of each object that the plugin is to restore.
	objects map[string]int
	owners  map[string][]string
}

// damages are the ways in which a user with access to the bucket can damage managedFields, of which
// there is at least one entry. Each instance has one of them, by its number, and the objects that
// it composes have the next ones. Values that Go can't decode, such as an invalid time, are not
// among them: the API server refuses such an object.
func damages() []func(entries []any) []any {
	of := func(key string, value any) func(entries []any) []any {
		return func(entries []any) []any {
			entries[0].(map[string]any)[key] = value //nolint:forcetypeassert // It is a map.

			return entries
		}
	}
	claims := func(manager, operation string) func(entries []any) []any {
		all := map[string]any{
			"f:metadata": map[string]any{
				"f:annotations":     map[string]any{".": map[string]any{}, "f:" + annotationHold: map[string]any{}, "f:" + annotationPaused: map[string]any{}},
				"f:ownerReferences": map[string]any{`k:{"uid":"0c9a4bd1-56d3-4a4f-9b0c-2f5c1f0e9d11"}`: map[string]any{}},
			},
			"f:spec": map[string]any{"f:crossplane": map[string]any{"f:compositionUpdatePolicy": map[string]any{}}, "f:managementPolicies": map[string]any{}},
		}

		return func(entries []any) []any {
			first, _ := entries[0].(map[string]any)

			return append(entries, map[string]any{
				"manager": manager, "operation": operation, "apiVersion": first["apiVersion"], "time": "2999-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": all,
			})
		}
	}

	return []func(entries []any) []any{
		of("fieldsV1", "everything"),
		of("apiVersion", "nobody.example.org/v9"),
		of("operation", "Dream"),
		func(entries []any) []any {
			for i := range 3000 {
				entries = append(entries, map[string]any{
					"manager": fmt.Sprint("manager-", i), "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
					"fieldsV1": map[string]any{"f:spec": map[string]any{}},
				})
			}

			return entries
		},
		claims(plugin, "Update"), claims(plugin, "Apply"), claims(velero, "Update"), claims("apiextensions.crossplane.io/composed/0c9a4bd1", "Apply"),
	}
}

// damagedKinds are the kinds of objects that are held, composed or published.
var damagedKinds = []string{"Environment", "XEnvironment", "Bucket", "Database", "Secret"}

// fillDamaged creates both tenants.
func (s *suite) fillDamaged(t *testing.T) *damagedTenants {
	t.Helper()
	n := len(damages())

	return &damagedTenants{
		with:  s.few(t, s.source, drill.Platform{Namespace: "damaged", Without: []string{"network"}}, n),
		alone: s.few(t, s.source, drill.Platform{Namespace: "baseline", Without: []string{"network"}}, n),
	}
}

// backUpDamaged backs both tenants up, and damages a copy of that backup.
func (s *suite) backUpDamaged(t *testing.T, d *damagedTenants) {
	t.Helper()
	for _, n := range []*tenant{d.with, d.alone} {
		s.remember(t, s.source, n)
	}
	d.owners = s.owners(t, s.source, d.with)
	backup := backupWith(t, s.source, "undamaged", "--include-namespaces", d.with.Namespace+","+d.alone.Namespace)
	file := filepath.Join(t.TempDir(), damagedBackup+".tar.gz")
	d.objects = map[string]int{}
	rewrite(t, s.host.BackupFile(backup.GetName()), file, func(content []byte) []byte {
		u := &unstructured.Unstructured{}
		must(t, json.Unmarshal(content, &u.Object))
		of := d.of(u)
		entries, _, _ := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
		if of == nil || len(entries) == 0 {
			return content
		}
		d.objects[of.Namespace]++
		number := 0
		_, err := fmt.Sscanf(strings.TrimPrefix(u.GetName(), of.Namespace+"-"), "%d", &number)
		must(t, err)
		shift := slices.Index(damagedKinds, u.GetKind())
		u.Object["metadata"].(map[string]any)["managedFields"] = damages()[(number+shift)%len(damages())](entries) //nolint:forcetypeassert // It is a map.
		b, err := json.Marshal(u.Object)
		must(t, err)

		return b
	})
	if d.objects[d.with.Namespace] < 4*d.with.size || d.objects[d.with.Namespace] != d.objects[d.alone.Namespace] {
		t.Fatalf("the backup has %v", d.objects)
	}
	items, _, _ := unstructured.NestedInt64(backup.Object, "status", "progress", "totalItems")
	must(t, s.host.Upload(t.Context(), damagedBackup, backup.GetName(), int(items), file))
}

// of returns the tenant of an object of the backup that is to be damaged, or nil.
func (d *damagedTenants) of(u *unstructured.Unstructured) *tenant {
	for _, n := range []*tenant{d.with, d.alone} {
		if slices.Contains(damagedKinds, u.GetKind()) && strings.HasPrefix(u.GetName(), n.Namespace+"-") {
			return n
		}
	}

	return nil
}

// owners returns the owners of each object of a tenant, all as kind/name.
func (s *suite) owners(t *testing.T, c *stack.Cluster, n *tenant) map[string][]string {
	t.Helper()
	objects, err := n.Objects(t.Context(), c)
	must(t, err)
	owners := map[string][]string{}
	for _, u := range objects {
		name := u.GetKind() + "/" + u.GetName()
		owners[name] = nil
		for _, o := range u.GetOwnerReferences() {
			owners[name] = append(owners[name], o.Kind+"/"+o.Name)
		}
		slices.Sort(owners[name])
	}

	return owners
}

// restoreDamaged restores one of both tenants, and checks that all of its claims and XRs are back.
func (s *suite) restoreDamaged(t *testing.T, n *tenant) {
	t.Helper()
	must(t, n.StartRestore(t.Context(), s.target, n.Namespace, damagedBackup, "--include-namespaces", n.Namespace))
	s.awaitCompleted(t, n.Namespace)
	wishes, err := n.Wishes(t.Context(), s.target)
	must(t, err)
	if len(wishes) != len(n.wishes) {
		t.Errorf("%d of %d claims and XRs are back in %s", len(wishes), len(n.wishes), n.Namespace)
	}
}

// testDamaged checks that the plugin restores and adopts all that Velero alone restores, whatever
// the backup has in managedFields, and that no object has other owners because of them.
func (s *suite) testDamaged(t *testing.T, d *damagedTenants) {
	ctx := t.Context()
	s.restoreDamaged(t, d.with)
	again := d.with.Namespace + "-again"
	must(t, d.with.StartRestore(ctx, s.target, again, damagedBackup, "--include-namespaces", d.with.Namespace))
	s.awaitCompleted(t, again)
	s.settle(t, d.with)
	got, err := d.with.Compare(ctx, s.target, s.cloud, d.with.before)
	must(t, err)
	if diff := cmp.Diff(drill.Outcome{Adopted: len(d.with.before.Slots), Total: len(d.with.before.Slots)}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	wishes, err := d.with.Wishes(ctx, s.target)
	must(t, err)
	if diff := cmp.Diff(d.with.wishes, wishes, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("claims and XRs: -before, +after:\n%s", diff)
	}
	if diff := cmp.Diff(d.owners, s.owners(t, s.target, d.with)); diff != "" {
		t.Errorf("owners: -before, +after:\n%s", diff)
	}
	s.wantNothingLeft(t, d.with)
}
