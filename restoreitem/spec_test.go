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
	xr := xptest.ModernXR("x")
	mr := xptest.NamespacedMR("b", xptest.ControlledBy(xr))
	first := []velero.ResourceIdentifier{id("example.org", "orders", xptest.Namespace, "x")}
	cases := map[string]struct {
		reason string
		spec   velerov1.RestoreSpec
		want   []velero.ResourceIdentifier
	}{
		"Nothing":         {reason: "All of the backup.", want: first},
		"Empty":           {reason: "An empty list is none.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{}, ExcludedNamespaces: []string{}}, want: first},
		"NilSelectors":    {reason: "A selector can be missing in the list.", spec: velerov1.RestoreSpec{OrLabelSelectors: []*metav1.LabelSelector{nil}}, want: first},
		"EmptySelector":   {reason: "It selects everything.", spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}}, want: first},
		"BothSelectors":   {reason: "Velero refuses both.", spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}, OrLabelSelectors: []*metav1.LabelSelector{{}}}, want: first},
		"Contradiction":   {reason: "An exclusion counts for more.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, ExcludedNamespaces: []string{"team-a"}}},
		"StarAgainstStar": {reason: "The same for all.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{"*"}}},
		"NoNamespace":     {reason: "All are left out.", spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"*"}}},
		"Glob":            {reason: "Velero allows globs.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-[ab]"}}, want: first},
		"GlobExcluded":    {reason: "Also here.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, ExcludedNamespaces: []string{"team-?"}}},
		"BadGlob":         {reason: "It matches nothing.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-["}}},
		"BadGlobExcluded": {reason: "It leaves nothing out.", spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-["}}, want: first},
		"EmptyName":       {reason: "No namespace is called that.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{""}}},
		"Twice":           {reason: "Once is enough.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a", "*", "team-a"}}, want: first},
		"Resources": {
			reason: "Which resources come is Velero's to say.", spec: velerov1.RestoreSpec{IncludedResources: []string{"*"}}, want: first,
		},
		"NoCluster": {reason: "Nothing here is cluster-scoped.", spec: velerov1.RestoreSpec{IncludeClusterResources: ptr.To(false)}, want: first},
		"Hooks":     {reason: "Hooks are Velero's.", spec: velerov1.RestoreSpec{Hooks: velerov1.RestoreHooks{Resources: []velerov1.RestoreResourceHookSpec{{}}}}, want: first},
		"NilHooks":  {reason: "There may be none.", spec: velerov1.RestoreSpec{Hooks: velerov1.RestoreHooks{Resources: nil}}, want: first},
		"Policy":    {reason: "A policy that nobody knows is not update.", spec: velerov1.RestoreSpec{ExistingResourcePolicy: "?"}, want: first},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			restore.Spec = tc.spec
			log, hook := logtest.NewNullLogger()
			out, err := NewOrder(Crossplane(), ResourceMapperFn(served), &RequestedItems{}, log).Execute(inputFor(mr, restore))
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
