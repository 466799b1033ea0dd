package adoption

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestWhyRefused(t *testing.T) {
	const uid = "0a0a0a0a-1111-4222-8333-444444444444"
	for name, tc := range map[string]struct {
		reason string
		said   string
		want   reason.Code
	}{
		"UID": {
			reason: "Only a deletion helps.", want: reason.UIDInImmutable,
			said: `cannot apply composed resource "d": Deployment.apps "w" is invalid: spec.selector: Invalid value: {"i":"` + uid + `"}: field is immutable`,
		},
		"Another": {
			reason: "The restore did not change the value.", want: reason.CrossplaneFailing,
			said: `cannot apply composed resource "d": Deployment.apps "w" is invalid: spec.selector: Invalid value: {"i":"x"}: field is immutable`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WhyRefused(xptest.XR("x", xptest.UID(uid)), tc.said); got.Code != tc.want || !IsRefusal(tc.said) {
				t.Errorf("%s\ngot %v", tc.reason, got)
			}
		})
	}
	if !IsRefused(reason.CrossplaneFailing.Messagef("XOrder x: Crossplane can't reconcile it: Unsynced resources: d")) {
		t.Error("Crossplane names the resources that the API server refuses")
	}
}
