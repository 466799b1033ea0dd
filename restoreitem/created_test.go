package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// newDefinition returns an XRD in v2, as a backup of Crossplane v2 has it.
func newDefinition(scope string) *unstructured.Unstructured {
	return xptest.Object(xp.GroupAPIExtensions+"/v2", "CompositeResourceDefinition", "", "xorders.example.org", xptest.Field(scope, "spec", "scope"),
		xptest.Field(map[string]any{"kind": "OrderClaim", "plural": "orderclaims"}, "spec", "claimNames"))
}

func TestAdoptChangesVersion(t *testing.T) {
	legacy := xptest.With(newDefinition(xp.ScopeLegacy), xptest.Annotated("example.org/theirs", "kept"))
	v1 := legacy.DeepCopy()
	v1.SetAPIVersion(xp.GroupAPIExtensions + "/v1")
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		want   *unstructured.Unstructured
	}{
		"Legacy":    {reason: "v2 of XRDs refuses what v1 accepts, and Velero creates an item in the version that an action returns.", item: legacy, want: v1},
		"InV1":      {reason: "v1 accepts it.", item: v1},
		"ScopeOfV2": {reason: "v2 accepts what it was made for.", item: newDefinition("Namespaced")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, live(), tc.item, restoreOf(nil))
			if out.err != nil {
				t.Fatal(out.err)
			}
			if tc.want != nil {
				xp.StripBackupMetadata(tc.want)
				tc.want.SetUID("")
			}
			if out.object != nil {
				out.object.SetUID("")
			}
			if diff := cmp.Diff(tc.want, out.object); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadinessChecksCreatedVersion(t *testing.T) {
	only := func(version string) conversion {
		return conversion{versions: xp.Versions{Kind: xp.KindDefinition.GroupKind(), Stored: version, Served: []string{version}}}
	}
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		refused bool
	}{
		"Legacy":    {reason: "Crossplane v1 has no scopes, but all its XRDs are such.", item: newDefinition(xp.ScopeLegacy)},
		"ScopeOfV2": {reason: "Crossplane v1 can't have it.", item: newDefinition("Cluster"), refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := only("v1")
			log, _ := logtest.NewNullLogger()
			o := NewOrder(Crossplane(), kindsFn(served), log, Shared{Ready: c.readiness()})
			if _, err := o.Execute(inputFor(tc.item, restoreOf(nil))); (err != nil) != tc.refused {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// The backup has XRDs only in v2, and inspect needs no cluster.
func TestDryRunCreatesLegacyDefinition(t *testing.T) {
	want := []string{"create CompositeResourceDefinition xorders.example.org"}
	results, err := dryRunResults(t.Context(), packed(t, newDefinition(xp.ScopeLegacy)), nil, restoreOf(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, resultLines(results)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
