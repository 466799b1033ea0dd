package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// What an XR composed must not run without an owner: who creates the XR again would get others
// beside it.
func TestAdoptHoldsWhatHasLostItsXR(t *testing.T) {
	xr := xptest.XRV2("x", xptest.UID("old"))
	mr := xptest.NamespacedMR("b", xptest.Annotated(xp.AnnotationExternalName, "external"), xptest.ControlledBy(xr), xptest.Labelled(xp.LabelComposite, "x"))
	nested := xptest.XRV2("nested", xptest.ControlledBy(xr), xptest.Labelled(xp.LabelComposite, "x"))
	now := xptest.XRV2("x", xptest.UID("new"))
	owner := xp.RefTo(xr)
	before := xptest.With(mr, xptest.Without("metadata", "ownerReferences"), xptest.Annotated(xp.AnnotationResourceName, "b"))
	if _, err := adoption.Put(before, adoption.Hold{Restore: "velero/sunday", Owner: &owner}); err != nil {
		t.Fatal(err)
	}
	labelled := restoreOf(nil)
	labelled.Spec.LabelSelector = &metav1.LabelSelector{}
	type want struct {
		Paused bool
		Owner  string
		Op     string
	}
	held := want{Paused: true, Owner: "Order team-a/x", Op: "Bucket.v1alpha1.cloud.example.org/team-a/b"}
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		live    *cluster
		hold    string
		restore *velerov1.Restore
		want    want
	}{
		"NotInBackup": {reason: "Velero leaves out an XR that is being deleted.", item: mr, live: live(), want: held},
		"Deleting":    {reason: "An XR that is being deleted adopts nothing.", item: mr, live: live(xptest.With(now, xptest.Deleting())), want: held},
		"NotListed":   {reason: "A held XR that does not list it does not adopt it.", item: mr, live: live(heldWith(now)), want: held},
		"ByLabels":    {reason: "In a restore by labels the XR can come later, or be refused.", item: mr, live: live(), restore: labelled, want: held},
		"HeldBefore":  {reason: "The backup was taken while it was held.", item: before, live: live(), want: held},
		"Nested": {
			reason: "A nested XR would run without an owner, too.", item: nested, live: live(), want: want{Paused: true, Owner: "Order team-a/x", Op: "Order.v1.example.org/team-a/nested"},
		},
		"Live":       {reason: "Its XR is there.", item: mr, live: live(heldWith(xptest.With(now, xptest.Refs(mr))))},
		"HoldNone":   {reason: "The user wants no holds.", item: mr, live: live(), hold: "none"},
		"Observing":  {reason: "It changes nothing outside.", item: xptest.With(mr, policies(`["Observe"]`)), live: live()},
		"Standalone": {reason: "No XR composed it.", item: xptest.With(mr, xptest.Without("metadata", "ownerReferences")), live: live()},
		"Config":     {reason: "No controller looks at a pause of it.", item: xptest.Object("v1", "ConfigMap", "team-a", "c", xptest.ControlledBy(xr), xptest.Labelled(xp.LabelComposite, "x")), live: live()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.hold != "" {
				tc.live.config = map[string]string{"hold": tc.hold}
			}
			if tc.restore == nil {
				tc.restore = restoreOf(nil)
			}
			out := adopt(t, tc.live, tc.item, tc.restore)
			if out.err != nil {
				t.Fatal(out.err)
			}
			got := want{Op: out.OperationID}
			if out.object != nil {
				got.Paused = xp.IsPaused(out.object)
				if h, err := adoption.HoldOf(out.object); err == nil && h != nil && h.Owner != nil {
					got.Owner = h.Owner.String()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
