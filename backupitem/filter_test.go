package backupitem

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestTreeWarnsOfWhatTheFiltersLeaveOut(t *testing.T) {
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"))
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	reaching := xptest.XR("y")
	local := xptest.Object(xptest.ManagedVersion, "LocalBucket", "team-a", "l", xptest.ControlledBy(reaching))
	elsewhereXR := xptest.XR("y", xptest.NeverComposed(), xptest.Without("spec", "compositionRef"), xptest.Refs(local))
	c := clusterOf(local, xptest.XRD("xorders.example.org"), xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr)), xptest.XR("x", xptest.ClaimedBy(claim)))
	resources := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, IncludedResources: []string{"*"}}
	var policy velerov1.BackupSpec
	if err := json.Unmarshal([]byte(`{"includedNamespaces":["team-a"],"resourcePolicy":{"kind":"ConfigMap","name":"p"}}`), &policy); err != nil {
		t.Fatal(err)
	}
	const elsewhere = "secrets infra/s [ExcludedByFilter]"
	const cluster = "xorders.example.org x [ExcludedByFilter]"
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		spec   velerov1.BackupSpec
		want   []string
		// beyond means that Velero must look beyond its filters.
		beyond bool
	}{
		"Star": {reason: "A star includes all namespaces.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}}},
		"NotIncluded": {
			reason: "The Secret may hold the only copy of a password.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}, beyond: true,
		},
		"SomeResources": {reason: "A user who selects resources also decides which ones stay out.", item: mr, spec: resources, want: []string{elsewhere}},
		"WithoutCluster": {
			reason: "The backup cannot restore the MR, so its Secret is useless.", item: mr,
			spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: ptr.To(false)}, want: []string{elsewhere},
		},
		"Policy": {
			reason: "A resource policy can leave any resource out.", item: mr, spec: policy,
			want: []string{elsewhere, unread("the resource policy of the backup")},
		},
		"NotASecret": {
			reason: "The plugin takes only connection secrets from other namespaces.", item: elsewhereXR, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-b"}},
			want: []string{"localbuckets.cloud.example.org team-a/l [ExcludedByFilter]"},
		},
		"NoCluster": {
			reason: "The claim's tree is cluster-scoped, so it stays out.",
			item:   claim, spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(false)}, want: []string{cluster},
		},
		"WithCluster": {reason: "The backup includes cluster-scoped objects, so the tree comes.", item: claim, spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(true)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// A tenant's annotation would make Velero ignore its filters.
			got := backUp(t, c, xptest.With(tc.item, xptest.Annotated(xp.AnnotationMustInclude, "true")), &velerov1.Backup{Spec: tc.spec})
			if diff := cmp.Diff(tc.want, got.Left); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if _, beyond := got.Stored.GetAnnotations()[xp.AnnotationMustInclude]; beyond != tc.beyond {
				t.Errorf("%s\nbeyond the filters: got %v, want %v", tc.reason, beyond, tc.beyond)
			}
		})
	}
}

// A claim's stored copy lists its whole tree, with Secrets in any namespace.
func TestClaimsListNothingThatTheFiltersLeaveOut(t *testing.T) {
	x := xptest.XR("x")
	claim := xptest.Claim("o", xptest.OfXR(x))
	mr := xptest.MR("b", xptest.ControlledBy(x), xptest.PublishesTo("infra", "s"))
	c := clusterOf(xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(mr)), mr, xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr)))
	tree := []velero.ResourceIdentifier{xorder("x"), bucket("b")}
	whole := append(slices.Clone(tree), id("", "secrets", "infra", "s"))
	xptest.Run(t, map[string]xptest.Row[velerov1.BackupSpec, []velero.ResourceIdentifier]{
		"Everything": {Reason: "A backup without filters leaves nothing out.", Want: whole},
		"Elsewhere":  {Reason: "The MR's own backup takes the Secret from another namespace.", In: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}, Want: whole},
		"Excluded":   {Reason: "A restore must not ask for a Secret that the backup lacks.", In: velerov1.BackupSpec{ExcludedNamespaces: []string{"infra"}}, Want: tree},
		"SomeResources": {
			Reason: "A restore must not ask for a Secret that the resource filter leaves out.", In: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, IncludedResources: []string{"*"}}, Want: tree,
		},
	}, func(in velerov1.BackupSpec) []velero.ResourceIdentifier {
		return backUp(t, c, claim, &velerov1.Backup{Spec: in}).Before
	})
}

// With the annotation that makes Velero look beyond its filters, it also ignores the label that
// keeps objects out of backups.
func TestTreeOfExcludedObjects(t *testing.T) {
	const label = "velero.io/exclude-from-backup"
	out := xptest.Labelled(label, "true")
	space := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("v1", "Namespace", "", "infra", o...)
	}
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"))
	published := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr))
	config := xptest.Object("m.example.org/v1", "ProviderConfig", "", "default", xptest.JSON(`{"spec":{"credentials":{"secretRef":{"namespace":"infra","name":"s"}}}}`))
	teamA, excluded := []string{"team-a"}, []string{"infra"}
	const byLabel, byItself = "secrets infra/s [ExcludedByLabel]", "Secret infra/s [ExcludedByLabel]"
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		cluster *cluster
		spec    velerov1.BackupSpec
		want    []string
	}{
		"Unlabelled": {reason: "The plugin takes the Secret from its namespace.", item: mr, cluster: clusterOf(published, space()), spec: velerov1.BackupSpec{IncludedNamespaces: teamA}},
		"False": {
			reason: "Only the label value true excludes a Secret.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: teamA},
			cluster: clusterOf(xptest.With(published, xptest.Labelled(label, "false")), space(xptest.Labelled(label, "false"))),
		},
		"Secret": {
			reason: "A connection secret with the label stays out.", item: mr, cluster: clusterOf(xptest.With(published, out), space()),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA}, want: []string{byItself},
		},
		"SecretInside": {
			reason: "Velero leaves the Secret out without a warning, so the plugin names it.", item: mr, cluster: clusterOf(xptest.With(published, out), space()), want: []string{byItself},
		},
		"Credentials": {
			reason: "Credentials with the label stay out too.", item: config, cluster: clusterOf(xptest.With(published, out), space()),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA}, want: []string{byItself},
		},
		"Namespace": {
			reason: "A label on the namespace excludes all of its Secrets.", item: mr, cluster: clusterOf(published, space(out)),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA}, want: []string{byLabel},
		},
		"Velero": {
			reason: "Velero excludes the namespace because of the label, so including it would not help.", item: mr, cluster: clusterOf(published, space(out)),
			spec: velerov1.BackupSpec{IncludedNamespaces: append(teamA, "infra"), ExcludedNamespaces: excluded}, want: []string{byLabel},
		},
		"Unknown": {
			reason: "A namespace that cannot be read may have the label.", item: mr, cluster: clusterOf(published, space()).without(space()), spec: velerov1.BackupSpec{IncludedNamespaces: teamA},
			want: []string{unread("secrets infra/s")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.cluster.settings = map[string]string{"provider-credentials": "include"}
			got := backUp(t, tc.cluster, tc.item, &velerov1.Backup{Spec: tc.spec})
			if diff := cmp.Diff(tc.want, got.Left); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			asked := slices.Contains(got.Items, id("", "secrets", "infra", "s"))
			_, beyond := got.Stored.GetAnnotations()[xp.AnnotationMustInclude]
			if asked != (len(tc.want) == 0) || beyond && !asked {
				t.Errorf("%s\nasked for: %v, beyond the filters: %v", tc.reason, asked, beyond)
			}
			tc.cluster.checkCost(t)
		})
	}
}

// A backup reads a namespace once, however many of its Secrets it has.
func TestNamespacesAreReadOnce(t *testing.T) {
	space := xptest.Object("v1", "Namespace", "", "infra")
	var objects []*unstructured.Unstructured
	for _, name := range []string{"a", "b", "c"} {
		mr := xptest.MR(name, xptest.PublishesTo("infra", name))
		objects = append(objects, mr, xptest.Secret(name, xptest.In("infra"), xptest.ControlledBy(mr)))
	}
	c := clusterOf(append(objects, space)...)
	s := newSession(t, c)
	for n := 0; n < len(objects); n += 2 {
		if got := s.take(objects[n], &velerov1.Backup{Spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}}); len(got.Items) != 1 {
			t.Fatalf("got %v", got.Items)
		}
	}
	if n := c.asked[xp.RefTo(space).ID()]; n != 1 {
		t.Errorf("read %d times", n)
	}
}

// Velero silently drops what the resource filters exclude.
func TestTreeWarnsOfExcludedResources(t *testing.T) {
	x := xptest.XR("x")
	mr := xptest.MR("b", xptest.ControlledBy(x))
	local := xptest.Object(xptest.ManagedVersion, "LocalBucket", "team-a", "l", xptest.ControlledBy(x))
	xr := xptest.With(x, xptest.Refs(mr, local), xptest.Without("spec", "compositionRef"), xptest.Without("spec", "compositionRevisionRef"))
	policy := func(text string) *unstructured.Unstructured {
		return xptest.Object("v1", "ConfigMap", "velero", "p", xptest.Field(text, "data", "policy"))
	}
	const buckets, locals, xrds = "buckets.cloud.example.org", "localbuckets.cloud.example.org", "compositeresourcedefinitions.apiextensions.crossplane.io"
	out := func(kind, path string) string { return kind + " " + path + " [ExcludedByFilter]" }
	cases := map[string]struct {
		reason string
		spec   string
		policy string
		want   []string
	}{
		"Excluded":   {reason: "The XR would wait for the excluded resource for ever.", spec: `{"excludedResources":["buckets.cloud.example.org"]}`, want: []string{out(buckets, "b")}},
		"Incomplete": {reason: "Velero completes resource names.", spec: `{"excludedResources":["bucket","localbuckets"]}`, want: []string{out(buckets, "b"), out(locals, "team-a/l")}},
		"Included": {
			reason: "A resource that is not included is left out.", spec: `{"includedResources":["xorders.example.org"]}`,
			want: []string{out(xrds, "xorders.example.org"), out(buckets, "b"), out(locals, "team-a/l")},
		},
		"IncludedWithCluster": {
			reason: "Velero then takes cluster-scoped objects that an action asks for.", spec: `{"includedResources":["xorders.example.org"],"includeClusterResources":true}`,
			want: []string{out(locals, "team-a/l")},
		},
		"Scoped": {
			reason: "The scoped filters exclude resources too.", spec: `{"excludedClusterScopedResources":["buckets"],"excludedNamespaceScopedResources":["localbuckets"]}`,
			want: []string{out(buckets, "b"), out(locals, "team-a/l")},
		},
		"OtherScope":   {reason: "Each scoped filter applies to its own scope only.", spec: `{"excludedClusterScopedResources":["localbuckets"],"excludedNamespaceScopedResources":["buckets"]}`},
		"ScopeInclude": {reason: "The scoped include filter leaves out other namespaced resources.", spec: `{"includedNamespaceScopedResources":["pods"]}`, want: []string{out(locals, "team-a/l")}},
		"Policy": {
			reason: "A resource policy can also exclude resources.", spec: `{"resourcePolicy":{"kind":"configmap","name":"p"}}`,
			policy: "version: v1\nincludeExcludePolicy:\n  excludedClusterScopedResources: [buckets]\n  excludedNamespaceScopedResources: [localbuckets]\n",
			want:   []string{out(buckets, "b"), out(locals, "team-a/l")},
		},
		"PolicyBehind": {
			reason: "The Backup's own filters take precedence over a policy's.", policy: "version: v1\nincludeExcludePolicy:\n  excludedNamespaceScopedResources: [localbuckets]\n",
			spec: `{"includedNamespaceScopedResources":["localbuckets"],"resourcePolicy":{"kind":"configmap","name":"p"}}`,
		},
		"PolicyOfNames": {
			reason: "A resource policy can leave out single objects of a kind, also if an action requests them.", spec: `{"resourcePolicy":{"kind":"configmap","name":"p"}}`,
			policy: "version: v1\nclusterScopedFilterPolicy: {resourceFilters: [{kinds: [buckets], excludedNames: [b*]}]}\n" +
				"namespacedFilterPolicies: [{namespaces: [team-*], resourceFilters: [{kinds: [" + locals + "], names: [m]}]}]\n",
			want: []string{out(buckets, "b"), out(locals, "team-a/l")},
		},
		"PolicyOfOthers": {
			reason: "Kinds and labels in a policy are for what Velero finds, not for what is requested.", spec: `{"resourcePolicy":{"kind":"configmap","name":"p"}}`,
			policy: "version: v1\nnamespacedFilterPolicies: [{namespaces: [team-a], resourceFilters: [{kinds: [pods]}, {labelSelector: {matchLabels: {a: b}}}]}]\n",
		},
		"PolicyOfVolumes": {
			reason: "A policy can be for volumes only.", spec: `{"resourcePolicy":{"kind":"configmap","name":"p"}}`, policy: "version: v1\nvolumePolicies: []\n",
		},
		"NoPolicy": {
			reason: "The plugin warns once of a policy that it cannot read.", spec: `{"resourcePolicy":{"kind":"configmap","name":"gone"}}`,
			want: []string{unread("the resource policy of the backup")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			backup := &velerov1.Backup{}
			backup.Namespace = "velero"
			if err := json.Unmarshal([]byte(tc.spec), &backup.Spec); err != nil {
				t.Fatal(err)
			}
			c := clusterOf(mr, local, xptest.XRD("xorders.example.org"), policy(tc.policy))
			got := backUp(t, c, xr, backup)
			if diff := cmp.Diff(tc.want, got.Left); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			c.checkCost(t)
		})
	}
}

// Thousands of XRs can run on an excluded item.
func TestExcludedSharedItemsAreWarnedOfOnce(t *testing.T) {
	s := newSession(t, clusterOf(xptest.XRD("xorders.example.org")))
	for _, name := range []string{"a", "b", "c"} {
		xr := xptest.XR(name, xptest.NeverComposed(), xptest.Without("spec", "compositionRef"), xptest.Without("spec", "compositionRevisionRef"), xptest.Refs())
		s.take(xr, &velerov1.Backup{Spec: velerov1.BackupSpec{ExcludedResources: []string{"compositeresourcedefinitions"}}})
	}
	if n := len(s.codes()); n != 1 {
		t.Errorf("got %d warnings", n)
	}
}
