package diagnosis

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// BenchmarkValidate validates a cluster of 2,000 held XRs with 10,000 MRs. Half of the MRs share
// one external-name, like subnets "default".
func BenchmarkValidate(b *testing.B) {
	var objects []*unstructured.Unstructured
	for n := range 2000 {
		xr := xptest.XR(fmt.Sprint("x", n), xptest.Reconciled())
		var composed []*unstructured.Unstructured
		for m := range 5 {
			mr := xptest.MR(fmt.Sprint("b", n, "-", m), xptest.ControlledBy(xr), ready("True"))
			if m%2 == 0 {
				xptest.Annotated(xp.AnnotationExternalName, "default")(mr)
				xptest.Field(fmt.Sprint("/subscriptions/", n, "/", m), "status", "atProvider", "id")(mr)
			}
			composed = append(composed, mr)
		}
		usage := xptest.Object(xp.GroupProtection+"/v1beta1", "ClusterUsage", "", fmt.Sprint("u", n), xptest.ControlledBy(xr))
		objects = append(append(objects, usage, held(xptest.With(xr, xptest.Refs(append(composed, usage)...)))), composed...)
	}
	for b.Loop() {
		o := objectsOf(objects...)
		problems := Validate(o, ClusterState{Now: now, Restores: map[string]string{"velero/r": "InProgress"}})
		trees := o.Trees()
		if len(problems) != 2000 || len(trees) != 2000 {
			b.Fatalf("got %d problems, %d trees", len(problems), len(trees))
		}
	}
}
