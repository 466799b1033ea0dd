package hold

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestRequestReconcile(t *testing.T) {
	const now = "2026-01-02T12:00:00Z"
	request := func(value string) xptest.Option { return xptest.Annotated(xp.AnnotationReconcileRequested, value) }
	cases := map[string]struct {
		reason string
		own    *unstructured.Unstructured
		key    string
		want   string
	}{
		"XR":      {reason: "Crossplane v2.3 records that it has read the request.", own: xptest.XR("x"), key: xp.AnnotationReconcileRequested, want: now + requestMarker},
		"OfXR":    {reason: "The user's own request is kept.", own: xptest.XR("x", request("once")), key: xp.AnnotationReconcileRequested, want: now + requestMarker + "once"},
		"Claim":   {reason: "A claim's request must not overwrite the request of its XR.", own: xptest.Claim("o", xptest.OfXR(xptest.XR("x"))), key: annotationRequested, want: now},
		"OfClaim": {reason: "The user's own request does not change.", own: xptest.Claim("o", xptest.OfXR(xptest.XR("x")), request("once")), key: annotationRequested, want: now},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := xptest.Merge(tc.own, RequestReconcile(tc.own, noon))
			if got := asked.GetAnnotations()[tc.key]; got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
			again := xptest.Merge(asked, RequestReconcile(asked, noon.Add(time.Minute)))
			if again.GetAnnotations()[tc.key] == tc.want {
				t.Errorf("%s\na second request must change the annotation", tc.reason)
			}
			patch, left := ClearReconcileRequest(again)
			if !left {
				t.Fatalf("%s\nClearReconcileRequest must find the request: %v", tc.reason, again.GetAnnotations())
			}
			after := xptest.Merge(again, patch)
			xptest.Same(t, xptest.Stored(tc.own), xptest.Stored(after), tc.reason+" It is cleared.")
			if _, left := ClearReconcileRequest(after); left {
				t.Errorf("%s\na second clear must find no request", tc.reason)
			}
			// A backup can be taken in between.
			h := xptest.Value(Put(again, Hold{Restore: restoreName, Since: restoredAt}))
			xptest.Same(t, tc.own.GetAnnotations()[tc.key], again.GetAnnotations()[tc.key], tc.reason+" The request must not survive a manual removal of the hold.")
			xptest.Same(t, xptest.Stored(tc.own), xptest.Stored(xptest.Merge(again, ReleasePatch(again, h))), tc.reason+" It is restored and released.")
		})
	}
}
