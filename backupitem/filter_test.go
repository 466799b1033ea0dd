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
	const elsewhere = "secrets infra/s: its namespace is not in the backup; add infra to --include-namespaces if it can't be made anew"
	const cluster = "xorders.example.org x: the backup is made with --include-cluster-resources=false, so the tree can't be restored from it"
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		spec   velerov1.BackupSpec
		want   []string
		// beyond means that Velero must look beyond its filters.
		beyond bool
	}{
		"Everything": {reason: "Nothing is left out.", item: mr},
		"Included":   {reason: "The namespace is in the list.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a", "infra"}}},
		"Glob":       {reason: "Velero allows globs.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"inf*"}}},
		"Star":       {reason: "Velero allows a star for all.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}}},
		"NotIncluded": {
			reason: "A password may be nowhere else.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}, beyond: true,
		},
		"SomeResources": {reason: "Whoever chooses resources chooses what is left out.", item: mr, spec: resources, want: []string{elsewhere}},
		"WithoutCluster": {
			reason: "What can't be restored from the backup is not made whole by its Secret.", item: mr,
			spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: ptr.To(false)}, want: []string{elsewhere},
		},
		"Policy": {
			reason: "A resource policy can leave anything out.", item: mr, want: []string{elsewhere},
			spec: policy,
		},
		"NotASecret": {
			reason: "Only connection secrets are taken from elsewhere.", item: elsewhereXR, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-b"}},
			want: []string{"localbuckets.cloud.example.org team-a/l: its namespace is not in the backup; add team-a to --include-namespaces if it can't be made anew"},
		},
		"Excluded": {
			reason: "The same for an exclusion.",
			item:   mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{"infra"}}, want: []string{elsewhere},
		},
		"BadPattern": {
			reason: "A pattern that can't be read matches nothing.",
			item:   mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"["}, ExcludedNamespaces: []string{"infra", "["}}, want: []string{elsewhere},
		},
		"NoCluster": {
			reason: "The tree of a claim is cluster-scoped.",
			item:   claim, spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(false)}, want: []string{cluster},
		},
		"WithCluster":   {reason: "Then it is in.", item: claim, spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(true)}},
		"NamespaceOnly": {reason: "Additional items are in by default.", item: claim, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// A tenant's annotation would make Velero ignore its filters.
			got := backUp(c, xptest.With(tc.item, xp.SetMustInclude), &velerov1.Backup{Spec: tc.spec})
			if diff := cmp.Diff(tc.want, got.Left); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if _, beyond := got.Stored.GetAnnotations()[xp.AnnotationMustInclude]; beyond != tc.beyond {
				t.Errorf("%s\nbeyond the filters: got %v, want %v", tc.reason, beyond, tc.beyond)
			}
			for _, i := range slices.Concat(got.Items, got.Before) {
				to := xp.Ref{Kind: i.GroupResource.String(), Namespace: i.Namespace, Name: i.Name}.String() + ": "
				if i.Namespace != "" && slices.ContainsFunc(tc.want, func(s string) bool { return strings.HasPrefix(s, to) }) {
					t.Errorf("%s\n%s is left out and asked for", tc.reason, to)
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
		"Everything": {reason: "Nothing is left out.", want: whole},
		"Elsewhere":  {reason: "The MR's own backup takes it from elsewhere.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}, want: whole},
		"Excluded":   {reason: "A restore would ask for what is not there.", spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"infra"}}, want: tree},
		"SomeResources": {
			reason: "The same.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, IncludedResources: []string{"*"}}, want: tree,
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
	const byLabel = "secrets infra/s: the label " + label + " of its namespace keeps it out of backups; take that label off infra, then back up again, if it can't be made anew"
	const byItself = "Secret infra/s: its label " + label + " keeps it out of backups; if a restore needs it, take that label off, then back up again"
	const byFilter = "secrets infra/s: its namespace is not in the backup; add infra to --include-namespaces if it can't be made anew"
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		cluster *cluster
		spec    velerov1.BackupSpec
		want    []string
	}{
		"Unlabelled": {reason: "It is taken from where it is.", item: mr, cluster: clusterOf(published, space()), spec: velerov1.BackupSpec{IncludedNamespaces: teamA}},
		"False": {
			reason: "Only the value true counts.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: teamA},
			cluster: clusterOf(xptest.With(published, xptest.Labelled(label, "false")), space(xptest.Labelled(label, "false"))),
		},
		"Secret": {
			reason: "A connection secret that has it stays out.", item: mr, cluster: clusterOf(xptest.With(published, out), space()),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA}, want: []string{byItself},
		},
		"SecretInside": {
			reason: "Also where Velero would leave it out, but not say so.", item: mr, cluster: clusterOf(xptest.With(published, out), space()), want: []string{byItself},
		},
		"Credentials": {
			reason: "The same for credentials.", item: config, cluster: clusterOf(xptest.With(published, out), space()),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA}, want: []string{byItself},
		},
		"Namespace": {
			reason: "All that is in a namespace with it stays out.", item: mr, cluster: clusterOf(published, space(out)),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA}, want: []string{byLabel},
		},
		"CredentialsNamespace": {
			reason: "The same for credentials.", item: config, cluster: clusterOf(published, space(out)),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA}, want: []string{byLabel},
		},
		"Velero": {
			reason: "Velero has excluded it because of the label, so to include it would not help.", item: mr, cluster: clusterOf(published, space(out)),
			spec: velerov1.BackupSpec{IncludedNamespaces: append(teamA, "infra"), ExcludedNamespaces: excluded}, want: []string{byLabel},
		},
		"Excluded": {
			reason: "A person has excluded it.", item: mr, cluster: clusterOf(published, space()),
			spec: velerov1.BackupSpec{IncludedNamespaces: teamA, ExcludedNamespaces: excluded}, want: []string{byFilter},
		},
		"Unknown": {
			reason: "What may have it stays out.", item: mr, cluster: clusterOf(published, space()).without(space()), spec: velerov1.BackupSpec{IncludedNamespaces: teamA},
			want: []string{"secrets infra/s: whether the label " + label + " of its namespace keeps it out of backups can't be found out: " + errAPI.Error() +
				". Back up again when the API server answers"},
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
		return kind + " " + path + ": the backup's filters by resource leave its kind out, so it can't be restored from it; if a restore needs it, have them take " + kind +
			", then back up again"
	}
	cases := map[string]struct {
		reason string
		spec   string
		policy string
		want   []string
	}{
		"All":        {reason: "Nothing is left out.", spec: `{"includedResources":["*"]}`},
		"Excluded":   {reason: "The XR waits for it for ever.", spec: `{"excludedResources":["buckets.cloud.example.org"]}`, want: []string{out(buckets, "b")}},
		"Incomplete": {reason: "Velero completes names.", spec: `{"excludedResources":["bucket","localbuckets"]}`, want: []string{out(buckets, "b"), out(locals, "team-a/l")}},
		"Included": {
			reason: "What is not included is left out.", spec: `{"includedResources":["xorders.example.org"]}`,
			want: []string{out(xrds, "xorders.example.org"), out(buckets, "b"), out(locals, "team-a/l")},
		},
		"IncludedWithCluster": {
			reason: "Then Velero takes what is cluster-scoped if an action asks for it.", spec: `{"includedResources":["xorders.example.org"],"includeClusterResources":true}`,
			want: []string{out(locals, "team-a/l")},
		},
		"Scoped": {
			reason: "The newer filters do the same.", spec: `{"excludedClusterScopedResources":["buckets"],"excludedNamespaceScopedResources":["localbuckets"]}`,
			want: []string{out(buckets, "b"), out(locals, "team-a/l")},
		},
		"OtherScope":   {reason: "Each is for its scope.", spec: `{"excludedClusterScopedResources":["localbuckets"],"excludedNamespaceScopedResources":["buckets"]}`},
		"ScopeInclude": {reason: "Of what is namespaced only this is included.", spec: `{"includedNamespaceScopedResources":["pods"]}`, want: []string{out(locals, "team-a/l")}},
		"ScopeCluster": {reason: "Velero takes more that is cluster-scoped if an action asks for it.", spec: `{"includedClusterScopedResources":["nodes"]}`},
		"Policy": {
			reason: "A resource policy has filters too.", spec: `{"resourcePolicy":{"kind":"configmap","name":"p"}}`,
			policy: "version: v1\nincludeExcludePolicy:\n  excludedClusterScopedResources: [buckets]\n  excludedNamespaceScopedResources: [localbuckets]\n",
			want:   []string{out(buckets, "b"), out(locals, "team-a/l")},
		},
		"PolicyBehind": {
			reason: "The backup's own go before.", policy: "version: v1\nincludeExcludePolicy:\n  excludedNamespaceScopedResources: [localbuckets]\n",
			spec: `{"includedNamespaceScopedResources":["localbuckets"],"resourcePolicy":{"kind":"configmap","name":"p"}}`,
		},
		"PolicyOfVolumes": {
			reason: "It can be about something else.", spec: `{"resourcePolicy":{"kind":"configmap","name":"p"}}`, policy: "version: v1\nvolumePolicies: []\n",
		},
		"NoPolicy": {
			reason: "That it can't be read is told, once.", spec: `{"resourcePolicy":{"kind":"configmap","name":"gone"}}`,
			want: []string{`the resource policy of the backup: cannot read the resource policy velero/gone:  "gone" not found. What it leaves out is not named; ` +
				"see that Velero may read it, then back up again"},
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
					t.Errorf("%s\n%s is left out and asked for", tc.reason, to)
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
