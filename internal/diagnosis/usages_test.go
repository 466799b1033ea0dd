package diagnosis

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestUsages(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled())
	of, by := xptest.MR("of", xptest.ControlledBy(x), ready("True")), xptest.MR("by", xptest.ControlledBy(x), ready("True"))
	usage := xptest.Object(xp.GroupAPIExtensions+"/v1beta1", "Usage", "", "u", xptest.ControlledBy(x), xptest.JSON(`{"spec":{
		"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"of"}},
		"by":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"by"}}}}`))
	left := []string{"problem UsageLeftBehind Usage u"}
	cases := map[string]struct {
		reason string
		lists  bool
		by     *unstructured.Unstructured
		usage  *unstructured.Unstructured
		want   []string
	}{
		"Listed":       {reason: "The XR lists the Usage.", lists: true, by: by, usage: usage},
		"Left":         {reason: "The XR does not list the Usage any more.", by: by, usage: usage, want: left},
		"OfAUser":      {reason: "A user created the Usage.", by: by, usage: xptest.With(usage, xptest.Without("metadata", "labels"))},
		"JustDeleted":  {reason: "The deletion of the Usage may end in a moment.", by: by, usage: xptest.With(usage, deleted(time.Second))},
		"Deleted":      {reason: "The Usage waits for a resource that is not being deleted.", by: by, usage: xptest.With(usage, deleted(time.Hour)), want: left},
		"DeletedUser":  {reason: "The Usage waits for a resource that is being deleted.", by: xptest.With(by, deleted(time.Hour)), usage: xptest.With(usage, deleted(time.Hour))},
		"WithoutOwner": {reason: "The restored Usage has lost its owner.", by: by, usage: xptest.With(usage, xptest.Without("metadata", "ownerReferences")), want: left},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refs := []*unstructured.Unstructured{of, by}
			if tc.lists {
				refs = append(refs, usage)
			}
			o := objectsOf(xptest.With(x, xptest.Refs(refs...)), of, tc.by, tc.usage)
			problems := Validate(o, ClusterState{Now: now})
			if diff := cmp.Diff(tc.want, summaries(problems)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, p := range problems {
				if len(p.Others) != 1 || p.Others[0] != xp.RefTo(x) {
					t.Errorf("The problem must name the former XR; got %v", p.Others)
				}
			}
		})
	}
}
