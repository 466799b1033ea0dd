package restoreitem

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
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
	either := []*metav1.LabelSelector{{MatchLabels: map[string]string{"app": "a"}}, {MatchLabels: map[string]string{"app": "b"}}}
	for name, tc := range map[string]struct {
		reason string
		spec   velerov1.RestoreSpec
		want   []string
	}{
		"Namespace": {
			reason: "A restore of a namespace brings the whole trees of its claims, and the Namespace.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}},
			want: []string{
				"create Namespace team-a", "create Composition orders for CompositionRevision orders-1a2b3c", "create CompositionRevision orders-1a2b3c for XOrder x",
				"create CompositeResourceDefinition xorders.example.org for XOrder x", "hold XOrder x for Bucket b", "hold Bucket b for Secret team-a/s",
				"create Secret team-a/s", "create ConfigMap team-a/d", "hold OrderClaim team-a/c",
			},
		},
		"Excluded": {
			reason: "An excluded namespace stays out.", spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-a"}},
			want: []string{"create Namespace team-b", "create ConfigMap team-b/c"},
		},
		"Labels": {
			reason: "Items with other labels stay out, and their Namespaces come with those that don't.", spec: velerov1.RestoreSpec{OrLabelSelectors: either},
			want: []string{"create Namespace team-a", "create ConfigMap team-a/d", "create Namespace team-b", "create ConfigMap team-b/c"},
		},
		"NotClusterScoped": {
			reason: "Nothing cluster-scoped comes, also if it is requested.", want: []string{"create Namespace team-a", "create Secret team-a/s"},
			spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: new(false), IncludedResources: []string{"secret", "xorders.example.org"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			results := dryRunOf(t, &fakeDryRunCluster{cluster: live(), resources: anything}, restoreWith(tc.spec), backup...)
			got := slices.DeleteFunc(resultLines(results), func(line string) bool { return strings.HasPrefix(line, "skip ") })
			if diff := cmp.Diff(tc.want, got); diff != "" || len(results) != len(backup) {
				t.Errorf("%s %d results, -want, +got:\n%s", tc.reason, len(results), diff)
			}
		})
	}
}

func TestDryRunRefusesFilters(t *testing.T) {
	for want, spec := range map[string]velerov1.RestoreSpec{
		"both labelSelector and orLabelSelectors":                   {LabelSelector: &metav1.LabelSelector{}, OrLabelSelectors: []*metav1.LabelSelector{{}}},
		"excludes list cannot contain an item in the includes list": {IncludedNamespaces: []string{"a"}, ExcludedNamespaces: []string{"a"}},
		"ConfigMap velero/few: without a cluster":                   {ResourcePolicy: &corev1.TypedLocalObjectReference{Kind: "configmap", Name: "few"}},
		`not a "Secret"`:                      {ResourcePolicy: &corev1.TypedLocalObjectReference{Kind: "Secret", Name: "few"}},
		"not a valid label selector operator": {LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}},
	} {
		if _, err := dryRunResults(t.Context(), packed(t, xptest.MR("b")), nil, restoreWith(spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// A policy selects what Velero finds; what a selected item requests comes whatever its name.
func TestDryRunOfPolicies(t *testing.T) {
	s := newShop()
	s.mr = xptest.With(s.mr, xptest.Labelled(xp.LabelClaimNamespace, "team-a"))
	backup := append(s.all(), xptest.Claim("other"), xptest.Object("v1", "ConfigMap", "team-a", "d", xptest.Labelled("app", "b")))
	const policies = "version: v1\nnamespacedFilterPolicies:\n- namespaces: [team-a]\n  resourceFilters:\n  - "
	for name, tc := range map[string]struct {
		reason, policies string
		labels           *metav1.LabelSelector
		want             []string
		err              string
	}{
		"OneTree": {
			reason: "One tree is selected by the name of its claim.", policies: policies + "{kinds: [orderclaims.example.org], names: [c]}",
			want: []string{
				"create Namespace team-a", "create Composition orders for CompositionRevision orders-1a2b3c", "create CompositionRevision orders-1a2b3c for XOrder x",
				"create CompositeResourceDefinition xorders.example.org for XOrder x", "hold XOrder x for OrderClaim team-a/c", "hold Bucket b for OrderClaim team-a/c",
				"create Secret team-a/s for OrderClaim team-a/c", "hold OrderClaim team-a/c",
			},
		},
		"Nothing": {
			reason: "A policy without a kind of the tree selects nothing of it.", policies: policies + "{kinds: [cm], names: [d]}",
			labels: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, want: []string{"create Namespace team-a", "create ConfigMap team-a/d"},
		},
		"Gone":    {reason: "Velero refuses a Restore without its policies.", err: "it has 0 keys"},
		"Refused": {reason: "Velero refuses the policies.", policies: "version: v2", err: "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := live()
			if tc.policies != "" {
				c.configMap = map[string]string{"policies.yaml": tc.policies}
			}
			restore := restoreWith(velerov1.RestoreSpec{
				IncludedNamespaces: []string{"team-a"}, ResourcePolicy: &corev1.TypedLocalObjectReference{Kind: "configmap", Name: "few"}, LabelSelector: tc.labels,
			})
			results, err := dryRunResults(t.Context(), packed(t, backup...), &fakeDryRunCluster{cluster: c, resources: anything}, restore)
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) || tc.err == "" && err != nil {
				t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.err, err)
			}
			got := slices.DeleteFunc(resultLines(results), func(line string) bool { return strings.HasPrefix(line, "skip ") })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDryRunOfUpdates(t *testing.T) {
	s := newShop()
	backup := []*unstructured.Unstructured{xptest.Object("v1", "ConfigMap", "team-a", "d"), s.xr, s.mr}
	results := dryRunOf(t, &fakeDryRunCluster{cluster: live(backup...), resources: anything}, updating(), backup...)
	want := []string{"update ConfigMap team-a/d", "exists XOrder x for Bucket b", "exists Bucket b"}
	if diff := cmp.Diff(want, resultLines(results)); diff != "" {
		t.Errorf("Velero updates what exists, but nothing of Crossplane: -want, +got:\n%s", diff)
	}
}

// Velero gives actions copies, and a dry run gives them its own objects. So an action must not
// change an object of the backup or the cluster, and an item only if it returns that.
func TestActionsChangeWhatTheyReturn(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	returned, zoo := 0, xptest.HostileObjects()
	xptest.Seeds(func(animal uint8, patch []byte) {
		u, ok := xptest.Patched(animal, patch)
		if !ok {
			return
		}
		for n := range uint8(5) {
			c := live()
			c.objects = zoo
			for _, a := range []riav2.RestoreItemAction{NewOrder(Crossplane(), kindsFn(served), log, Shared{}), NewAdopt(Crossplane(), c, nil, log, Shared{})} {
				input := inputFor(u, hostileRestore(n))
				original := &unstructured.Unstructured{Object: input.ItemFromBackup.UnstructuredContent()}
				item := &unstructured.Unstructured{Object: input.Item.UnstructuredContent()}
				before, beforeItem := original.DeepCopy(), item.DeepCopy()
				out, err := a.Execute(input)
				if !reflect.DeepEqual(before, original) {
					t.Fatalf("%s changes the backup's %s: %s", a.Name(), xp.String(before), cmp.Diff(before, original))
				}
				if err != nil || out.SkipRestore {
					continue // It is not used again.
				}
				if out.UpdatedItem != nil {
					returned++

					continue
				}
				if !reflect.DeepEqual(beforeItem, item) {
					t.Fatalf("%s changes %s and does not return it: %s", a.Name(), xp.String(before), cmp.Diff(beforeItem, item))
				}
			}
		}
	})
	if diff := cmp.Diff(xptest.HostileObjects(), zoo); diff != "" {
		t.Errorf("an action changed a live object: %s", diff)
	}
	if returned == 0 {
		t.Error("no action returned an item, so the test proves nothing")
	}
}

// Each composed resource reads its XR, which can list thousands.
func TestADryRunUnpacksAnXROnce(t *testing.T) {
	c := &simulatedCluster{packer: pack.New(), restored: map[xp.ID]pack.Object{}}
	x := xptest.XR("x")
	c.add(x)
	before := c.find(xp.RefTo(x).ID())
	c.add(xptest.MR("b"))
	if c.find(xp.RefTo(x).ID()) != before {
		t.Error("another object must not unpack the XR again")
	}
	c.add(x)
	if c.find(xp.RefTo(x).ID()) == before {
		t.Error("a new state must be read")
	}
}

// Each later version restores the backups of a released one: claims and XRs on hold, and each XR
// before what it composes. The backups of each version are in testdata and never change
// (docs/dev/architecture.md).
func TestReleasedBackups(t *testing.T) {
	backups, err := filepath.Glob("testdata/released/v*/*.tar.gz")
	if err != nil || len(backups) == 0 {
		t.Fatalf("want backups of released versions: %v", err)
	}
	for _, path := range backups {
		t.Run(path, func(t *testing.T) {
			f, err := os.Open(filepath.Clean(path))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			b, err := archive.Read(t.Context(), f, archive.Default())
			if err != nil {
				t.Fatal(err)
			}
			results, err := dryRunResults(t.Context(), b, &fakeDryRunCluster{cluster: &cluster{}, resources: servedAsIn(b)}, restoreOf(nil))
			if err != nil {
				t.Fatal(err)
			}
			testResults(t, b, results)
		})
	}
}

// servedAsIn serves the kinds in a backup.
func servedAsIn(b *archive.Backup) kindsFn {
	namespaced := map[schema.GroupResource]bool{}
	for _, item := range b.Items {
		namespaced[item.GroupResource] = item.Namespace != ""
	}

	return func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
		gvr, _, err := anything(gvk)

		return gvr, namespaced[gvr.GroupResource()], err
	}
}

func testResults(t *testing.T, b *archive.Backup, results []report.ItemResult) {
	t.Helper()
	held, composed := 0, 0
	came := map[xp.ID]bool{}
	for _, f := range results {
		u := b.Get(xp.Item{GroupResource: schema.ParseGroupResource(f.Resource), Namespace: f.Item.Namespace, Name: f.Item.Name})
		if u == nil {
			continue
		}
		if f.Outcome.Action == report.Refuse && !xp.IsUsage(u) { // A Usage is left behind.
			t.Errorf("%s is refused: %s", f.Item, f.Outcome.Reason)
		}
		if xp.IsComposite(u) || xp.IsClaim(u) {
			held++
			if f.Outcome.Action != report.Keep {
				t.Errorf("%s must come back on hold: %+v", f.Item, f.Outcome)
			}
		}
		if c, ok := xp.Controller(u); ok && xp.IsComposed(u) {
			composed++
			xr := xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: u.GetNamespace(), Name: c.Name}
			if cluster := (xp.Ref{APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Name}); !came[xr.ID()] && !came[cluster.ID()] {
				t.Errorf("%s comes before its XR %s", f.Item, xr)
			}
		}
		came[f.Item.ID()] = true
	}
	if held == 0 || composed == 0 {
		t.Errorf("the backup has %d claims and XRs, and %d composed resources", held, composed)
	}
}

// Each later version continues the operations of a released one: the plugin can be upgraded during
// a restore.
func TestReleasedOperations(t *testing.T) {
	lists, err := filepath.Glob("testdata/released/v*/operations.txt")
	if err != nil || len(lists) == 0 {
		t.Fatalf("want backups of released versions: %v", err)
	}
	for _, path := range lists {
		b, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			id := strings.TrimSuffix(line, "\n")
			if noteText(id, &velero.OperationProgress{}) {
				continue
			}
			operation, note, _ := strings.Cut(id, noteAfter)
			r, err := parseOperationID(operation)
			if err != nil || operationID(r) != operation {
				t.Errorf("%s: %q is read as %s: %v", path, id, r, err)
			}
			if (note != "") != strings.Contains(id, "note: ") {
				t.Errorf("%s: %q has the note %q", path, id, note)
			}
		}
	}
}
