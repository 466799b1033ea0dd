package restoreitem

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

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
	theirs, provider := id("cloud.example.org", "buckets", "", "theirs"), id("cloud.example.org", "providerconfigs", "", "default")
	uses := xptest.JSON(`{"spec":{"providerConfigRef":{"name":"default"}}}`)
	const clusterScoped = ", which is not restored first: it is cluster-scoped. To restore it, add --include-cluster-resources=true [ClusterScopedLeftOut]"
	configs := ", which is not restored first: a managed resource comes only after the ProviderConfig that it names itself. Find out who wrote to the backup " +
		"[BackupTampered]"
	none := func(who string) ordering {
		return ordering{Warned: []string{who + " has a list of what to restore first, which only claims, XRs and managed resources have, so the " +
			"restore ignores it. Find out who wrote to the backup [BackupTampered]"}}
	}
	runsOn := []string{
		`"compositions.apiextensions.crossplane.io//another"`, `"compositionrevisions.apiextensions.crossplane.io//another-1"`,
		`"compositeresourcedefinitions.apiextensions.crossplane.io//things.other.org"`,
	}
	instance := func(who string, left ...string) ordering {
		lists := "The stored copy of " + who + " lists "

		return ordering{
			First: []velero.ResourceIdentifier{theirs, provider},
			Warned: []string{
				lists + strings.Join(runsOn, ", ") + ", which is not restored first: it comes only with the XRs that run on it. To restore it, add " +
					"--include-cluster-resources=true [PlatformLeftOut]",
				lists + `"` + admin + `", "namespaces//kube-public", "providers.pkg.crossplane.io//evil"` + clusterScoped,
				"leaves out " + strings.Join(append(left, "localbuckets.cloud.example.org/team-b/b"), ", "),
			},
		}
	}
	runOrders(t, map[string]orderCase{
		"Secret": {reason: "The plugin writes no list on Secrets, so this one is forged.", item: xptest.Secret("s", forged), spec: teamA(), want: none("Secret team-a/s")},
		"AnySecret": {
			reason: "The plugin writes no list on Secrets of other types either.", item: xptest.Secret("s", forged, xptest.Field("Opaque", "type")), spec: teamA(), want: none("Secret team-a/s"),
		},
		"SecretOfAnXR": {
			reason: "A finalizer does not make a Secret an XR.", spec: teamA(), want: none("Secret team-a/s"),
			item: xptest.Secret("s", forged, xptest.Finalizers(xp.FinalizerComposite), xptest.JSON(`{"spec":{"compositionRef":{"name":"another"}}}`)),
		},
		"SecretOfAll": {reason: "A forged list on a Secret is ignored in a restore of everything too.", item: xptest.Secret("s", forged), want: none("Secret team-a/s")},
		"Thing":       {reason: "The plugin writes no list on objects outside Crossplane.", item: xptest.Object("example.org/v1", "Thing", "team-a", "t", forged), spec: teamA(), want: none("Thing team-a/t")},
		"Usage": {
			reason: "The plugin writes no list on Crossplane's own kinds.", item: xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "u", forged), spec: teamA(), want: none("Usage u"),
		},
		"MR": {
			reason: "The list of an MR has only its ProviderConfig.", item: xptest.MR("b", forged, uses), spec: teamA(),
			want: ordering{
				First: []velero.ResourceIdentifier{provider},
				Warned: []string{`The stored copy of Bucket b lists "` + admin + `", "namespaces//kube-public", "providers.pkg.crossplane.io//evil", "` +
					anothers + `", "localbuckets.cloud.example.org/team-b/b" and 4 more` + configs},
			},
		},
		"NamespacedMR": {
			reason: "A cluster-scoped ProviderConfig belongs to the platform.", item: xptest.NamespacedMR("b", xptest.RestoreFirst(config), uses), spec: teamA(),
			want: ordering{Warned: []string{`The stored copy of Bucket team-a/b lists "` + config + `"` + clusterScoped}},
		},
		"NamespacedMROfAll": {
			reason: "A restore of everything has the ProviderConfig and must bring it first.", item: xptest.NamespacedMR("b", xptest.RestoreFirst(config), uses),
			want: ordering{First: []velero.ResourceIdentifier{provider}},
		},
		"LocalConfig": {
			reason: "A ProviderConfig in the tenant's namespace belongs to the tenant.", spec: teamA(),
			item: xptest.NamespacedMR("b", xptest.RestoreFirst("providerconfigs.example.org/team-a/own"), xptest.JSON(`{"spec":{"providerConfigRef":{"kind":"ProviderConfig","name":"own"}}}`)),
			want: ordering{First: []velero.ResourceIdentifier{id("example.org", "providerconfigs", "team-a", "own")}},
		},
		"ConfigInOtherNamespace": {
			reason: "A ProviderConfig in another namespace does not belong to this tenant.", spec: teamA(),
			item: xptest.NamespacedMR("b", xptest.RestoreFirst("providerconfigs.example.org/team-b/own"), xptest.JSON(`{"spec":{"providerConfigRef":{"kind":"ProviderConfig","name":"own"}}}`)),
			want: ordering{Warned: []string{`The stored copy of Bucket team-a/b lists "providerconfigs.example.org/team-b/own"` + configs}},
		},
		"OtherConfig": {
			reason: "An MR names its own ProviderConfig, so the list must match.", item: xptest.MR("b", xptest.RestoreFirst(config)), spec: teamA(),
			want: ordering{Warned: []string{`The stored copy of Bucket b lists "` + config + `"` + configs}},
		},
		"Claim": {
			reason: "The plugin checks composed kinds when they come, and the publisher brings its Secret.", item: xptest.Claim("o", forged), spec: teamA(), want: instance("OrderClaim team-a/o"),
		},
		"XR":       {reason: "An XR itself names the objects that it needs.", item: xptest.XR("x", forged), spec: teamA(), want: instance("XOrder x")},
		"ModernXR": {reason: "A namespaced XR itself names the objects that it needs.", item: xptest.XRV2("x", forged), spec: teamA(), want: instance("Order team-a/x", anothers)},
		"Own": {
			reason: "Objects in the claim's namespace belong to the claim, and connection secrets can be anywhere in the restore.",
			item: xptest.Claim("o", xptest.RestoreFirst("secrets/team-a/s", "configmaps/team-a/c", "secrets/infra/s", "configmaps/infra/c", "clusterusages.protection.crossplane.io//u",
				"environmentconfigs.apiextensions.crossplane.io//e", "usages.apiextensions.crossplane.io//u")),
			spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a", "infra"}},
			want: ordering{First: []velero.ResourceIdentifier{
				id("", "secrets", "team-a", "s"), id("", "configmaps", "team-a", "c"), id("", "secrets", "infra", "s"), id("protection.crossplane.io", "clusterusages", "", "u"),
				id("apiextensions.crossplane.io", "environmentconfigs", "", "e"), id("apiextensions.crossplane.io", "usages", "", "u"),
			}},
		},
		"OwnByLabel": {
			reason: "In another namespace, resources of the tree may have no labels.", item: xptest.Claim("o", xptest.RestoreFirst("configmaps/infra/c", "configmaps/team-b/c")),
			spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a", "infra"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
			want: ordering{First: []velero.ResourceIdentifier{id("", "configmaps", "infra", "c")}, Warned: []string{"leaves out configmaps/team-b/c"}},
		},
		"OfAll": {
			reason: "A restore of everything leaves nothing out.", item: xptest.Claim("o", xptest.RestoreFirst(admin, anothers)),
			want: ordering{First: []velero.ResourceIdentifier{id("rbac.authorization.k8s.io", "clusterrolebindings", "", "admin"), id("", "secrets", "team-b", "s")}},
		},
		"Composes": {
			reason: "In a backup without lists an XR cannot bring objects that no action checks.", spec: teamA(),
			item: xptest.XR("x", xptest.ClaimedBy(xptest.Claim("o")), xptest.Refs(xptest.Object("v1", "Node", "", "n"), xptest.MR("b"))),
			want: ordering{First: platform(bucketB()), Warned: []string{"XOrder x names Node n" + clusterScoped}},
		},
	})
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
	out, err := b.order.Execute(inputFor(u, &velerov1.Restore{Spec: b.spec}))
	if err != nil {
		t.Fatal(err)
	}
	if out.SkipRestore {
		return
	}
	for _, first := range out.AdditionalItems {
		b.restore(t, first)
	}
	b.order.Requested.restored(u) // As Adopt does.
	b.kept = append(b.kept, xp.String(u))
}

func (b *bucket) logged(parts ...string) bool {
	for _, e := range b.warned.AllEntries() {
		line, _ := e.String()
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return true
		}
	}

	return false
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
	cases := map[string]struct {
		reason string
		files  map[velero.ResourceIdentifier]*unstructured.Unstructured
		spec   velerov1.RestoreSpec
		order  []velero.ResourceIdentifier
		want   []string
		// logged are the parts that a log line must have together.
		logged [][]string
	}{
		"OfItsKind": {
			reason: "An XR brings the objects that it needs; the number of a revision depends on whether its Composition is there.", files: files, spec: teamA(), order: []velero.ResourceIdentifier{first},
			want: []string{"Composition orders", "CompositionRevision orders-1a2b3c", "CompositeResourceDefinition xorders.example.org", "XOrder x"},
		},
		"OfAnother": {
			reason: "An XR must not bring a Composition for another kind.", files: files, spec: teamA(), order: []velero.ResourceIdentifier{then}, want: []string{"Order team-a/m"},
			logged: [][]string{
				{"Composition orders is not restored", "XOrder.example.org", "Order team-a/m", "--include-cluster-resources=true"},
				{"CompositionRevision orders-1a2b3c is not restored"},
			},
		},
		"ListedOfAnother": {
			reason: "An XR's list must not bring a Composition for another kind.", files: others, spec: teamA(), order: []velero.ResourceIdentifier{then}, want: []string{"Order team-a/m"},
			logged: [][]string{{"Composition orders is not restored"}, {"CompositeResourceDefinition xorders.example.org is not restored"}},
		},
		"FirstOfItsKind": {
			reason: "Objects that came for their own kind are live for another kind too.", files: files, spec: teamA(), order: []velero.ResourceIdentifier{first, then},
			want: []string{"Composition orders", "CompositionRevision orders-1a2b3c", "CompositeResourceDefinition xorders.example.org", "XOrder x", "Order team-a/m"},
		},
		"FirstOfAnother": {
			reason: "Velero restores an item once, so the plugin names an XR that misses its object.", files: files, spec: teamA(),
			order: []velero.ResourceIdentifier{then, first},
			want:  []string{"Order team-a/m", "CompositeResourceDefinition xorders.example.org", "XOrder x"},
			logged: [][]string{
				{"XOrder x runs on", "compositions.apiextensions.crossplane.io//orders", "Order team-a/m", "--include-cluster-resources=true"},
				{"XOrder x runs on", "compositionrevisions.apiextensions.crossplane.io//orders-1a2b3c", "Order team-a/m"},
			},
		},
		"CompositionOfAnother": {
			reason: "A revision brings no Composition that its XR does not run on.", files: another, spec: teamA(), order: []velero.ResourceIdentifier{first},
			want: []string{"CompositionRevision orders-1a2b3c", "CompositeResourceDefinition xorders.example.org", "XOrder x"},
		},
		"EverythingByName": {
			reason: "Velero comes to the revisions first, by their name.", files: files, order: []velero.ResourceIdentifier{revision, composition},
			want: []string{"Composition orders", "CompositionRevision orders-1a2b3c"},
		},
		"Everything": {
			reason: "A restore of everything leaves nothing out.", files: files, order: []velero.ResourceIdentifier{then},
			want: []string{"Composition orders", "CompositionRevision orders-1a2b3c", "Order team-a/m"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBucket(tc.spec, tc.files)
			for _, i := range tc.order {
				b.restore(t, i)
			}
			if diff := cmp.Diff(tc.want, b.kept); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, logged := range tc.logged {
				if !b.logged(logged...) {
					t.Errorf("%s\nthe log must name %q: %v", tc.reason, logged, b.warned.AllEntries())
				}
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
		t.Errorf("the log must name the objects that stay out: %v", b.warned.AllEntries())
	}
}
