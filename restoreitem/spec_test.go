package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Whatever a Restore selects, an XR is held, and its composed resources request it if the Restore
// includes its namespace.
func TestOddRestores(t *testing.T) {
	xr := xptest.XRV2("x")
	mr := xptest.NamespacedMR("b", xptest.ControlledBy(xr))
	first := []velero.ResourceIdentifier{id("example.org", "orders", xptest.Namespace, "x")}
	cases := map[string]struct {
		reason string
		spec   velerov1.RestoreSpec
		want   []velero.ResourceIdentifier
	}{
		"Nothing":         {reason: "A restore without filters has all of the backup.", want: first},
		"Empty":           {reason: "An empty list equals no list.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{}, ExcludedNamespaces: []string{}}, want: first},
		"NilSelectors":    {reason: "A list of selectors can contain nil.", spec: velerov1.RestoreSpec{OrLabelSelectors: []*metav1.LabelSelector{nil}}, want: first},
		"EmptySelector":   {reason: "An empty selector selects everything.", spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}}, want: first},
		"BothSelectors":   {reason: "Velero refuses a Restore with both selectors.", spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}, OrLabelSelectors: []*metav1.LabelSelector{{}}}, want: first},
		"Contradiction":   {reason: "An exclusion takes precedence over an inclusion.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, ExcludedNamespaces: []string{"team-a"}}},
		"StarAgainstStar": {reason: "An excluded star takes precedence over an included star.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{"*"}}},
		"NoNamespace":     {reason: "The restore excludes all namespaces.", spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"*"}}},
		"Glob":            {reason: "Velero allows globs.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-[ab]"}}, want: first},
		"GlobExcluded":    {reason: "Velero allows globs in exclusions.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, ExcludedNamespaces: []string{"team-?"}}},
		"BadGlob":         {reason: "A malformed pattern matches no namespace.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-["}}},
		"BadGlobExcluded": {reason: "A malformed pattern excludes no namespace.", spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-["}}, want: first},
		"EmptyName":       {reason: "No namespace has an empty name.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{""}}},
		"Twice":           {reason: "A repeated namespace counts once.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a", "*", "team-a"}}, want: first},
		"Resources": {
			reason: "Velero decides which resources come.", spec: velerov1.RestoreSpec{IncludedResources: []string{"*"}}, want: first,
		},
		"NoCluster": {reason: "The objects here are not cluster-scoped.", spec: velerov1.RestoreSpec{IncludeClusterResources: ptr.To(false)}, want: first},
		"Hooks":     {reason: "Velero runs hooks, and the plugin ignores them.", spec: velerov1.RestoreSpec{Hooks: velerov1.RestoreHooks{Resources: []velerov1.RestoreResourceHookSpec{{}}}}, want: first},
		"NilHooks":  {reason: "A Restore may have no hooks.", spec: velerov1.RestoreSpec{Hooks: velerov1.RestoreHooks{Resources: nil}}, want: first},
		"Policy":    {reason: "An unknown policy does not equal update.", spec: velerov1.RestoreSpec{ExistingResourcePolicy: "?"}, want: first},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			restore.Spec = tc.spec
			log, hook := logtest.NewNullLogger()
			out, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{}).Execute(inputFor(mr, restore))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.AdditionalItems, cmpopts.EquateEmpty()); diff != "" || out.SkipRestore || (len(hook.AllEntries()) == 0) != (len(tc.want) > 0) {
				t.Errorf("%s\nwith the warnings %v: -want, +first:\n%s", tc.reason, hook.AllEntries(), diff)
			}
			got := adopt(t, live(), xr, restore)
			if got.err != nil || got.object == nil || got.OperationID == "" {
				t.Fatalf("%s\nthe XR comes back without an operation: %v, error %v", tc.reason, got.object, got.err)
			}
			if h, err := adoption.HoldOf(got.object); h == nil || err != nil {
				t.Errorf("%s\nthe XR is not held: %v, %v", tc.reason, h, err)
			}
		})
	}
}
