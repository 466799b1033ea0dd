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
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"))
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
		"MR":         {reason: "The backup has the MR's Secret.", item: mr, cluster: of(mr), want: true},
		"XR":         {reason: "The Secret of an XR may hold values that a function generated.", item: xr, cluster: of(xr), want: true},
		"Claim":      {reason: "Crossplane copies a claim's Secret from its XR's.", item: claim, cluster: of(claim)},
		"Beyond":     {reason: "The backup takes the Secret from another namespace.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{IncludedNamespaces: teamA}, want: true},
		"Forged":     {reason: "The plugin ignores a note that a user wrote.", item: xptest.With(mr, xptest.Published()), cluster: clusterOf()},
		"OtherOwner": {reason: "The Secret belongs to another object.", item: mr, cluster: of(xr)},
		"Deleting":   {reason: "Velero does not back up a Secret that is being deleted.", item: mr, cluster: of(mr, xptest.Deleting())},
		"Labelled": {
			reason: "The Secret's label excludes it from backups.", item: mr, cluster: of(mr, xptest.Labelled("velero.io/exclude-from-backup", "true")),
		},
		"Unreadable": {reason: "An unreadable Secret may not be in the backup.", item: mr, cluster: &cluster{down: true}},
		"Excluded": {
			reason: "The backup excludes the Secret's namespace.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"infra"}},
		},
		"OtherScoped": {
			reason: "The backup includes other namespaced resources only.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{IncludedNamespaceScopedResources: []string{"configmaps"}},
		},
		"WithSecrets": {
			reason: "The backup includes Secrets.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{IncludedResources: []string{"secrets"}}, want: true,
		},
		"NoSecrets": {reason: "The backup excludes Secrets.", item: mr, cluster: of(mr), spec: velerov1.BackupSpec{ExcludedResources: []string{"secrets"}}},
		"ClusterOnly": {
			reason: "Without cluster-scoped objects the backup has no MR that could wait for the Secret.", item: mr, cluster: of(mr),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA, IncludeClusterResources: ptr.To(false)},
		},
		"Config": {reason: "No object waits for credentials.", item: config, cluster: of(config)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := backUp(t, tc.cluster, tc.item, &velerov1.Backup{Spec: tc.spec})
			if published := xp.HasFlag(got.Stored, xp.FieldPublished); published != tc.want {
				t.Errorf("%s\ngot %v, want %v", tc.reason, published, tc.want)
			}
		})
	}
}
