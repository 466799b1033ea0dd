package backupitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// hostileBackup returns one of several Backups.
func hostileBackup(n uint8) *velerov1.Backup {
	b := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "nightly"}}
	switch n % 4 {
	case 0:
	case 1:
		b.Spec.IncludedNamespaces = []string{xptest.Namespace}
	case 2:
		b.Spec.IncludeClusterResources = ptr.To(false)
		b.Spec.ExcludedNamespaces = []string{"[", "infra"}
	default:
		b.Annotations = map[string]string{
			setting.Prefix + setting.NameCredentials: "include", setting.Prefix + setting.NameFromID: xptest.ManagedKind + ".cloud.example.org",
		}
	}

	return b
}

// FuzzTree backs up any object, beside those of another tenant.
func FuzzTree(f *testing.F) {
	n := uint8(0)
	xptest.Seeds(func(animal uint8, patch []byte) {
		f.Add(animal, patch, n)
		n++
	})
	const other = "team-b"
	f.Fuzz(func(t *testing.T, animal uint8, patch []byte, backup uint8) {
		u, ok := xptest.Patched(animal, patch)
		if !ok {
			return
		}
		theirs := xptest.XRV2("b", xptest.In(other))
		c := clusterOf(append(xptest.HostileObjects(), u, theirs, xptest.NamespacedMR("b", xptest.In(other), xptest.ControlledBy(theirs)), xptest.Secret("s", xptest.In(other)),
			xptest.Claim("b", xptest.In(other)))...)
		c.modern = u.GetNamespace() != ""
		before := u.DeepCopy()
		log, _ := logtest.NewNullLogger()
		resolver := NewResolver(c)
		if _, err := NewItemBlock(resolver, nil).GetRelatedItems(u.DeepCopy(), nil); err != nil {
			t.Error(err)
		}
		stored, items, _, _, err := NewTree(resolver, log).Execute(u, hostileBackup(backup))
		if err != nil {
			t.Fatalf("want %s in the backup: %v", xp.String(before), err)
		}
		for _, i := range items {
			if i.Namespace == other {
				t.Errorf("%s brings %s of another tenant", xp.String(before), i)
			}
		}
		if xp.CheckMetadata(before) != nil {
			return // No API server has such an object.
		}
		own := func(u *unstructured.Unstructured) map[string]any {
			u = u.DeepCopy()
			xp.StripBackupMetadata(u)
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", xp.AnnotationExternalName)
			if a, _, err := unstructured.NestedMap(u.Object, "metadata", "annotations"); err == nil && len(a) == 0 {
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
			}

			return u.Object
		}
		if diff := cmp.Diff(own(before), own(&unstructured.Unstructured{Object: stored.UnstructuredContent()})); diff != "" {
			t.Errorf("the backup must have %s unchanged\n-want, +got:\n%s", xp.String(before), diff)
		}
	})
}

// FuzzDiscovery checks a Namespace with any XRD in the cluster.
func FuzzDiscovery(f *testing.F) {
	xrd := -1
	for n, u := range xptest.HostileObjects() {
		if xp.IsDefinition(u) {
			xrd = n
		}
	}
	for _, patch := range xptest.Hostile() {
		f.Add([]byte(patch), "team-a")
	}
	f.Fuzz(func(t *testing.T, patch []byte, namespace string) {
		u, ok := xptest.Patched(uint8(xrd), patch) //nolint:gosec // The zoo is small.
		if !ok {
			return
		}
		log, _ := logtest.NewNullLogger()
		item := xptest.Object("v1", "Namespace", "", namespace)
		stored, items, _, _, err := NewDiscovery(clusterOf(append(xptest.HostileObjects(), u)...), inStep, log).Execute(item, hostileBackup(0))
		if err != nil || len(items) > 0 || !cmp.Equal(item.Object, stored.UnstructuredContent()) {
			t.Errorf("the backup must have the unchanged Namespace, whatever the XRDs: got %v, %v, %v", stored, items, err)
		}
	})
}
