package restoreitem

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Each XR, claim and MR is checked for what an earlier restore left out, and an error never stops
// the item.
func TestAdoptReturnsManagers(t *testing.T) {
	xr := xptest.XR("x")
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		want   []string
	}{
		"XR":       {reason: "A held XR gets its field managers back.", item: xr, want: []string{"XOrder x"}},
		"Claim":    {reason: "A held claim gets its field managers back.", item: xptest.Claim("o", xptest.OfXR(xr)), want: []string{"OrderClaim team-a/o"}},
		"MR":       {reason: "An MR that comes back unchanged gets its field managers back.", item: xptest.MR("b"), want: []string{"Bucket b"}},
		"Composed": {reason: "Crossplane would clear all field managers of a composed resource.", item: xptest.MR("b", xptest.ControlledBy(xr)), want: []string{"Bucket b"}},
		"Secret":   {reason: "The plugin writes no field managers on a Secret.", item: xptest.Secret("s")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := live(xptest.With(xr, xptest.UID("live"), xptest.Refs(xptest.MR("b"))))
			c.managedErr = errors.New("not now")
			if out := adopt(t, c, tc.item, restoreOf(nil)); out.err != nil {
				t.Error(out.err)
			}
			if diff := cmp.Diff(tc.want, c.managed); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
