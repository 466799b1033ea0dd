package restoreitem

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestOrderAwaitsTheKind(t *testing.T) {
	const xrd = "xorders.example.org"
	tree := xptest.RestoreFirst(xp.ResourceXRD.String() + "//" + xrd)
	xr, claim := xptest.XR("x", tree), xptest.Claim("o", xptest.OfXR(xptest.XR("x")), tree)
	type want struct {
		Waits, WaitsAgain, Ready bool
		Within                   time.Duration
		Err                      error
	}
	cases := map[string]struct {
		reason        string
		before, after kindsFn
		item          *unstructured.Unstructured
		want          want
	}{
		"XR":          {reason: "The XR waits until Crossplane serves its kind.", before: unserved, after: served, item: xr, want: want{Waits: true, Ready: true, Within: time.Minute}},
		"Claim":       {reason: "The claim waits until Crossplane serves its kind.", before: unserved, after: served, item: claim, want: want{Waits: true, Ready: true, Within: time.Minute}},
		"NotYet":      {reason: "Velero asks again while the kind is not served.", before: unserved, after: unserved, item: xr, want: want{Waits: true, Within: time.Minute}},
		"Unreachable": {reason: "Velero reports why the kind cannot be checked.", before: unserved, after: failing, item: xr, want: want{Waits: true, Within: time.Minute, Err: errAPI}},
		"Served":      {reason: "The kind is served, so the XR does not wait.", before: served, after: served, item: xr, want: want{Ready: true}},
		"NoXRD":       {reason: "The restore has no XRD for the kind, so waiting is useless.", before: unserved, after: unserved, item: xptest.XR("x"), want: want{Ready: true}},
		"Composed":    {reason: "A composed resource has no XRD.", before: unserved, after: unserved, item: xptest.MR("b", tree), want: want{Ready: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mapper := tc.before
			log, _ := logtest.NewNullLogger()
			o := NewOrder(Crossplane(), kindsFn(func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) { return mapper(gvk) }), log, Shared{})
			execute := func() *velero.RestoreItemActionExecuteOutput {
				out, err := o.Execute(inputFor(tc.item, &velerov1.Restore{}))
				if err != nil {
					t.Fatal(err)
				}

				return out
			}
			out := execute()
			again := execute()
			mapper = tc.after
			ready, err := o.AreAdditionalItemsReady(out.AdditionalItems, nil)
			got := want{Waits: out.WaitForAdditionalItems, WaitsAgain: again.WaitForAdditionalItems, Ready: ready, Within: out.AdditionalItemsReadyTimeout, Err: err}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOrderAwaitsBothKindsOfAnXRD(t *testing.T) {
	tree := xptest.RestoreFirst(xp.ResourceXRD.String() + "//xorders.example.org")
	serves := map[string]bool{}
	mapper := func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
		if !serves[gvk.Kind] {
			return unserved(gvk)
		}

		return served(gvk)
	}
	log, _ := logtest.NewNullLogger()
	o := NewOrder(Crossplane(), kindsFn(mapper), log, Shared{})
	var out *velero.RestoreItemActionExecuteOutput
	for _, u := range []*unstructured.Unstructured{xptest.Claim("o", xptest.OfXR(xptest.XR("x")), tree), xptest.XR("x", tree)} {
		var err error
		if out, err = o.Execute(inputFor(u, &velerov1.Restore{})); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{xptest.LegacyKind, xptest.ClaimKind} {
		if ready, err := o.AreAdditionalItemsReady(out.AdditionalItems, nil); ready || err != nil {
			t.Errorf("without %s: %v, %v", kind, ready, err)
		}
		serves[kind] = true
	}
	if ready, err := o.AreAdditionalItemsReady(out.AdditionalItems, nil); !ready || err != nil {
		t.Errorf("with both: %v, %v", ready, err)
	}
}
