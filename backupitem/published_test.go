package backupitem

import (
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A restore that excludes a connection secret knows only from the item that there is one.
func TestTreeNotesWhichSecretsTheBackupHas(t *testing.T) {
	mr, local := xptest.MR("b", xptest.PublishesTo("infra", "s")), xptest.NamespacedMR("b", xptest.PublishesTo("", "s"))
	xr, claim := xptest.XR("x", xptest.PublishesTo("infra", "s")), xptest.Claim("o", xptest.PublishesTo("", "s"))
	config := xptest.Object("m.example.org/v1", "ProviderConfig", "", "default", xptest.JSON(`{"spec":{"credentials":{"secretRef":{"namespace":"infra","name":"s"}}}}`))
	of := func(owner *unstructured.Unstructured, o ...xptest.Option) *cluster {
		namespace := "infra"
		if owner.GetNamespace() != "" {
			namespace = owner.GetNamespace()
		}

		return clusterOf(xptest.Secret("s", append(o, xptest.In(namespace), xptest.ControlledBy(owner))...), xptest.Object("v1", "Namespace", "", "infra"))
	}
	teamA := []string{"team-a"}
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		cluster *cluster
		spec    velerov1.BackupSpec
		want    bool
	}{
		"MR":         {reason: "The backup has it.", item: mr, cluster: of(mr), want: true},
		"Namespaced": {reason: "The same on Crossplane v2.", item: local, cluster: of(local), want: true},
		"XR":         {reason: "An XR's can have what a function has made up.", item: xr, cluster: of(xr), want: true},
		"Claim":      {reason: "Crossplane copies a claim's from its XR's.", item: claim, cluster: of(claim)},
		"Beyond":     {reason: "It is taken from another namespace.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{IncludedNamespaces: teamA}, want: true},
		"Forged": {
			reason: "What somebody has written into the item says nothing.", item: xptest.With(mr, xptest.Published()), cluster: clusterOf(),
		},
		"Unpublished": {reason: "There is none yet.", item: mr, cluster: clusterOf()},
		"Anothers":    {reason: "It is not this one's.", item: mr, cluster: of(xr)},
		"Deleting":    {reason: "Velero does not back it up.", item: mr, cluster: of(mr, xptest.Deleting())},
		"Labelled": {
			reason: "It has the label that keeps it out.", item: mr, cluster: of(mr, xptest.Labelled("velero.io/exclude-from-backup", "true")),
		},
		"Unreadable": {reason: "It may not be in the backup.", item: mr, cluster: &cluster{down: true}},
		"Excluded": {
			reason: "The backup leaves its namespace out.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"infra"}},
		},
		"OtherResources": {
			reason: "The backup is of other resources.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{IncludedResources: []string{"buckets.cloud.example.org"}},
		},
		"OtherScoped": {
			reason: "The same by scope.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{IncludedNamespaceScopedResources: []string{"configmaps"}},
		},
		"WithSecrets": {
			reason: "They are among the resources.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{IncludedResources: []string{"secrets"}}, want: true,
		},
		"AllResources": {reason: "A star is all.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{IncludedResources: []string{"*"}}, want: true},
		"NoSecrets":    {reason: "All but these.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{ExcludedResources: []string{"secrets"}}},
		"NoSecretsInScope": {
			reason: "The same by scope.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{ExcludedNamespaceScopedResources: []string{"secret"}},
		},
		"ClusterOnly": {
			reason: "Without cluster-scoped objects there is no MR in the backup that could wait for it.", item: mr, cluster: of(mr),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA, IncludeClusterResources: ptr.To(false)},
		},
		"Config": {reason: "Nothing waits for credentials.", item: config, cluster: of(config)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := backUp(tc.cluster, tc.item, &velerov1.Backup{Spec: tc.spec})
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			if published := xp.Published(got.Stored); published != tc.want {
				t.Errorf("%s\ngot %v, want %v", tc.reason, published, tc.want)
			}
		})
	}
}
