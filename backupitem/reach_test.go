package backupitem

import (
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// snapshots and contents are what Velero excludes from every backup, by resource or, without
// resource filters, by scope.
const snapshots, contents = "volumesnapshots.snapshot.storage.k8s.io", "volumesnapshotcontents.snapshot.storage.k8s.io"

func TestIncludesSecretsOf(t *testing.T) {
	xptest.Run(t, map[string]xptest.Row[velerov1.BackupSpec, bool]{
		"None": {Reason: "The Backup has no resource filter.", Want: true},
		"ByResource": {
			Reason: "Velero itself excludes snapshots.", In: velerov1.BackupSpec{
				IncludeClusterResources: ptr.To(true), ExcludedResources: []string{snapshots, contents},
			}, Want: true,
		},
		"ByScope": {
			Reason: "Velero itself excludes snapshots with the scoped filter too.", In: velerov1.BackupSpec{
				ExcludedNamespaceScopedResources: []string{snapshots}, ExcludedClusterScopedResources: []string{contents},
			}, Want: true,
		},
		"Included":          {Reason: "The user has selected resources.", In: velerov1.BackupSpec{IncludedResources: []string{"buckets.cloud.example.org"}}},
		"IncludedByScope":   {Reason: "The user has selected resources with the scoped filter.", In: velerov1.BackupSpec{IncludedClusterScopedResources: []string{"*"}}},
		"IncludedInScope":   {Reason: "The user has selected namespaced resources.", In: velerov1.BackupSpec{IncludedNamespaceScopedResources: []string{"configmaps"}}},
		"ExcludedByScope":   {Reason: "The user has excluded cluster-scoped resources.", In: velerov1.BackupSpec{ExcludedClusterScopedResources: []string{contents, "nodes"}}},
		"ExcludedInScope":   {Reason: "The user has excluded namespaced resources.", In: velerov1.BackupSpec{ExcludedNamespaceScopedResources: []string{snapshots, "secrets"}}},
		"ExcludedNamespace": {Reason: "The user has excluded the namespace.", In: velerov1.BackupSpec{ExcludedNamespaces: []string{"inf*"}}},
	}, func(in velerov1.BackupSpec) bool {
		return includesSecretsOf(&velerov1.Backup{Spec: in}, "infra")
	})
}

func TestDiscoveryWarnsOfWhatIsClusterScoped(t *testing.T) {
	byScope := func(change func(s *velerov1.BackupSpec)) velerov1.BackupSpec {
		s := velerov1.BackupSpec{ExcludedNamespaceScopedResources: []string{snapshots}, ExcludedClusterScopedResources: []string{contents}}
		if change != nil {
			change(&s)
		}

		return s
	}
	xptest.Run(t, map[string]xptest.Row[velerov1.BackupSpec, int]{
		"All":  {Reason: "Velero counts its own exclusions as a user's filter.", In: byScope(nil), Want: 1},
		"Star": {Reason: "A star includes all namespaces.", Want: 1, In: byScope(func(s *velerov1.BackupSpec) { s.IncludedNamespaces = []string{"*"} })},
		"Users": {
			Reason: "A user's additional exclusion gives the same warning.", Want: 1,
			In: byScope(func(s *velerov1.BackupSpec) { s.ExcludedClusterScopedResources = []string{"nodes", contents} }),
		},
		"WithCluster": {
			Reason: "The user has included all cluster-scoped resources.",
			In:     velerov1.BackupSpec{IncludeClusterResources: ptr.To(true), ExcludedResources: []string{snapshots, contents}},
		},
		"WithoutCluster": {
			Reason: "The user has excluded all cluster-scoped resources.", In: velerov1.BackupSpec{IncludeClusterResources: ptr.To(false), ExcludedResources: []string{snapshots, contents}},
		},
		"Excluded": {Reason: "The user has excluded some resources.", In: velerov1.BackupSpec{ExcludedResources: []string{"secrets", snapshots, contents}}},
		"Cluster":  {Reason: "The user has selected all cluster-scoped resources.", In: byScope(func(s *velerov1.BackupSpec) { s.IncludedClusterScopedResources = []string{"*"} })},
		"OneNamespace": {
			Reason: "A backup of some namespaces takes cluster-scoped objects that its items need.",
			In:     byScope(func(s *velerov1.BackupSpec) { s.IncludedNamespaces = []string{"team-a"} }),
		},
		"StarAndMore": {
			Reason: "Velero refuses a star beside other namespaces.", In: byScope(func(s *velerov1.BackupSpec) { s.IncludedNamespaces = []string{"*", "team-a"} }),
		},
		"OldVelero": {Reason: "A Velero version without its own exclusions takes everything.", In: velerov1.BackupSpec{}},
	}, func(in velerov1.BackupSpec) int {
		log, hook := logtest.NewNullLogger()
		d := NewDiscovery(clusterOf(), inStep, log)
		for _, namespace := range []string{"team-a", "team-b", "team-c"} {
			if _, _, _, _, err := d.Execute(xptest.Object("v1", "Namespace", "", namespace), &velerov1.Backup{Spec: in}); err != nil {
				t.Error(err)
			}
		}

		return len(hook.AllEntries())
	})
}
