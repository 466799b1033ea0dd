package restoreitem

import (
	"context"
	"errors"
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// terminatingXRD returns the XRD of xptest's XRs and claims while it is being deleted.
func terminatingXRD() *unstructured.Unstructured {
	return xptest.XRD("xorders.example.org", xptest.Deleting(), xptest.Finalizers("defined.apiextensions.crossplane.io"),
		xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"},"claimNames":{"kind":"OrderClaim"}}}`))
}

// An xrdReader has one XRD, or fails.
type xrdReader struct {
	xrd *unstructured.Unstructured
	err error
}

func (r xrdReader) Terminating(_ context.Context, gk schema.GroupKind) (*unstructured.Unstructured, error) {
	if r.err == nil && xp.Defines(r.xrd, gk) {
		return r.xrd, nil
	}

	return nil, r.err
}

func xrdCheckOf(xrd *unstructured.Unstructured, err error) *XRDCheck {
	return NewXRDCheck(xrdReader{xrd, err})
}

// checkRefused runs both actions on an item, as Velero does, and checks that each refuses it or
// neither does.
func checkRefused(t *testing.T, reason string, d *XRDCheck, item *unstructured.Unstructured, refused string) {
	t.Helper()
	log, _ := logtest.NewNullLogger()
	first, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{XRDs: d}).Execute(inputFor(item, restoreOf(nil)))
	_, again := NewAdopt(Crossplane(), live(), nil, log, Shared{XRDs: d}).Execute(inputFor(item, restoreOf(nil)))
	for name, err := range map[string]error{"1-order": err, "2-adopt": again} {
		switch {
		case refused == "" && err != nil:
			t.Errorf("%s\n%s must not refuse %s: %v", reason, name, xp.String(item), err)
		case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
			t.Errorf("%s\n%s must refuse %s with %q; got error %v", reason, name, xp.String(item), refused, err)
		}
	}
	if refused != "" && first != nil {
		t.Errorf("%s\nwant no item before it; got %+v", reason, first)
	}
}

func TestXRDCheck(t *testing.T) {
	const xrd = "its XRD xorders.example.org is being deleted"
	x := xptest.XR("x")
	nested := xptest.Object("example.org/v1alpha1", "XPart", "", "p", xptest.Finalizers(xp.FinalizerComposite), xptest.ControlledBy(x))
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		refused string
	}{
		"XR":       {reason: "Crossplane would delete the XR at once, and its composed resources with it.", item: x, refused: "cannot restore XOrder x: " + xrd},
		"Claim":    {reason: "Crossplane would delete the claim at once.", item: xptest.Claim("o", xptest.OfXR(x)), refused: "cannot restore OrderClaim team-a/o: " + xrd},
		"Composed": {reason: "No XR would look after the composed resource.", item: xptest.MR("b", xptest.ControlledBy(x)), refused: "cannot restore Bucket b, which is composed by an XR of the kind XOrder: " + xrd},
		"XRD":      {reason: "Velero must not write to a terminating XRD.", item: xptest.With(terminatingXRD(), xptest.Without("metadata", "deletionTimestamp")), refused: xrd},
		"OtherXRD": {
			reason: "A terminating XRD does not refuse another XRD.",
			item:   xptest.XRD("xparts.example.org", xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XPart"}}}`)),
		},
		"SameClaims": {
			reason: "Crossplane itself refuses a second XRD with the same claims, so the plugin does not.",
			item: xptest.XRD("xparts.example.org",
				xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XPart"},"claimNames":{"kind":"OrderClaim"}}}`)),
		},
		"Notes": {
			reason: "A newer version of the plugin wrote the backup.", item: xptest.XRV2("m", xptest.Field(int64(2), "metadata", xp.FieldFormat)),
			refused: "cannot restore Order team-a/m: a newer version of this plugin backed it up, in format 2; this version reads up to 1; install that version",
		},
		"Mark": {
			reason: "A newer version of the plugin wrote the mark.", item: xptest.XRV2("m", xptest.Annotated(adoption.AnnotationHold, `{"format":2,"restore":7}`)),
			refused: "a newer version of this plugin has written it, in format 2",
		},
		"SameFormat": {reason: "The plugin reads its own format.", item: xptest.XRV2("m", xptest.Field(int64(1), "metadata", xp.FieldFormat))},
		"OtherXR":    {reason: "The XRD of another kind is not terminating.", item: xptest.XRV2("m")},
		"Other":      {reason: "No XR composed this MR.", item: xptest.MR("free")},
		"Composite":  {reason: "A terminating XRD also refuses an XR that another XR composes.", item: nested, refused: "cannot restore XPart p"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkRefused(t, tc.reason, xrdCheckOf(terminatingXRD(), nil), tc.item, tc.refused) })
	}
}

// What a refused XR composes is refused, too, whatever its kind, by each action of the restore.
func TestXRDCheckOfComposedResources(t *testing.T) {
	x := xptest.XR("x")
	child := xptest.XRV2("c", xptest.ControlledBy(x))
	leaf := xptest.NamespacedMR("b", xptest.ControlledBy(child))
	d := xrdCheckOf(terminatingXRD(), nil)
	checkRefused(t, "The plugin has not refused the XR yet.", d, leaf, "")
	checkRefused(t, "An XR of the terminating XRD composes this XR.", d, child, "which is composed by an XR of the kind XOrder")
	checkRefused(t, "The refused XR composes this MR.", d, leaf, "cannot restore Bucket team-a/b: its XR Order c was not restored")
	checkRefused(t, "The refusal continues down the tree.", d, xptest.NamespacedMR("d", xptest.ControlledBy(leaf), xptest.Labelled(xp.LabelComposite, "x")), "its XR Bucket b was not restored")
	checkRefused(t, "Another XR composes this MR.", d, xptest.NamespacedMR("e", xptest.ControlledBy(xptest.XRV2("other"))), "")
}

func TestXRDCheckErrors(t *testing.T) {
	err := errors.New("the API server is on holiday")
	d := xrdCheckOf(nil, err)
	for _, item := range []*unstructured.Unstructured{xptest.XR("x"), xptest.MR("b", xptest.ControlledBy(xptest.XR("x"))), terminatingXRD()} {
		checkRefused(t, "Without an answer from the API server the plugin writes nothing.", d, item, err.Error())
	}
	checkRefused(t, "Without an XRDCheck the plugin refuses nothing.", nil, xptest.XR("x"), "")
}
