package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Nobody writes the status of what a user has paused before they unpause it.
func TestAdoptAsksForStatusOfPaused(t *testing.T) {
	byUser, conditions := xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Reconciled()
	marked := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		on := u.DeepCopy()
		if _, err := adoption.Put(on, adoption.Hold{Restore: "velero/earlier", Since: "2026-01-02T03:04:05Z"}); err != nil {
			t.Fatal(err)
		}

		return on
	}
	mr := xptest.MR("b", xptest.Field("i-1", "status", "atProvider", "id"), conditions)
	whole := []string{"atProvider", "conditions"}
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		want   []string
	}{
		"XR":            {reason: "Crossplane does not reconcile it.", item: xptest.XRV2("x", byUser, conditions), want: []string{"conditions"}},
		"Claim":         {reason: "Crossplane does not reconcile it.", item: xptest.Claim("c", byUser, conditions), want: []string{"conditions"}},
		"MR":            {reason: "Its provider does not reconcile it.", item: xptest.With(mr, byUser), want: whole},
		"HeldAndPaused": {reason: "A hold keeps the pause of the user.", item: marked(xptest.With(mr, byUser)), want: whole},
		"OnlyHeld":      {reason: "The pause was that of an earlier restore, which ends.", item: marked(xptest.XRV2("x", conditions))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, live(), tc.item, restoreOf(nil))
			if out.err != nil {
				t.Fatal(out.err)
			}
			h, err := adoption.HoldOf(out.object)
			if err != nil {
				t.Fatal(err)
			}
			asks := xp.Annotation(out.object, xp.AnnotationRestoreStatus) == "true"
			if diff := cmp.Diff(tc.want, h.Status); diff != "" || asks != (len(tc.want) > 0) {
				t.Errorf("%s Asks for status: %t, -want, +got:\n%s", tc.reason, asks, diff)
			}
		})
	}
}
