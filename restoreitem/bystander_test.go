package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// restoreOfTeamA returns a Restore of the namespace team-a.
func restoreOfTeamA() *velerov1.Restore {
	restore := restoreOf(nil)
	restore.Spec.IncludedNamespaces = teamA().IncludedNamespaces

	return restore
}

func TestAdoptMovesNoLiveXR(t *testing.T) {
	composing := xptest.XR("theirs", xptest.Refs(xptest.MR("b")))
	composition := xptest.Composition(xptest.CompositionName, composing)
	cases := map[string]struct {
		reason  string
		live    *cluster
		restore *velerov1.Restore
		// left are parts of the note if the Composition is left out.
		left   []string
		failed error
	}{
		"Composing": {
			reason: "Crossplane would delete what the Composition of the backup does not compose.", live: live(composing), restore: restoreOfTeamA(),
			left: []string{"XOrder theirs", "apply it yourself", "[CompositionLeftOut]"},
		},
		"Many": {
			reason: "A note names a few.", restore: restoreOfTeamA(), left: []string{"XOrder a, XOrder b, XOrder c and 1 more"},
			live: live(xptest.With(composing, xptest.Field("a", "metadata", "name")), xptest.With(composing, xptest.Field("b", "metadata", "name")),
				xptest.With(composing, xptest.Field("c", "metadata", "name")), xptest.With(composing, xptest.Field("d", "metadata", "name"))),
		},
		"Waiting":  {reason: "An XR that has composed nothing waits for the Composition.", live: live(xptest.With(composing, xptest.Refs())), restore: restoreOfTeamA()},
		"Held":     {reason: "An XR that a restore holds is no other's.", live: live(heldWith(composing)), restore: restoreOfTeamA()},
		"OfOther":  {reason: "It names another Composition.", live: live(xptest.With(composing, xptest.Field("o", "spec", "compositionRef", "name"))), restore: restoreOfTeamA()},
		"Live":     {reason: "Velero leaves a live Composition.", live: live(composing, composition), restore: restoreOfTeamA()},
		"All":      {reason: "A user who restores everything asks for all Compositions.", live: live(composing), restore: restoreOf(nil)},
		"NoAnswer": {reason: "Without an answer it is unknown whether XRs run on it.", live: failingCluster(errAPI), restore: restoreOfTeamA(), failed: errAPI},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, tc.live, composition, tc.restore)
			if diff := cmp.Diff(tc.failed, out.err, cmpopts.EquateErrors()); diff != "" || out.err != nil {
				if diff != "" {
					t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
				}

				return
			}
			if out.SkipRestore != (len(tc.left) > 0) {
				t.Errorf("%s got %+v", tc.reason, out)
			}
			for _, part := range tc.left {
				if !strings.Contains(out.note, part) {
					t.Errorf("the note must have %q: %s", part, out.note)
				}
			}
		})
	}
}

func TestAdoptLabelsNothingForOthers(t *testing.T) {
	environment := xptest.Object("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", "", "prod", xptest.Labelled("region", "eu"))
	for name, tc := range map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		restore *velerov1.Restore
		removed bool
	}{
		"OfNamespaces": {reason: "A function of a live XR could select it.", item: environment, restore: restoreOfTeamA(), removed: true},
		"All":          {reason: "A restore of everything brings it as it was.", item: environment, restore: restoreOf(nil)},
		"Composed":     {reason: "Crossplane finds what an XR composes by its labels.", item: xptest.With(environment, xptest.ControlledBy(xptest.XR("x"))), restore: restoreOfTeamA()},
	} {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, live(xptest.XR("x", xptest.Refs(tc.item))), tc.item, tc.restore)
			if out.err != nil {
				t.Fatal(out.err)
			}
			got := tc.item.GetLabels()
			if out.object != nil {
				got = out.object.GetLabels()
			}
			want := tc.item.GetLabels()
			if tc.removed {
				want = nil
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || tc.removed != strings.Contains(out.note, "[LabelsLeftOut]") {
				t.Errorf("%s note %q, -want, +got:\n%s", tc.reason, out.note, diff)
			}
		})
	}
}

// With --existing-resource-policy=update Velero would write what the backup has over what all
// namespaces share.
func TestAdoptKeepsWhatIsShared(t *testing.T) {
	x := xptest.XR("x")
	composition := xptest.Composition(xptest.CompositionName, x)
	for _, item := range []*unstructured.Unstructured{
		composition,
		xptest.Revision("r", x, xptest.Field(int64(1), "spec", "revision")),
		xptest.XRD("xorders.example.org"),
		xptest.Object("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", "", "prod", xptest.Labelled("region", "eu")),
		xptest.Object("cloud.example.org/v1beta1", "ProviderConfig", "", "default"),
		xptest.Object("cloud.m.example.org/v1beta1", "ClusterProviderConfig", "", "default"),
		xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "u", xptest.JSON(`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket"}}}`)),
		xptest.Object("protection.crossplane.io/v1beta1", "ClusterUsage", "", "u", xptest.JSON(`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket"}}}`)),
		xptest.Object("pkg.crossplane.io/v1", "Provider", "", "cloud"),
	} {
		restore := restoreOfTeamA()
		restore.Spec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate
		if out := adopt(t, live(item, composition), item, restore); out.err != nil || !out.SkipRestore || !strings.Contains(out.note, "[KeptAsLive]") {
			t.Errorf("%s must stay as it is: %+v", xp.String(item), out)
		}
	}
}

func TestAdoptProtectsNothingOfOthers(t *testing.T) {
	usage := func(of string) *unstructured.Unstructured {
		return xptest.Object("protection.crossplane.io/v1beta1", "Usage", "team-a", "u", xptest.JSON(`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket",`+
			of+`},"by":{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket","resourceRef":{"name":"mine"}}}}`))
	}
	named, selected := usage(`"resourceRef":{"name":"b","namespace":"team-b"}`), usage(`"resourceSelector":{"matchLabels":{"a":"b"},"namespace":"team-b"}`)
	x := xptest.XR("x", xptest.Refs(named))
	for name, tc := range map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		restore *velerov1.Restore
		left    bool
	}{
		"Named":    {reason: "Team-b could not delete its object any more.", item: named, restore: restoreOfTeamA(), left: true},
		"Selected": {reason: "Crossplane could select another of team-b than before.", item: selected, restore: restoreOfTeamA(), left: true},
		"Own":      {reason: "What it protects is in its namespace.", item: usage(`"resourceRef":{"name":"b"}`), restore: restoreOfTeamA()},
		"All":      {reason: "What it protects is restored too.", item: named, restore: restoreOf(nil)},
		"Composed": {reason: "Crossplane would compose it again.", item: xptest.With(named, xptest.ControlledBy(x)), restore: restoreOfTeamA()},
	} {
		out := adopt(t, live(x), tc.item, tc.restore)
		if out.err != nil || out.SkipRestore != tc.left || tc.left != strings.Contains(out.note, "[OutsideNamespace]") {
			t.Errorf("%s: %s got %+v", name, tc.reason, out)
		}
	}
}
