package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// In a restore of namespaces a list that another writer may have forged must not bring anything. An
// EnvironmentConfig comes only if a CompositionRevision names it, which comes only if it is for the
// XR.
func TestOrderBringsEnvironmentConfigs(t *testing.T) {
	const listed = "environmentconfigs.apiextensions.crossplane.io//e"
	xr := xptest.XR("x", xptest.RestoreFirst("compositionrevisions.apiextensions.crossplane.io//"+xptest.RevisionName, listed), xptest.Refs())
	xptest.Labelled(xp.LabelClaimNamespace, "team-a")(xr)
	environment := xptest.Object("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", "", "e")
	reading := func(entries string) *unstructured.Unstructured {
		return xptest.Revision(xptest.RevisionName, xr, xptest.JSON(`{"spec":{"pipeline":[{"step":"env","input":{"environmentConfigs":[`+entries+`]}}]}}`))
	}
	named, selecting := reading(`{"ref":{"name":"e"}}`), reading(`{"selector":{}}`)
	other := xptest.Revision(xptest.RevisionName, xptest.XRV2("y"), xptest.Field(named.Object["spec"].(map[string]any)["pipeline"], "spec", "pipeline")) //nolint:forcetypeassert // The test fails.
	ofTeam := velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}}
	cases := map[string]struct {
		reason string
		items  []*unstructured.Unstructured
		spec   velerov1.RestoreSpec
		// left means that the EnvironmentConfig is left out, and reported is what the restore
		// reports.
		left     bool
		reported string
	}{
		"All":     {reason: "A restore of everything brings it without a request.", items: []*unstructured.Unstructured{environment}},
		"Named":   {reason: "The XR comes back with the EnvironmentConfigs that its functions read.", items: []*unstructured.Unstructured{xr, named, environment}, spec: ofTeam},
		"Unnamed": {reason: "No reference connects the EnvironmentConfig to the XR.", items: []*unstructured.Unstructured{xr, selecting, environment}, spec: ofTeam, left: true, reported: "[PipelineReads]"},
		"Foreign": {
			reason: "A revision for another kind of XR must not bring an EnvironmentConfig.", items: []*unstructured.Unstructured{xr, other, environment}, spec: ofTeam, left: true,
			reported: "only XOrder x named it. To restore it, add --include-cluster-resources=true [PlatformLeftOut]",
		},
		"SelectedOfAll": {reason: "A restore of everything brings all EnvironmentConfigs.", items: []*unstructured.Unstructured{xr, selecting}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			o, restore := NewOrder(Crossplane(), kindsFn(served), log, Shared{}), restoreOf(nil)
			restore.Spec = tc.spec
			var reported []string
			left := false
			for _, item := range tc.items {
				out, err := o.Execute(inputFor(item, restore))
				if err != nil {
					t.Fatal(err)
				}
				left = out.SkipRestore && item == environment
				if progress := (velero.OperationProgress{}); noteText(out.OperationID, &progress) {
					reported = append(reported, progress.Description)
				}
			}
			if all := strings.Join(reported, "; "); left != tc.left || !strings.Contains(all, tc.reported) || all != "" && tc.reported == "" {
				t.Errorf("%s\nleft out: %v, warned %q, want %q", tc.reason, left, all, tc.reported)
			}
		})
	}
}

func TestAdoptNotesEnvironmentConfigs(t *testing.T) {
	out := adopt(t, live(), xptest.XR("x", xptest.RestoreFirst("environmentconfigs.apiextensions.crossplane.io//e")), restoreOf(nil))
	if out.err != nil {
		t.Fatal(out.err)
	}
	if h, err := adoption.HoldOf(out.object); err != nil || h == nil || len(h.Environments) != 1 {
		t.Errorf("the hold must name the EnvironmentConfig in the backup; got %+v, error %v", h, err)
	}
}

func TestAdoptNotesWhatARevisionRequires(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	requested, xr := &RequestedItems{}, xptest.XR("x")
	revision := xptest.Revision(xptest.RevisionName, xr, xptest.JSON(`{"spec":{"pipeline":[{"step":"a","requirements":{"requiredSchemas":[{}]}}]}}`))
	order := NewOrder(Crossplane(), kindsFn(served), log, Shared{Requested: requested})
	if _, err := order.Execute(inputFor(revision, restoreOf(nil))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"requiredSchemas of the step a"}, requested.requires(xr)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := (&RequestedItems{}).requires(xr); got != nil {
		t.Errorf("want no requirements without a revision; got %v", got)
	}
}
