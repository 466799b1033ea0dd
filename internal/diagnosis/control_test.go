package diagnosis

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The next step depends on why no XR, or another one, controls a resource.
func TestNextOfUncontrolled(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled())
	nested := xptest.XR("nested", deleted(time.Second))
	labelled, restored := xptest.Labelled(xp.LabelComposite, "x"), xptest.Labelled(xp.LabelRestore, "monday")
	place := xptest.Annotated(xp.AnnotationResourceName, "b")
	lists := xptest.With(x, xptest.Refs(xptest.MR("b")))
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		code    reason.Code
		// has and lacks are in the next step, and not in it.
		has, lacks string
	}{
		"XRRefused": {
			reason: "The restore refused the XR or left it out, and another restore adopts what it composes.", code: reason.Orphaned,
			objects: []*unstructured.Unstructured{xptest.MR("b", labelled, place, restored)},
			has:     "restore the same backup again: the XR adopts it. The errors of the restore have the reason: velero restore describe --details monday", lacks: "add it to",
		},
		"NestedRefused": {
			reason: "The XR that composed it is a nested one, and the root is live.", code: reason.Orphaned,
			objects: []*unstructured.Unstructured{x, heldAs(xptest.MR("b", labelled, place, restored), adoption.Hold{Owner: new(xp.RefTo(nested))})},
			has:     "restore the same backup again: the XR adopts it", lacks: "add it to",
		},
		"NotRestored": {
			reason: "Without a restore there may be no backup.", code: reason.Orphaned, objects: []*unstructured.Unstructured{xptest.MR("b", labelled, place)},
			has: "add it to the resourceRefs", lacks: "restore",
		},
		"XRLive": {
			reason: "The XR is back, so another restore leaves it as it is.", code: reason.Orphaned, objects: []*unstructured.Unstructured{x, xptest.MR("b", labelled, place, restored)},
			has: "add it to the resourceRefs", lacks: "restore the same backup",
		},
		"MovedUp": {
			reason: "A restore follows a link to what a nested XR in deletion controls.", code: reason.ControlledByAnother,
			objects: []*unstructured.Unstructured{lists, nested, xptest.MR("b", xptest.ControlledBy(nested), labelled)}, has: "makes XOrder x its controller", lacks: "ignore",
		},
		"OfAnother": {
			reason: "Nothing follows a link to what another XR controls.", code: reason.ControlledByAnother,
			objects: []*unstructured.Unstructured{lists, xptest.XR("nested"), xptest.MR("b", xptest.ControlledBy(nested), labelled)}, has: "ignore such a link", lacks: "makes",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var all []string
			for _, p := range Validate(objectsOf(tc.objects...), ClusterState{Now: now}) {
				if p.Code == tc.code && p.Object.Name == "b" {
					all = append(all, p.Next)
				}
			}
			next := strings.Join(all, " ")
			if !strings.Contains(next, tc.has) || strings.Contains(next, tc.lacks) {
				t.Errorf("%s\ngot %q, want %q in it and not %q", tc.reason, next, tc.has, tc.lacks)
			}
		})
	}
}
