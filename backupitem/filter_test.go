package backupitem

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
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
	const elsewhere = "secrets infra/s: its namespace is not in the backup. If it can't be created again, add infra to --include-namespaces [ExcludedByFilter]"
	const cluster = "xorders.example.org x: the backup has --include-cluster-resources=false. To restore the tree, back up without that [ExcludedByFilter]"
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		spec   velerov1.BackupSpec
		want   []string
		// beyond means that Velero must look beyond its filters.
		beyond bool
	}{
		"Everything": {reason: "A backup without filters leaves nothing out.", item: mr},
		"Included":   {reason: "The backup includes the Secret's namespace.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a", "infra"}}},
		"Glob":       {reason: "Velero allows globs.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"inf*"}}},
		"Star":       {reason: "A star includes all namespaces.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}}},
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
			want: []string{
				elsewhere, "the resource policy of the backup: cannot read the resource policy p:  \"p\" not found. The warnings lack what it leaves out. " +
					"Let Velero read it, then back up again [RelatedNotRead]",
			},
		},
		"NotASecret": {
			reason: "The plugin takes only connection secrets from other namespaces.", item: elsewhereXR, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-b"}},
			want: []string{"localbuckets.cloud.example.org team-a/l: its namespace is not in the backup. If it can't be created again, add team-a to --include-namespaces [ExcludedByFilter]"},
		},
		"Excluded": {
			reason: "An exclusion leaves the namespace out too.",
			item:   mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{"infra"}}, want: []string{elsewhere},
		},
		"BadPattern": {
			reason: "A malformed pattern matches no namespace.",
			item:   mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"["}, ExcludedNamespaces: []string{"infra", "["}}, want: []string{elsewhere},
		},
		"NoCluster": {
			reason: "The claim's tree is cluster-scoped, so it stays out.",
			item:   claim, spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(false)}, want: []string{cluster},
		},
		"WithCluster":   {reason: "The backup includes cluster-scoped objects, so the tree comes.", item: claim, spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(true)}},
		"NamespaceOnly": {reason: "By default a backup includes additional items.", item: claim, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// A tenant's annotation would make Velero ignore its filters.
			got := backUp(c, xptest.With(tc.item, xptest.Annotated(xp.AnnotationMustInclude, "true")), &velerov1.Backup{Spec: tc.spec})
			if diff := cmp.Diff(tc.want, got.Left); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if _, beyond := got.Stored.GetAnnotations()[xp.AnnotationMustInclude]; beyond != tc.beyond {
				t.Errorf("%s\nbeyond the filters: got %v, want %v", tc.reason, beyond, tc.beyond)
			}
			for _, i := range slices.Concat(got.Items, got.Before) {
				to := xp.Ref{Kind: i.GroupResource.String(), Namespace: i.Namespace, Name: i.Name}.String() + ": "
				if i.Namespace != "" && slices.ContainsFunc(tc.want, func(s string) bool { return strings.HasPrefix(s, to) }) {
					t.Errorf("%s\nthe plugin asks for %s and names it as left out", tc.reason, to)
				}
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
	cases := map[string]struct {
		reason string
		spec   velerov1.BackupSpec
		want   []velero.ResourceIdentifier
	}{
		"Everything": {reason: "A backup without filters leaves nothing out.", want: whole},
		"Elsewhere":  {reason: "The MR's own backup takes the Secret from another namespace.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}, want: whole},
		"Excluded":   {reason: "A restore must not ask for a Secret that the backup lacks.", spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"infra"}}, want: tree},
		"SomeResources": {
			reason: "A restore must not ask for a Secret that the resource filter leaves out.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, IncludedResources: []string{"*"}}, want: tree,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := backUp(c, claim, &velerov1.Backup{Spec: tc.spec})
			if diff := cmp.Diff(tc.want, got.Before); got.Err != nil || diff != "" {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, got.Err, diff)
			}
		})
	}
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
	const byLabel = "secrets infra/s: the label " + label + " of its namespace keeps it out of backups. If it can't be created again, remove that label from infra, then back up again [ExcludedByLabel]"
	const byItself = "Secret infra/s: its label " + label + " keeps it out of backups. If a restore needs it, remove that label, then back up again [ExcludedByLabel]"
	const byFilter = "secrets infra/s: its namespace is not in the backup. If it can't be created again, add infra to --include-namespaces [ExcludedByFilter]"
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
		"CredentialsNamespace": {
			reason: "A label on the namespace excludes its credentials too.", item: config, cluster: clusterOf(published, space(out)),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA}, want: []string{byLabel},
		},
		"Velero": {
			reason: "Velero excludes the namespace because of the label, so including it would not help.", item: mr, cluster: clusterOf(published, space(out)),
			spec: velerov1.BackupSpec{IncludedNamespaces: append(teamA, "infra"), ExcludedNamespaces: excluded}, want: []string{byLabel},
		},
		"Excluded": {
			reason: "A user has excluded the namespace.", item: mr, cluster: clusterOf(published, space()),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA, ExcludedNamespaces: excluded}, want: []string{byFilter},
		},
		"Unknown": {
			reason: "A namespace that cannot be read may have the label.", item: mr, cluster: clusterOf(published, space()).without(space()), spec: velerov1.BackupSpec{IncludedNamespaces: teamA},
			want: []string{"secrets infra/s: its namespace, which the label " + label + " can keep out of backups, can't be read: " + errAPI.Error() +
				". When the API server answers, back up again [RelatedNotRead]"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.cluster.settings = map[string]string{"provider-credentials": "include"}
			got := backUp(tc.cluster, tc.item, &velerov1.Backup{Spec: tc.spec})
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
	log, _ := logtest.NewNullLogger()
	tree := NewTree(NewResolver(c), log)
	for n := 0; n < len(objects); n += 2 {
		_, items, _, _, err := tree.Execute(objects[n].DeepCopy(), &velerov1.Backup{Spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}})
		if err != nil || len(items) != 1 {
			t.Fatalf("got %v, error %v", items, err)
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
	out := func(kind, path string) string {
		return kind + " " + path + ": the backup's resource filters leave its kind out. If a restore needs it, include " + kind +
			", then back up again [ExcludedByFilter]"
	}
	unnamed := func(kind, path string) string {
		return kind + " " + path + ": the names in the filter for " + kind + " in the backup's resource policy leave it out. If a restore needs it, add its name, then back up again " +
			"[ExcludedByFilter]"
	}
	cases := map[string]struct {
		reason string
		spec   string
		policy string
		want   []string
	}{
		"All":        {reason: "A star includes all resources.", spec: `{"includedResources":["*"]}`},
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
		"ScopeCluster": {reason: "Velero takes more cluster-scoped objects if an action asks for them.", spec: `{"includedClusterScopedResources":["nodes"]}`},
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
			want: []string{unnamed(buckets, "b"), unnamed(locals, "team-a/l")},
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
			want: []string{`the resource policy of the backup: cannot read the resource policy velero/gone:  "gone" not found. The warnings lack what it leaves out. ` +
				"Let Velero read it, then back up again [RelatedNotRead]"},
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
			got := backUp(c, xr, backup)
			if diff := cmp.Diff(tc.want, got.Left); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, i := range slices.Concat(got.Items, got.Before) {
				to := xp.Ref{Kind: i.GroupResource.String(), Namespace: i.Namespace, Name: i.Name}.String() + ": "
				if slices.ContainsFunc(tc.want, func(s string) bool { return strings.HasPrefix(s, to) }) {
					t.Errorf("%s\nthe plugin asks for %s and names it as left out", tc.reason, to)
				}
			}
			c.checkCost(t)
		})
	}
}

// Thousands of XRs can run on an excluded item.
func TestExcludedSharedItemsAreWarnedOfOnce(t *testing.T) {
	c := clusterOf(xptest.XRD("xorders.example.org"))
	log, hook := logtest.NewNullLogger()
	tree := NewTree(NewResolver(c), log)
	for _, name := range []string{"a", "b", "c"} {
		xr := xptest.XR(name, xptest.NeverComposed(), xptest.Without("spec", "compositionRef"), xptest.Without("spec", "compositionRevisionRef"), xptest.Refs())
		if _, _, _, _, err := tree.Execute(xr, &velerov1.Backup{Spec: velerov1.BackupSpec{ExcludedResources: []string{"compositeresourcedefinitions"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(hook.AllEntries()); n != 1 {
		t.Errorf("got %d warnings", n)
	}
}
