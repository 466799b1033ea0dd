package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestOrderRequestsUntilLive(t *testing.T) {
	xr := xptest.XRV2("orders", xptest.UID("old"), xptest.Refs(xptest.NamespacedMR("a"), xptest.NamespacedMR("b")))
	a, b := xptest.NamespacedMR("a", xptest.ControlledBy(xr)), xptest.NamespacedMR("b", xptest.ControlledBy(xr))
	mapped := velerov1.RestoreSpec{NamespaceMapping: map[string]string{xptest.Namespace: "team-b"}}
	there := id("example.org", "orders", xptest.Namespace, "orders")

	cases := map[string]struct {
		reason string
		live   []*unstructured.Unstructured
		spec   velerov1.RestoreSpec
		// then is what the restore comes to after the composed resource a.
		then *unstructured.Unstructured
		want []velero.ResourceIdentifier
	}{
		"Live": {
			reason: "Velero has restored the live XR for one composed resource, so the next need not ask.",
			live:   []*unstructured.Unstructured{xptest.With(xr, xptest.UID("new"))},
			then:   b,
		},
		"NotLive": {
			reason: "The XR's restore may have failed, so the next composed resource asks again.",
			then:   b,
			want:   []velero.ResourceIdentifier{there},
		},
		"LiveElsewhere": {
			reason: "An XR of the same name in another namespace is another XR.",
			live:   []*unstructured.Unstructured{xptest.With(xr, xptest.UID("new"))},
			then:   xptest.With(b, xptest.In("team-c")),
			want:   []velero.ResourceIdentifier{id("example.org", "orders", "team-c", "orders")},
		},
		"LiveWhereItIsMappedTo": {
			reason: "With a namespace mapping the plugin looks in the mapped namespace.",
			live:   []*unstructured.Unstructured{xptest.With(xr, xptest.UID("new"), xptest.In("team-b"))},
			spec:   mapped,
			then:   b,
		},
		"LiveWhereItIsMappedFrom": {
			reason: "A live object in the original namespace does not count with a mapping.",
			live:   []*unstructured.Unstructured{xptest.With(xr, xptest.UID("new"))},
			spec:   mapped,
			then:   b,
			want:   []velero.ResourceIdentifier{there},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			requested, restore := &RequestedItems{}, &velerov1.Restore{Spec: tc.spec}
			order := NewOrder(Crossplane(), kindsFn(served), log, Shared{Requested: requested})
			first, err := order.Execute(inputFor(a, restore))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]velero.ResourceIdentifier{there}, first.AdditionalItems); diff != "" {
				t.Fatalf("the first item that names an XR must ask for it\n-want, +got:\n%s", diff)
			}
			if _, err := NewAdopt(Crossplane(), live(tc.live...), nil, log, Shared{Requested: requested}).Execute(inputFor(a, restore)); err != nil {
				t.Fatal(err)
			}
			then, err := order.Execute(inputFor(tc.then, restore))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, then.AdditionalItems, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
