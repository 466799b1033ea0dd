package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A Secret of a secret store has the UID of the backup, which the hold keeps.
func TestAdoptAwaitsWhatIsInASecretStore(t *testing.T) {
	old := xptest.UID("old")
	mr := xptest.MR("b", old, xptest.StoresTo("default", "s"), xptest.Stored("infra", "s"))
	xr := xptest.XR("x", old, xptest.StoresTo("default", "s"), xptest.Stored("infra", "s"))
	claim := xptest.Claim("o", old, xptest.StoresTo("default", "s"), xptest.Stored("team-a", "s"))
	infra := xptest.Object("v1", "Namespace", "", "infra")
	stored := &adoption.Stored{Namespace: "infra", Name: "s", UID: "old"}
	left := *stored
	left.By = "velero restore create --from-backup nightly --include-namespaces infra --include-resources secrets"
	asked := []velero.ResourceIdentifier{id("", "secrets", "infra", "s")}
	all, ofTeamA := velerov1.RestoreSpec{BackupName: "nightly"}, velerov1.RestoreSpec{BackupName: "nightly", IncludedNamespaces: []string{"team-a"}}
	type want struct {
		Stored *adoption.Stored
		First  []velero.ResourceIdentifier
	}
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		spec   velerov1.RestoreSpec
		want   want
	}{
		"MR":         {reason: "The hold records the Secret, which is its only reason.", item: mr, spec: all, want: want{Stored: stored}},
		"XR":         {reason: "An XR is always held, and its hold records the Secret.", item: xr, spec: all, want: want{Stored: stored}},
		"Claim":      {reason: "A claim publishes to its own namespace.", item: claim, spec: all, want: want{Stored: &adoption.Stored{Namespace: "team-a", Name: "s", UID: "old"}}},
		"Namespaces": {reason: "The restore brings the Secret from the namespace that it is in.", item: mr, spec: ofTeamA, want: want{Stored: &left, First: asked}},
		"Mapped": {
			reason: "The Secret goes to the claim's mapped namespace.", item: claim, want: want{Stored: &adoption.Stored{Namespace: "copy", Name: "s", UID: "old"}},
			spec: velerov1.RestoreSpec{BackupName: "nightly", NamespaceMapping: map[string]string{"team-a": "copy"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			restore := restoreOf(nil)
			restore.Spec = tc.spec
			c := live(infra)
			c.reconciled = publishing()
			out, err := NewAdopt(Crossplane(), c, nil, log, WithRequestedItems(&RequestedItems{})).Execute(inputFor(tc.item, restore))
			if err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
			u.SetNamespace(targetNamespace(u.GetNamespace(), restore)) // As Velero does.
			h, err := adoption.HoldOf(u)
			if err != nil || h == nil {
				t.Fatal(h, err)
			}
			if diff := cmp.Diff(tc.want, want{Stored: h.Stored, First: out.AdditionalItems}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A note names each StoreConfig of a store outside of the cluster once.
func TestAdoptNamesStoresOutsideOfTheCluster(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	a := NewAdopt(Crossplane(), live(), nil, log, WithRequestedItems(&RequestedItems{}))
	var reported []bool
	for _, name := range []string{"a", "b"} {
		mr := xptest.MR(name, xptest.StoresTo("vault", "s"), xptest.Field(map[string]any{"storeConfig": "StoreConfig vault"}, "metadata", xp.FieldStored))
		out, err := a.Execute(inputFor(mr, restoreOf(nil)))
		if err != nil {
			t.Fatal(err)
		}
		reported = append(reported, strings.Contains(out.OperationID, "It publishes with StoreConfig vault in a store outside of this cluster"))
	}
	if diff := cmp.Diff([]bool{true, false}, reported); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// A Secret from a namespace that is not included must have the UID of the item that requested it.
func TestOrderTakesWhatIsInASecretStoreOnlyForItsOwner(t *testing.T) {
	mr := xptest.MR("b", xptest.UID("old"), xptest.StoresTo("default", "s"), xptest.Stored("infra", "s"))
	cases := map[string]struct {
		reason string
		secret *unstructured.Unstructured
		want   bool
	}{
		"OwnSecret":  {reason: "The Secret has its publisher's UID.", secret: xptest.Secret("s", xptest.In("infra"), xptest.StoredBy(mr), xptest.Field("Opaque", "type")), want: true},
		"OtherOwner": {reason: "The Secret has the UID of another publisher.", secret: xptest.Secret("s", xptest.In("infra"), xptest.StoredBy(xptest.MR("c")))},
		"Unowned":    {reason: "The Secret has no publisher's UID.", secret: xptest.Secret("s", xptest.In("infra"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			requested, restore := &RequestedItems{}, restoreOf(nil)
			restore.Spec = teamA()
			c := live(xptest.Object("v1", "Namespace", "", "infra"))
			c.reconciled = publishing()
			if _, err := NewAdopt(Crossplane(), c, nil, log, WithRequestedItems(requested)).Execute(inputFor(mr, restore)); err != nil {
				t.Fatal(err)
			}
			out, err := NewOrder(Crossplane(), ResourceMapperFn(served), requested, log).Execute(inputFor(tc.secret, restore))
			if err != nil {
				t.Fatal(err)
			}
			if out.SkipRestore == tc.want {
				t.Errorf("%s\nrestored: %v, want %v", tc.reason, !out.SkipRestore, tc.want)
			}
		})
	}
}

// An MR requests its provider's StoreConfig like its ProviderConfig, and in a restore by labels
// what is in the store.
func TestOrderBringsSecretStores(t *testing.T) {
	listed := xptest.RestoreFirst("storeconfigs.example.org//default")
	mr := xptest.MR("b", xptest.StoresTo("default", "s"), xptest.Stored("infra", "s"), listed)
	config := id("example.org", "storeconfigs", "", "default")
	claim := xptest.Claim("o")
	xr := xptest.XR("x", xptest.ClaimedBy(claim), xptest.StoresTo("default", "s"), xptest.RestoreFirst("storeconfigs.secrets.crossplane.io//default"))
	runOrders(t, map[string]orderCase{
		"XR": {
			reason: "A restore of a namespace also brings the StoreConfig that the Composition names.", item: xr, spec: teamA(),
			want: ordering{First: []velero.ResourceIdentifier{id(xp.GroupSecrets, "storeconfigs", "", "default")}},
		},
		"OtherStoreConfig": {
			reason: "The XR does not name this StoreConfig.", item: xptest.With(xr, xptest.StoresTo("vault", "s")), spec: teamA(),
		},
		"Claim": {
			reason: "A namespaced object brings no object of the platform.", spec: teamA(),
			item: xptest.With(claim, xptest.StoresTo("default", "s"), xptest.RestoreFirst("storeconfigs.secrets.crossplane.io//default")),
		},
		"MR": {reason: "The StoreConfig belongs to the MR's provider.", item: mr, want: ordering{First: []velero.ResourceIdentifier{config}}},
		"Label": {
			reason: "The Secret may lack the label.", item: mr, want: ordering{First: []velero.ResourceIdentifier{config, id("", "secrets", "infra", "s")}},
			spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}},
		},
	})
}
