package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
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
		"Policy": {
			reason: "What a policy selects is not guessed.", spec: velerov1.RestoreSpec{ResourcePolicy: &corev1.TypedLocalObjectReference{Name: "few"}},
			want: "resourcePolicy few",
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

func TestDryRunOfUpdates(t *testing.T) {
	s := newShop()
	configMap := xptest.Object("v1", "ConfigMap", "team-a", "d")
	backup := []*unstructured.Unstructured{configMap, s.xr, s.mr}
	cases := map[string]struct {
		reason  string
		standby *adoption.Standby
		want    []string
	}{
		"Update": {
			reason: "Velero updates what exists, but nothing of Crossplane.",
			want:   []string{"update ConfigMap team-a/d", "exists XOrder x for Bucket b", "exists Bucket b"},
		},
		"Standby": {
			reason: "What is in quarantine is refreshed.", standby: &adoption.Standby{UID: "1", Restore: "velero/sunday"},
			want: []string{"update ConfigMap team-a/d", "update XOrder x for Bucket b", "update Bucket b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			restore.Spec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate
			restore.Annotations = map[string]string{}
			if tc.standby != nil {
				restore.Annotations[setting.Prefix+setting.NameStandby] = "true"
			}
			c := &fakeDryRunCluster{cluster: live(backup...), resources: anything, standby: tc.standby}
			results, err := dryRunResults(t.Context(), packed(t, backup...), c, restore)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, resultLines(results)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			for _, f := range results {
				if f.Outcome.Action == report.Refuse {
					t.Errorf("got %+v", f)
				}
			}
		})
	}
}
