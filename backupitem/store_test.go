package backupitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func storeConfig(group, spec string) *unstructured.Unstructured {
	return xptest.Object(group+"/v1alpha1", "StoreConfig", "", "default", xptest.JSON(`{"spec":`+spec+`}`))
}

// A Secret of a secret store is an object's own if it has the object's UID. Nothing else shows
// whose it is.
func TestTreeOfASecretStore(t *testing.T) {
	const inInfra = `{"defaultScope":"infra"}`
	own := storeConfig(xp.GroupSecrets, inInfra)
	theirs := storeConfig("example.org", inInfra)
	stores := xptest.StoresTo("default", "s")
	xr, mr, claim := xptest.XR("x", stores), xptest.MR("b", stores), xptest.Claim("o", stores)
	of := func(owner *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Secret("s", append([]xptest.Option{xptest.In("infra"), xptest.StoredBy(owner)}, o...)...)
	}
	secret := id("", "secrets", "infra", "s")
	config, providers := id(xp.GroupSecrets, "storeconfigs", "", "default"), id("example.org", "storeconfigs", "", "default")
	infra := xptest.Object("v1", "Namespace", "", "infra")
	const anothers = "Secret infra/s: it does not exist, or its label secret.crossplane.io/owner-uid is not the UID of Bucket b [NotLinked]"
	type want struct {
		Items, Before   []velero.ResourceIdentifier
		Left            []string
		Stored, Outside string
	}
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		cluster *cluster
		spec    velerov1.BackupSpec
		want    want
	}{
		"XR": {
			reason: "Crossplane's own StoreConfig names the namespace.", item: xr, cluster: clusterOf(own, of(xr)),
			want: want{Items: []velero.ResourceIdentifier{config, secret}, Before: []velero.ResourceIdentifier{config}, Stored: "Secret infra/s"},
		},
		"MR": {
			reason: "The StoreConfig of the MR's provider or its family names the namespace.", item: mr, cluster: clusterOf(own, theirs, of(mr)),
			want: want{Items: []velero.ResourceIdentifier{providers, secret}, Before: []velero.ResourceIdentifier{providers}, Stored: "Secret infra/s"},
		},
		"Claim": {
			reason: "A claim publishes to its own namespace.", item: claim, cluster: clusterOf(own, xptest.Secret("s", xptest.StoredBy(claim)), of(claim)),
			want: want{
				Items: []velero.ResourceIdentifier{config, id("", "secrets", "team-a", "s")}, Before: []velero.ResourceIdentifier{config}, Stored: "Secret team-a/s",
			},
		},
		"OfAnyType": {
			reason: "The object can choose the type of its Secret.", item: mr, cluster: clusterOf(theirs, of(mr, xptest.Field("Opaque", "type"))),
			want: want{Items: []velero.ResourceIdentifier{providers, secret}, Before: []velero.ResourceIdentifier{providers}, Stored: "Secret infra/s"},
		},
		"Beyond": {
			reason: "The Secret belongs to its publisher, whatever its namespace.", item: mr, cluster: clusterOf(theirs, of(mr), infra),
			spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}},
			want: want{Items: []velero.ResourceIdentifier{providers, secret}, Before: []velero.ResourceIdentifier{providers}, Stored: "Secret infra/s"},
		},
		"OtherOwner": {
			reason: "A user can name any Secret, so its owner label must match.", item: mr, cluster: clusterOf(theirs, of(xr)),
			want: want{Items: []velero.ResourceIdentifier{providers}, Before: []velero.ResourceIdentifier{providers}, Left: []string{anothers}},
		},
		"Unlabelled": {
			reason: "The Secret has no label with its publisher.", item: mr, cluster: clusterOf(theirs, xptest.Secret("s", xptest.In("infra"))),
			want: want{Items: []velero.ResourceIdentifier{providers}, Before: []velero.ResourceIdentifier{providers}, Left: []string{anothers}},
		},
		"Excluded": {
			reason: "The backup excludes the Secret's namespace.", item: mr, cluster: clusterOf(theirs, of(mr), infra),
			spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"infra"}},
			want: want{
				Items: []velero.ResourceIdentifier{providers}, Before: []velero.ResourceIdentifier{providers},
				Left: []string{"secrets infra/s: its namespace is not in the backup. If it can't be created again, add infra to --include-namespaces [ExcludedByFilter]"},
			},
		},
		"NoConfig": {
			reason: "Without a StoreConfig no provider publishes.", item: mr, cluster: clusterOf(own, of(mr)),
			want: want{Left: []string{"StoreConfig default: it does not exist, so nothing is published with it. Create it; or, if External Secret Stores are not enabled, " +
				"remove spec.publishConnectionDetailsTo [StoreConfigNotFound]"}},
		},
		"Plugin": {
			reason: "A store outside the cluster is in no backup.", item: mr, cluster: clusterOf(storeConfig("example.org", `{"type":"Plugin"}`)),
			want: want{
				Items: []velero.ResourceIdentifier{providers}, Before: []velero.ResourceIdentifier{providers}, Outside: "StoreConfig default",
				Left: []string{`StoreConfig default: it publishes in a store of type "Plugin", which no backup of this cluster has. If that refuses the restored object ` +
					"as not its owner, set the tag secret.crossplane.io/owner-uid of s there to the object's new UID [SecretStoreOutside]"},
			},
		},
		"API": {
			reason: "An unreadable StoreConfig stays out of the backup, but its XR does not.", item: xr, cluster: clusterOf(own).without(own),
			want: want{Left: []string{unreadableWarning("StoreConfig default", "StoreConfig.secrets.crossplane.io")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := backUp(tc.cluster, tc.item, &velerov1.Backup{Spec: tc.spec})
			got := want{Items: r.Items, Before: r.Before, Outside: xp.StoredOutside(r.Stored)}
			for _, left := range r.Left {
				if !strings.HasPrefix(left, "Composition") && !strings.HasPrefix(left, "CompositeResourceDefinition") {
					got.Left = append(got.Left, left)
				}
			}
			if s, ok := xp.Stored(r.Stored); ok {
				got.Stored = s.String()
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" || r.Err != nil {
				t.Errorf("%s: %v\n-want, +got:\n%s", tc.reason, r.Err, diff)
			}
			tc.cluster.checkCost(t)
		})
	}
}

// The list of a claim has what its tree has published.
func TestTreeListsWhatIsInSecretStores(t *testing.T) {
	config := storeConfig(xp.GroupSecrets, `{"defaultScope":"infra"}`)
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")), xptest.StoresTo("default", "c"))
	xr := xptest.XR("x", xptest.ClaimedBy(claim), xptest.StoresTo("default", "s"))
	c := clusterOf(config, claim, xr, xptest.Secret("s", xptest.In("infra"), xptest.StoredBy(xr)), xptest.Secret("c", xptest.StoredBy(claim)))
	got := backUp(c, claim, &velerov1.Backup{})
	want := []velero.ResourceIdentifier{xorder("x"), id("", "secrets", "infra", "s")}
	if diff := cmp.Diff(want, got.Before); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
