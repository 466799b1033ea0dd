package restoreitem

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	admin    = "clusterrolebindings.rbac.authorization.k8s.io//admin"
	anothers = "secrets/team-b/s"
	config   = "providerconfigs.cloud.example.org//default"
)

// A user with access to the bucket can write a list onto any stored copy. A restore of one
// namespace must not restore others because of it.
func TestOrderIgnoresForgedLists(t *testing.T) {
	forged := xptest.RestoreFirst(admin, "namespaces//kube-public", "providers.pkg.crossplane.io//evil", anothers, "localbuckets.cloud.example.org/team-b/b",
		"compositions.apiextensions.crossplane.io//another", "compositionrevisions.apiextensions.crossplane.io//another-1",
		"compositeresourcedefinitions.apiextensions.crossplane.io//things.other.org", "buckets.cloud.example.org//theirs", config)
	provider := id("cloud.example.org", "providerconfigs", "", "default")
	uses := xptest.JSON(`{"spec":{"providerConfigRef":{"name":"default"}}}`)
	usesOwn := xptest.JSON(`{"spec":{"providerConfigRef":{"kind":"ProviderConfig","name":"own"}}}`)
	both := velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a", "infra"}}
	labelled := both
	labelled.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	tampered := warned(reason.BackupTampered)
	instance := func(left string) ordering {
		return ordering{
			First:  []velero.ResourceIdentifier{id("cloud.example.org", "buckets", "", "theirs"), provider},
			Warned: []string{string(reason.PlatformLeftOut), string(reason.ClusterScopedLeftOut), "leaves out " + left + "localbuckets.cloud.example.org/team-b/b"},
		}
	}
	runOrders(t, map[string]orderCase{
		"Secret": {reason: "The plugin writes no list on Secrets, so this one is forged.", item: xptest.Secret("s", forged), spec: teamA(), want: tampered},
		"SecretOfAnXR": {
			reason: "A finalizer does not make a Secret an XR.", spec: teamA(), want: tampered,
			item: xptest.Secret("s", forged, xptest.Finalizers(xp.FinalizerComposite), xptest.JSON(`{"spec":{"compositionRef":{"name":"another"}}}`)),
		},
		"Thing": {
			reason: "The plugin writes no list on objects outside Crossplane.", item: xptest.Object("example.org/v1", "Thing", "team-a", "t", forged), spec: teamA(),
			want: tampered,
		},
		"Usage": {
			reason: "The plugin writes no list on Crossplane's own kinds.", item: xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "u", forged),
			spec: teamA(), want: tampered,
		},
		"MR": {
			reason: "The list of an MR has only its ProviderConfig.", item: xptest.MR("b", forged, uses), spec: teamA(),
			want: ordering{First: []velero.ResourceIdentifier{provider}, Warned: tampered.Warned},
		},
		"NamespacedMR": {
			reason: "A cluster-scoped ProviderConfig belongs to the platform.", item: xptest.NamespacedMR("b", xptest.RestoreFirst(config), uses), spec: teamA(),
			want: warned(reason.ClusterScopedLeftOut),
		},
		"NamespacedMROfAll": {
			reason: "A restore of everything has the ProviderConfig and must bring it first.", item: xptest.NamespacedMR("b", xptest.RestoreFirst(config), uses),
			want: ordering{First: []velero.ResourceIdentifier{provider}},
		},
		"LocalConfig": {
			reason: "A ProviderConfig in the tenant's namespace belongs to the tenant.", spec: teamA(),
			item: xptest.NamespacedMR("b", xptest.RestoreFirst("providerconfigs.example.org/team-a/own"), usesOwn),
			want: ordering{First: []velero.ResourceIdentifier{id("example.org", "providerconfigs", "team-a", "own")}},
		},
		"ConfigInOtherNamespace": {
			reason: "A ProviderConfig in another namespace does not belong to this tenant.", spec: teamA(), want: tampered,
			item: xptest.NamespacedMR("b", xptest.RestoreFirst("providerconfigs.example.org/team-b/own"), usesOwn),
		},
		"OtherConfig": {reason: "An MR names its own ProviderConfig, so the list must match.", item: xptest.MR("b", xptest.RestoreFirst(config)), spec: teamA(), want: tampered},
		"Claim":       {reason: "The plugin checks composed kinds when they come, and the publisher brings its Secret.", item: xptest.Claim("o", forged), spec: teamA(), want: instance("")},
		"XR":          {reason: "An XR itself names the objects that it needs.", item: xptest.XR("x", forged), spec: teamA(), want: instance("")},
		"ModernXR":    {reason: "A namespaced XR itself names the objects that it needs.", item: xptest.XRV2("x", forged), spec: teamA(), want: instance(anothers + ", ")},
		"Own": {
			reason: "Objects in the claim's namespace belong to the claim, and connection secrets can be anywhere in the restore.", spec: both,
			item: xptest.Claim("o", xptest.RestoreFirst("secrets/team-a/s", "configmaps/team-a/c", "secrets/infra/s", "configmaps/infra/c",
				"clusterusages.protection.crossplane.io//u", "environmentconfigs.apiextensions.crossplane.io//e", "usages.apiextensions.crossplane.io//u")),
			want: ordering{First: []velero.ResourceIdentifier{
				id("", "secrets", "team-a", "s"), id("", "configmaps", "team-a", "c"), id("", "secrets", "infra", "s"), id("protection.crossplane.io", "clusterusages", "", "u"),
				id("apiextensions.crossplane.io", "environmentconfigs", "", "e"), id("apiextensions.crossplane.io", "usages", "", "u"),
			}},
		},
		"OwnByLabel": {
			reason: "In another namespace, resources of the tree may have no labels.", spec: labelled,
			item: xptest.Claim("o", xptest.RestoreFirst("configmaps/infra/c", "configmaps/team-b/c")),
			want: ordering{First: []velero.ResourceIdentifier{id("", "configmaps", "infra", "c")}, Warned: []string{"leaves out configmaps/team-b/c"}},
		},
		"OfAll": {
			reason: "A restore of everything leaves nothing out.", item: xptest.Claim("o", xptest.RestoreFirst(admin, anothers)),
			want: ordering{First: []velero.ResourceIdentifier{id("rbac.authorization.k8s.io", "clusterrolebindings", "", "admin"), id("", "secrets", "team-b", "s")}},
		},
		"Composes": {
			reason: "In a backup without lists an XR cannot bring objects that no action checks.", spec: teamA(),
			item: xptest.XR("x", xptest.ClaimedBy(xptest.Claim("o")), xptest.Refs(xptest.Object("v1", "Node", "", "n"), xptest.MR("b"))),
			want: ordering{First: platform(bucketB()), Warned: []string{string(reason.ClusterScopedLeftOut)}},
		},
	})
	few := make([]xp.Item, 6)
	if got := firstFew(few); !strings.HasSuffix(got, " and 1 more") {
		t.Errorf("a warning must name the first few, and the number of the others: %s", got)
	}
}

// A bucket is what Velero finds in a backup. It restores requested items before it goes on, and
// comes to each item once (velero pkg/restore/restore.go, restoreItem).
type bucket struct {
	order  *Order
	spec   velerov1.RestoreSpec
	files  map[velero.ResourceIdentifier]*unstructured.Unstructured
	seen   map[velero.ResourceIdentifier]bool
	kept   []string
	warned *logtest.Hook
}

func newBucket(spec velerov1.RestoreSpec, files map[velero.ResourceIdentifier]*unstructured.Unstructured) *bucket {
	log, hook := logtest.NewNullLogger()

	return &bucket{
		order: NewOrder(Crossplane(), kindsFn(served), log, Shared{}), spec: spec, files: files, seen: map[velero.ResourceIdentifier]bool{}, warned: hook,
	}
}

func (b *bucket) restore(t *testing.T, i velero.ResourceIdentifier) {
	t.Helper()
	u := b.files[i]
	if u == nil || b.seen[i] || i.Namespace == "" && !ptr.Deref(b.spec.IncludeClusterResources, true) {
		return
	}
	b.seen[i] = true
	out := execute(t, b.order, u, restoreWith(b.spec))
	if out.SkipRestore {
		return
	}
	for _, first := range out.AdditionalItems {
		b.restore(t, first)
	}
	b.order.Requested.restored(u) // As Adopt does.
	b.kept = append(b.kept, xp.String(u))
}

func (b *bucket) logged(part string) bool {
	return slices.ContainsFunc(b.warned.AllEntries(), func(e *logrus.Entry) bool { return strings.Contains(e.Message, part) })
}

func (b *bucket) codes() (codes []reason.Code) {
	for _, e := range b.warned.AllEntries() {
		codes = append(codes, reason.Code(fmt.Sprint(e.Data["reason"])))
	}

	return codes
}

// An XR can name any Composition, revision or XRD. They come only if they are for its kind.
func TestOrderBringsThePlatformOfTheKindOnly(t *testing.T) {
	legacy, modern := xptest.XR("x", xptest.ClaimedBy(xptest.Claim("o"))), xptest.XRV2("m")
	first, then := id("example.org", "xorders", "", "x"), id("example.org", "orders", "team-a", "m")
	composition, revision := id(xp.GroupAPIExtensions, "compositions", "", xptest.CompositionName), id(xp.GroupAPIExtensions, "compositionrevisions", "", xptest.RevisionName)
	xrd := id(xp.GroupAPIExtensions, "compositeresourcedefinitions", "", "xorders.example.org")
	definition := xptest.XRD("xorders.example.org", xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder","plural":"xorders"},"claimNames":{"kind":"OrderClaim"}}}`))
	files := map[velero.ResourceIdentifier]*unstructured.Unstructured{
		first: legacy, then: modern, composition: xptest.Composition(xptest.CompositionName, legacy), revision: xptest.Revision(xptest.RevisionName, legacy), xrd: definition,
	}
	another := maps.Clone(files)
	another[first] = xptest.With(legacy, xptest.Field("another", "spec", "compositionRef", "name"))
	others := map[velero.ResourceIdentifier]*unstructured.Unstructured{
		then:        xptest.With(modern, xptest.RestoreFirst("compositions.apiextensions.crossplane.io//orders", "compositeresourcedefinitions.apiextensions.crossplane.io//xorders.example.org")),
		composition: files[composition], xrd: definition,
	}
	whole := []string{"Composition orders", "CompositionRevision orders-1a2b3c", "CompositeResourceDefinition xorders.example.org", "XOrder x"}
	both := []reason.Code{reason.PlatformLeftOut, reason.PlatformLeftOut}
	firstOnly, thenOnly := []velero.ResourceIdentifier{first}, []velero.ResourceIdentifier{then}
	for name, tc := range map[string]struct {
		reason string
		files  map[velero.ResourceIdentifier]*unstructured.Unstructured
		spec   velerov1.RestoreSpec
		order  []velero.ResourceIdentifier
		want   []string
		warned []reason.Code
		logged string
	}{
		"OfItsKind": {reason: "An XR brings what it needs, and a Composition comes before its revision.", files: files, spec: teamA(), order: firstOnly, want: whole},
		"OfAnother": {
			reason: "An XR must not bring a Composition for another kind.", files: files, spec: teamA(), order: thenOnly, want: []string{"Order team-a/m"}, warned: both,
			logged: "it is for the kind XOrder.example.org, and only Order team-a/m named it",
		},
		"ListedOfAnother": {reason: "An XR's list must not bring it either.", files: others, spec: teamA(), order: thenOnly, want: []string{"Order team-a/m"}, warned: both},
		"FirstOfItsKind": {
			reason: "Objects that came for their own kind are live for another kind too.", files: files, spec: teamA(), order: []velero.ResourceIdentifier{first, then},
			want: append(slices.Clone(whole), "Order team-a/m"),
		},
		"FirstOfAnother": {
			reason: "Velero restores an item once, so the plugin names an XR that misses its object.", files: files, spec: teamA(),
			order: []velero.ResourceIdentifier{then, first}, want: []string{"Order team-a/m", "CompositeResourceDefinition xorders.example.org", "XOrder x"},
			warned: slices.Concat(both, both), logged: `orders", which the restore left out when Order team-a/m named it`,
		},
		"CompositionOfAnother": {reason: "A revision brings no Composition that its XR does not run on.", files: another, spec: teamA(), order: firstOnly, want: whole[1:]},
		"EverythingByName": {
			reason: "Velero comes to the revisions first, by their name.", files: files, order: []velero.ResourceIdentifier{revision, composition}, want: whole[:2],
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBucket(tc.spec, tc.files)
			for _, i := range tc.order {
				b.restore(t, i)
			}
			if diff := cmp.Diff(tc.want, b.kept); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warned, b.codes(), cmpopts.EquateEmpty()); diff != "" || tc.logged != "" && !b.logged(tc.logged) {
				t.Errorf("%s\n-want, +warned:\n%s", tc.reason, diff)
			}
		})
	}
}

// What a forged list names must show whose it is, as what the claim itself names.
func TestOrderChecksListedItems(t *testing.T) {
	claim := id("example.org", "orderclaims", "team-a", "o")
	bucketOf := func(name string, o ...xptest.Option) (velero.ResourceIdentifier, *unstructured.Unstructured) {
		return id("cloud.example.org", "buckets", "", name), xptest.MR(name, o...)
	}
	mine, mineMR := bucketOf("mine", xptest.Labelled(xp.LabelClaimNamespace, "team-a"))
	theirs, theirsMR := bucketOf("theirs", xptest.Labelled(xp.LabelClaimNamespace, "team-b"))
	nobodys, nobodysMR := bucketOf("nobodys")
	shared := id("cloud.example.org", "providerconfigs", "", "default")
	roles := id("example.org", "clusterrolebindings", "", "admin")
	b := newBucket(teamA(), map[velero.ResourceIdentifier]*unstructured.Unstructured{
		claim: xptest.Claim("o", xptest.RestoreFirst("buckets.cloud.example.org//theirs", "buckets.cloud.example.org//mine", "buckets.cloud.example.org//nobodys", config,
			"clusterrolebindings.example.org//admin")),
		mine: mineMR, theirs: theirsMR, nobodys: nobodysMR, shared: xptest.Object("cloud.example.org/v1", "ProviderConfig", "", "default"),
		roles: xptest.Object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "admin"),
	})
	b.restore(t, claim)
	if diff := cmp.Diff([]string{"Bucket mine", "OrderClaim team-a/o"}, b.kept); diff != "" {
		t.Errorf("a restore of a namespace must not bring objects of others: -want, +got:\n%s", diff)
	}
	if !b.logged("ClusterRoleBinding admin is not restored: the name of its file is that of another kind") {
		t.Errorf("the log must name what is in the file of another kind: %v", b.codes())
	}
}

// A provider's credentials are the platform's, and in no namespace if the config is cluster-scoped.
func TestOrderOfProviderConfigs(t *testing.T) {
	const group, modern = "cloud.example.org", "m.example.org"
	config := func(group, kind, namespace string) *unstructured.Unstructured {
		return xptest.Object(group+"/v1", kind, namespace, "default")
	}
	own := config(group, "ProviderConfig", "")
	owned := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.NamespacedMR("b", xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "b"),
			xptest.OwnedBy(metav1.OwnerReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName()}))
	}
	usage := func(kind, namespace string) *unstructured.Unstructured {
		return xptest.Object("protection.crossplane.io/v1beta1", kind, namespace, "u",
			xptest.JSON(`{"spec":{"of":{"apiVersion":"`+group+`/v1","kind":"ProviderConfig","resourceRef":{"name":"default"}}}}`))
	}
	outside, refused := warned(reason.OutsideNamespace), warned(reason.ClusterScopedLeftOut)
	refused.Skipped = true
	first := func(group, resource, namespace string) ordering {
		return ordering{First: []velero.ResourceIdentifier{id(group, resource, namespace, "default")}}
	}
	asked := []*unstructured.Unstructured{own, config(modern, "ClusterProviderConfig", ""), xptest.XR("default")}
	labels := velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}}
	runOrders(t, map[string]orderCase{
		"Owner":   {reason: "A tenant can name any ProviderConfig as an owner.", item: owned(own), want: outside},
		"Cluster": {reason: "A tenant can name any ClusterProviderConfig of Crossplane v2 as an owner.", item: owned(asked[1]), want: outside},
		"Local": {
			reason: "A ProviderConfig in the tenant's namespace belongs to the tenant.", item: owned(config(modern, "ProviderConfig", "team-a")),
			want: first(modern, "providerconfigs", "team-a"),
		},
		"Usage": {reason: "A Usage can name any ProviderConfig too.", item: usage("Usage", "team-a"), want: outside},
		"ClusterUsageOfNamespace": {
			reason: "A cluster-scoped Usage stays the platform's in a restore of namespaces.", item: usage("ClusterUsage", ""), spec: teamA(), want: first(group, "providerconfigs", ""),
		},
		"XR": {
			reason: "A namespaced XR composes only in its own namespace.", spec: labels, item: xptest.XRV2("x", xptest.RestoreFirst(), xptest.Refs(own)), want: outside,
		},
		"ClusterXR": {
			reason: "A cluster-scoped XR can compose a ProviderConfig.", spec: labels, item: xptest.XR("x", xptest.RestoreFirst(), xptest.Refs(own)),
			want: first(group, "providerconfigs", ""),
		},
		"Unlisted": {reason: "Only a cluster-scoped object can have asked for it, so it comes.", item: own, spec: teamA()},
		"Listed":   {reason: "A ProviderConfig in a claim's list must belong to the claim, or stay out.", item: own, asked: asked, spec: teamA(), want: refused},
		"ListedOwn": {
			reason: "An XR can compose a ProviderConfig, which has the claim's labels then.", item: xptest.With(own, xptest.Labelled(xp.LabelClaimNamespace, "team-a")), asked: asked, spec: teamA(),
		},
		"AskedOther": {reason: "Another kind must have the claim's labels.", item: asked[2], asked: asked, spec: teamA(), want: refused},
	})
}

// A tenant's annotation would make Velero ignore the restore's filters.
func TestOrderTakesMustRestoreOff(t *testing.T) {
	plain := xptest.Claim("o", xptest.OfXR(xptest.XR("x")), xptest.Annotated("theirs", "kept"))
	must := xptest.With(plain, xptest.Annotated(xp.AnnotationMustRestore, "true"))
	if out := execute(t, newOrder(Shared{}), plain, restoreOf(nil)); out.UpdatedItem != nil {
		t.Errorf("without the annotation Velero need not read the item again; got %+v", out)
	}
	for want, restore := range map[int]*velerov1.Restore{1: restoreOf(nil), 0: restoreWith(velerov1.RestoreSpec{IncludeClusterResources: ptr.To(false)})} {
		out := execute(t, newOrder(Shared{}), must, restore)
		if diff := cmp.Diff(stripped(plain), updated(out)); diff != "" || len(out.AdditionalItems) != want || out.SkipRestore {
			t.Errorf("the filters of the Restore must still apply, and only the annotation be removed: %+v, -want, +got:\n%s", out, diff)
		}
	}
}
