package restoreitem

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The expectations are what Velero's own restorer does with the same Restore: a selected item
// brings what it requests, also if that is cluster-scoped or has other labels.
func TestDryRunOfSelection(t *testing.T) {
	s := newShop()
	s.mr = xptest.With(s.mr, xptest.Labelled(xp.LabelClaimNamespace, "team-a"))
	other := xptest.Object("v1", "ConfigMap", "team-b", "c", xptest.Labelled("app", "b"))
	backup := append(s.all(), other, xptest.Object("v1", "Namespace", "", "team-b"), xptest.Object("v1", "ConfigMap", "team-a", "d", xptest.Labelled("app", "b")))
	tree := []string{
		"create Composition orders for CompositionRevision orders-1a2b3c", "create CompositionRevision orders-1a2b3c for XOrder x",
		"create CompositeResourceDefinition xorders.example.org for XOrder x", "hold XOrder x for Bucket b", "hold Bucket b for Secret team-a/s",
	}
	cases := map[string]struct {
		reason string
		spec   velerov1.RestoreSpec
		want   []string
	}{
		"Namespace": {
			reason: "A restore of a namespace brings the whole trees of its claims, and the Namespace.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}},
			want: append(append([]string{"create Namespace team-a"}, tree...), "create Secret team-a/s", "create ConfigMap team-a/d", "hold OrderClaim team-a/c",
				"skip CustomResourceDefinition buckets.cloud.example.org", "skip Namespace team-b", "skip ConfigMap team-b/c"),
		},
		"Excluded": {
			reason: "An excluded namespace stays out.", spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-a"}},
			want: []string{
				"create Namespace team-b", "create ConfigMap team-b/c", "skip CustomResourceDefinition buckets.cloud.example.org", "skip Namespace team-a",
				"skip Secret team-a/s", "skip ConfigMap team-a/d", "skip Bucket b", "skip CompositeResourceDefinition xorders.example.org",
				"skip CompositionRevision orders-1a2b3c", "skip Composition orders", "skip OrderClaim team-a/c", "skip XOrder x",
			},
		},
		"Labels": {
			reason: "Items with other labels stay out, and their Namespaces come with those that don't.",
			spec:   velerov1.RestoreSpec{OrLabelSelectors: []*metav1.LabelSelector{{MatchLabels: map[string]string{"app": "a"}}, {MatchLabels: map[string]string{"app": "b"}}}},
			want: []string{
				"create Namespace team-a", "create ConfigMap team-a/d", "create Namespace team-b", "create ConfigMap team-b/c",
				"skip CustomResourceDefinition buckets.cloud.example.org", "skip Secret team-a/s", "skip Bucket b", "skip CompositeResourceDefinition xorders.example.org",
				"skip CompositionRevision orders-1a2b3c", "skip Composition orders", "skip OrderClaim team-a/c", "skip XOrder x",
			},
		},
		"NotClusterScoped": {
			reason: "Nothing cluster-scoped comes, also if it is requested.",
			spec:   velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: new(false), IncludedResources: []string{"secret", "xorders.example.org"}},
			want: []string{
				"create Namespace team-a", "create Secret team-a/s", "skip CustomResourceDefinition buckets.cloud.example.org", "skip Namespace team-b",
				"skip ConfigMap team-a/d", "skip ConfigMap team-b/c", "skip Bucket b", "skip CompositeResourceDefinition xorders.example.org",
				"skip CompositionRevision orders-1a2b3c", "skip Composition orders", "skip OrderClaim team-a/c", "skip XOrder x",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			restore.Spec = tc.spec
			results, err := dryRunResults(t.Context(), packed(t, backup...), &fakeDryRunCluster{cluster: live(), resources: anything}, restore)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, resultLines(results)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDryRunRefusesFilters(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   velerov1.RestoreSpec
		want   string
	}{
		"Both": {
			reason: "Velero takes one kind of label selectors.", want: "both labelSelector and orLabelSelectors",
			spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}, OrLabelSelectors: []*metav1.LabelSelector{{}}},
		},
		"Contradiction": {reason: "Velero refuses what is included and excluded.", spec: velerov1.RestoreSpec{
			IncludedNamespaces: []string{"a"}, ExcludedNamespaces: []string{"a"},
		}, want: "excludes list cannot contain an item in the includes list"},
		"Policies": {
			reason: "Without a cluster there are no policies.", spec: velerov1.RestoreSpec{ResourcePolicy: &corev1.TypedLocalObjectReference{Kind: "configmap", Name: "few"}},
			want: "ConfigMap velero/few: without a cluster",
		},
		"PoliciesKind": {
			reason: "Velero takes ConfigMaps only.", spec: velerov1.RestoreSpec{ResourcePolicy: &corev1.TypedLocalObjectReference{Kind: "Secret", Name: "few"}},
			want: `not a "Secret"`,
		},
		"Operator": {
			reason: "A selector that can't be read selects nothing.", want: "not a valid label selector operator",
			spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			restore.Spec = tc.spec
			if _, err := dryRunResults(t.Context(), packed(t, newShop().all()...), nil, restore); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// A policy selects what Velero finds; what a selected item requests comes whatever its name.
func TestDryRunOfPolicies(t *testing.T) {
	s := newShop()
	s.mr = xptest.With(s.mr, xptest.Labelled(xp.LabelClaimNamespace, "team-a"))
	other := xptest.Claim("other")
	backup := append(s.all(), other, xptest.Object("v1", "ConfigMap", "team-a", "d", xptest.Labelled("app", "b")))
	tree := []string{
		"create Composition orders for CompositionRevision orders-1a2b3c", "create CompositionRevision orders-1a2b3c for XOrder x",
		"create CompositeResourceDefinition xorders.example.org for XOrder x",
	}
	const policies = "version: v1\nnamespacedFilterPolicies:\n- namespaces: [team-a]\n  resourceFilters:\n  - "
	cases := map[string]struct {
		reason, policies string
		labels           map[string]string
		want             []string
		err              string
	}{
		"OneTree": {
			reason: "One tree is selected by the name of its claim.", policies: policies + "{kinds: [orderclaims.example.org], names: [c]}",
			want: append(append([]string{"create Namespace team-a"}, tree...), "hold XOrder x for OrderClaim team-a/c", "hold Bucket b for OrderClaim team-a/c",
				"create Secret team-a/s for OrderClaim team-a/c", "hold OrderClaim team-a/c", "skip CustomResourceDefinition buckets.cloud.example.org", "skip ConfigMap team-a/d", "skip OrderClaim team-a/other"),
		},
		"Nothing": {
			reason: "A policy without a kind of the tree selects nothing of it.", policies: policies + "{kinds: [cm], names: [d]}", labels: map[string]string{"app": "a"},
			want: []string{"create Namespace team-a", "create ConfigMap team-a/d", "skip OrderClaim team-a/c"},
		},
		"Gone":    {reason: "Velero refuses a Restore without its policies.", err: "its resource policies in ConfigMap velero/few: it has 0 keys"},
		"Refused": {reason: "Velero refuses the policies.", policies: "version: v2", err: "v2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore, c := restoreOf(nil), live()
			restore.Spec = velerov1.RestoreSpec{
				IncludedNamespaces: []string{"team-a"}, ResourcePolicy: &corev1.TypedLocalObjectReference{Kind: "configmap", Name: "few"},
			}
			if tc.labels != nil {
				restore.Spec.LabelSelector = &metav1.LabelSelector{MatchLabels: tc.labels}
			}
			if tc.policies != "" {
				c.configMap = map[string]string{"policies.yaml": tc.policies}
			}
			results, err := dryRunResults(t.Context(), packed(t, backup...), &fakeDryRunCluster{cluster: c, resources: anything}, restore)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.err, err)
				}

				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := resultLines(results)
			if name == "Nothing" {
				got = slices.DeleteFunc(got, func(line string) bool { return !slices.Contains(tc.want, line) && strings.HasPrefix(line, "skip ") })
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDryRunOfUpdates(t *testing.T) {
	s := newShop()
	configMap := xptest.Object("v1", "ConfigMap", "team-a", "d")
	backup := []*unstructured.Unstructured{configMap, s.xr, s.mr}
	restore := restoreOf(nil)
	restore.Spec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate
	results, err := dryRunResults(t.Context(), packed(t, backup...), &fakeDryRunCluster{cluster: live(backup...), resources: anything}, restore)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"update ConfigMap team-a/d", "exists XOrder x for Bucket b", "exists Bucket b"}
	if diff := cmp.Diff(want, resultLines(results)); diff != "" {
		t.Errorf("Velero updates what exists, but nothing of Crossplane: -want, +got:\n%s", diff)
	}
	for _, f := range results {
		if f.Outcome.Action == report.Refuse {
			t.Errorf("got %+v", f)
		}
	}
}
