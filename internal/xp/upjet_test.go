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
		"Found":      {reason: "Upjet has written the observed ID.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"status":{"atProvider":{"id":"b"}}}`))},
		"Unfound":    {reason: "Upjet has not written an observed ID.", mr: xptest.MR("b", xptest.JSON(upjets)), want: true},
		"Empty":      {reason: "An empty atProvider has no observed ID.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"status":{"atProvider":{}}}`)), want: true},
		"Synced":     {reason: "Upjet reports Synced during an asynchronous create.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Reconciled()), want: true},
		"NotUpjets":  {reason: "Other providers need not write what they observe.", mr: xptest.MR("b")},
		"Observes":   {reason: "An observing MR creates nothing.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"spec":{"managementPolicies":["Observe"]}}`))},
		"Paused":     {reason: "No provider reconciles a paused MR.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Annotated(xp.AnnotationPaused, "true"))},
		"Unnamed":    {reason: "An MR without an external-name is another case.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Without("metadata", "annotations"))},
		"BeingMade":  {reason: "A pending create is another case.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Annotated(xp.AnnotationCreatePending, "2026-01-02T03:04:05Z"))},
		"NotManaged": {reason: "Any kind can have a field of that name.", mr: xptest.XR("x", xptest.JSON(upjets))},
		"Malformed":  {reason: "A malformed atProvider has no observed ID.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"status":{"atProvider":"b"}}`)), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, xp.IsNeverObserved(tc.mr)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
