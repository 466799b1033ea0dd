package backupitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// snapshots and contents are what Velero excludes from every backup, by resource or, without
// resource filters, by scope.
const snapshots, contents = "volumesnapshots.snapshot.storage.k8s.io", "volumesnapshotcontents.snapshot.storage.k8s.io"

func TestIncludesSecretsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		spec   velerov1.BackupSpec
		want   bool
	}{
		"None": {reason: "The Backup has no resource filter.", want: true},
		"ByResource": {
			reason: "Velero itself excludes snapshots.", spec: velerov1.BackupSpec{
				IncludeClusterResources: ptr.To(true), ExcludedResources: []string{snapshots, contents},
			}, want: true,
		},
		"ByScope": {
			reason: "Velero itself excludes snapshots with the scoped filter too.", spec: velerov1.BackupSpec{
				ExcludedNamespaceScopedResources: []string{snapshots}, ExcludedClusterScopedResources: []string{contents},
			}, want: true,
		},
		"Included":          {reason: "The user has selected resources.", spec: velerov1.BackupSpec{IncludedResources: []string{"buckets.cloud.example.org"}}},
		"ExcludedToo":       {reason: "The user has excluded more than Velero does.", spec: velerov1.BackupSpec{ExcludedResources: []string{"secrets", snapshots, contents}}},
		"IncludedByScope":   {reason: "The user has selected resources with the scoped filter.", spec: velerov1.BackupSpec{IncludedClusterScopedResources: []string{"*"}}},
		"IncludedInScope":   {reason: "The user has selected namespaced resources.", spec: velerov1.BackupSpec{IncludedNamespaceScopedResources: []string{"configmaps"}}},
		"ExcludedByScope":   {reason: "The user has excluded cluster-scoped resources.", spec: velerov1.BackupSpec{ExcludedClusterScopedResources: []string{contents, "nodes"}}},
		"ExcludedInScope":   {reason: "The user has excluded namespaced resources.", spec: velerov1.BackupSpec{ExcludedNamespaceScopedResources: []string{snapshots, "secrets"}}},
		"ExcludedNamespace": {reason: "The user has excluded the namespace.", spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"inf*"}}},
		"OtherNamespace":    {reason: "The user has excluded another namespace.", spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"team-b"}}, want: true},
	} {
		if got := includesSecretsOf(&velerov1.Backup{Spec: tc.spec}, "infra"); got != tc.want {
			t.Errorf("%s: %s\ngot %v, want %v", name, tc.reason, got, tc.want)
		}
	}
}

// Credentials are taken from any namespace, and only if a setting asks for it.
func TestTreeTakesCredentialsFromElsewhere(t *testing.T) {
	config := func(namespace string) *unstructured.Unstructured {
		return xptest.Object("m.example.org/v1", "ProviderConfig", namespace, "default",
			xptest.JSON(`{"spec":{"credentials":{"source":"Secret","secretRef":{"namespace":"infra","name":"creds","key":"k"}}}}`))
	}
	include := map[string]string{"provider-credentials": "include"}
	teamA := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, ExcludedClusterScopedResources: []string{contents}}
	some := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, IncludedResources: []string{"*"}}
	but := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, ExcludedNamespaces: []string{"infra"}}
	const left = "secrets infra/creds: its namespace is not in the backup. If it can't be created again, add infra to --include-namespaces [ExcludedByFilter]"
	creds := func(namespace string) []velero.ResourceIdentifier {
		return []velero.ResourceIdentifier{id("", "secrets", namespace, "creds")}
	}
	type want struct {
		Items []velero.ResourceIdentifier
		Left  []string
		// Beyond is the annotation that makes Velero look beyond its filters.
		Beyond string
	}
	cases := map[string]struct {
		reason              string
		item                *unstructured.Unstructured
		spec                velerov1.BackupSpec
		config, annotations map[string]string
		want                want
	}{
		"Asked":    {reason: "The cluster's setting includes credentials.", item: config(""), spec: teamA, config: include, want: want{Items: creds("infra"), Beyond: "true"}},
		"NotAsked": {reason: "No setting includes credentials.", item: config(""), spec: teamA},
		"Annotated": {
			reason: "An annotation includes credentials in one backup.", item: config(""), spec: teamA, annotations: map[string]string{"velero.crossplane.io/provider-credentials": "include"},
			want: want{Items: creds("infra"), Beyond: "true"},
		},
		"Refused": {
			reason: "An annotation excludes credentials from one backup.", item: config(""), spec: teamA, config: include,
			annotations: map[string]string{"velero.crossplane.io/provider-credentials": "exclude"},
		},
		"Everything": {reason: "A backup of everything already has all namespaces.", item: config(""), config: include, want: want{Items: creds("infra")}},
		"Own": {
			reason: "A namespaced ProviderConfig has credentials in its own namespace.", item: config("team-a"), spec: teamA, config: include, want: want{Items: creds("team-a")},
		},
		"SomeResources": {
			reason: "A user who selects resources also decides which ones stay out.", item: config(""), spec: some, config: include, want: want{Left: []string{left}},
		},
		"Excluded": {reason: "A user who excludes the namespace also excludes its credentials.", item: config(""), spec: but, config: include, want: want{Left: []string{left}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(xptest.Secret("creds", xptest.In("infra")), xptest.Secret("creds", xptest.In("team-a")))
			c.settings = tc.config
			res := backUp(c, xptest.With(tc.item, xptest.Annotated(xp.AnnotationMustInclude, "true")), &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}, Spec: tc.spec})
			if res.Err != nil {
				t.Fatal(res.Err)
			}
			got := want{Items: res.Items, Left: res.Left, Beyond: res.Stored.GetAnnotations()[xp.AnnotationMustInclude]}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDiscoveryWarnsOfWhatIsClusterScoped(t *testing.T) {
	byScope := func(change func(s *velerov1.BackupSpec)) velerov1.BackupSpec {
		s := velerov1.BackupSpec{ExcludedNamespaceScopedResources: []string{snapshots}, ExcludedClusterScopedResources: []string{contents}}
		if change != nil {
			change(&s)
		}

		return s
	}
	cases := map[string]struct {
		reason string
		spec   velerov1.BackupSpec
		want   int
	}{
		"All": {reason: "Velero counts its own exclusions as a user's filter.", spec: byScope(nil), want: 1},
		"Star": {
			reason: "A star includes all namespaces.", want: 1, spec: byScope(func(s *velerov1.BackupSpec) { s.IncludedNamespaces = []string{"*"} }),
		},
		"Users": {
			reason: "A user's additional exclusion gives the same warning.", want: 1,
			spec: byScope(func(s *velerov1.BackupSpec) { s.ExcludedClusterScopedResources = []string{"nodes", contents} }),
		},
		"WithCluster": {
			reason: "The user has included all cluster-scoped resources.",
			spec:   velerov1.BackupSpec{IncludeClusterResources: ptr.To(true), ExcludedResources: []string{snapshots, contents}},
		},
		"WithoutCluster": {
			reason: "The user has excluded all cluster-scoped resources.", spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(false), ExcludedResources: []string{snapshots, contents}},
		},
		"Resources": {reason: "The user has selected all resources.", spec: velerov1.BackupSpec{IncludedResources: []string{"*"}}},
		"Excluded":  {reason: "The user has excluded some resources.", spec: velerov1.BackupSpec{ExcludedResources: []string{"secrets", snapshots, contents}}},
		"Cluster":   {reason: "The user has selected all cluster-scoped resources.", spec: byScope(func(s *velerov1.BackupSpec) { s.IncludedClusterScopedResources = []string{"*"} })},
		"OneNamespace": {
			reason: "A backup of some namespaces takes cluster-scoped objects that its items need.",
			spec:   byScope(func(s *velerov1.BackupSpec) { s.IncludedNamespaces = []string{"team-a"} }),
		},
		"StarAndMore": {
			reason: "Velero refuses a star beside other namespaces.", spec: byScope(func(s *velerov1.BackupSpec) { s.IncludedNamespaces = []string{"*", "team-a"} }),
		},
		"WithoutNamespace": {
			reason: "An exclusion makes it a backup of some namespaces.", spec: byScope(func(s *velerov1.BackupSpec) { s.ExcludedNamespaces = []string{"team-b"} }),
		},
		"OldVelero": {reason: "A Velero version without its own exclusions takes everything.", spec: velerov1.BackupSpec{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			d := NewDiscovery(clusterOf(), inStep, log)
			for _, namespace := range []string{"team-a", "team-b", "team-c"} {
				if _, _, _, _, err := d.Execute(xptest.Object("v1", "Namespace", "", namespace), &velerov1.Backup{Spec: tc.spec}); err != nil {
					t.Fatal(err)
				}
			}
			if got := len(hook.AllEntries()); got != tc.want {
				t.Errorf("%s\ngot %d warnings, want %d: %v", tc.reason, got, tc.want, hook.AllEntries())
			}
		})
	}
}
