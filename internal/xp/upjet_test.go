package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// An MR of upjet with a name and without status was never observed.
func TestIsNeverObserved(t *testing.T) {
	const upjets = `{"spec":{"initProvider":{}}}`
	cases := map[string]struct {
		reason string
		mr     *unstructured.Unstructured
		want   bool
	}{
		"Found":      {reason: "Upjet has written what it found.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"status":{"atProvider":{"id":"b"}}}`))},
		"Unfound":    {reason: "It has not.", mr: xptest.MR("b", xptest.JSON(upjets)), want: true},
		"Empty":      {reason: "Nor has it then.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"status":{"atProvider":{}}}`)), want: true},
		"Synced":     {reason: "Of an asynchronous create it says that it is Synced.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Reconciled()), want: true},
		"NotUpjets":  {reason: "Others need not say what they found.", mr: xptest.MR("b")},
		"Observes":   {reason: "What only observes is not made.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"spec":{"managementPolicies":["Observe"]}}`))},
		"Paused":     {reason: "Nobody reconciles it.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Annotated(xp.AnnotationPaused, "true"))},
		"Unnamed":    {reason: "What has no name is another matter.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Without("metadata", "annotations"))},
		"BeingMade":  {reason: "So is what its provider says that it is creating.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Annotated(xp.AnnotationCreatePending, "2026-01-02T03:04:05Z"))},
		"NotManaged": {reason: "A field of that name may be in anything.", mr: xptest.XR("x", xptest.JSON(upjets))},
		"Malformed":  {reason: "What can't be read says nothing.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"status":{"atProvider":"b"}}`)), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, xp.IsNeverObserved(tc.mr)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
