package hold

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestControlKeepsOtherOwners(t *testing.T) {
	xr := xptest.XR("x")
	helper := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "helper", UID: "h"}
	s := xptest.Secret("s", xptest.OwnedBy(helper), xptest.Version("7"))
	patch := controllerRefPatch(xr, s)
	got := xptest.Merge(s, patch)
	want := []metav1.OwnerReference{helper, {
		APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x", UID: xr.GetUID(), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	if diff := cmp.Diff(want, got.GetOwnerReferences()); diff != "" || !xp.Controls(xr, got) {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if v := got.GetResourceVersion(); v != "7" || patch["metadata"].(map[string]any)["resourceVersion"] != "7" { //nolint:forcetypeassert // The test fails.
		t.Errorf("the API server must refuse the patch of a changed Secret; got %v", patch)
	}
}

// An owner reference to the XR that does not control is replaced: the API server refuses two with
// one UID.
func TestControlReplacesItsOwnReference(t *testing.T) {
	xr := xptest.XR("x")
	s := xptest.Secret("s", xptest.OwnedBy(metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x", UID: xr.GetUID()}))
	got := xptest.Merge(s, controllerRefPatch(xr, s))
	if refs := got.GetOwnerReferences(); len(refs) != 1 || !xp.Controls(xr, got) {
		t.Errorf("got %v", refs)
	}
}

// The publisher of a Secret made itself the owner, and must manage that again.
func TestTakeControlKeepsThePublisher(t *testing.T) {
	claim := xptest.Claim("o", xptest.UID("claim"))
	xptest.Run(t, map[string]xptest.Row[string, string]{
		"Data":   {Reason: "The writer of the data is the publisher.", In: `{"manager":"crossplane","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{},"f:type":{}}}`, Want: "crossplane"},
		"NoData": {Reason: "The creator of a Secret without data is the publisher too.", In: `{"manager":"crossplane","operation":"Update","apiVersion":"v1","fieldsV1":{"f:type":{}}}`, Want: "crossplane"},
		"Others": {
			Reason: "A creator that wrote no data is not the publisher.", Want: "provider",
			In: `{"manager":"velero","operation":"Update","apiVersion":"v1","fieldsV1":{"f:type":{}}},{"manager":"provider","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{}}}`,
		},
		"Several": {
			Reason: "With several writers the publisher is unknown.",
			In:     `{"manager":"a","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{}}},{"manager":"b","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{}}}`,
		},
	}, func(entries string) string {
		return TakeControl(claim, xptest.Secret("s", xptest.JSON(`{"metadata":{"managedFields":[`+entries+`]}}`))).Manager
	})
}
