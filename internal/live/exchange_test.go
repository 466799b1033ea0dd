package live

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// FindAll does not read many objects one by one.
func TestFindAll(t *testing.T) {
	cases := map[string]struct {
		reason             string
		objects, lists, of int
	}{
		"Few":  {reason: "A list can have many objects that the exchange does not need.", objects: 2, of: 3, lists: 3},
		"Many": {reason: "All objects of a kind need one list.", objects: 30, of: 40, lists: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var refs []xp.Ref
			var objects []*unstructured.Unstructured
			for n := range tc.of {
				u := xptest.MR(fmt.Sprint("b", n))
				refs = append(refs, xp.RefTo(u))
				if n < tc.objects {
					objects = append(objects, u)
				}
			}
			s := newServer(append(objects, xptest.MR("other"))...)
			found, err := NewCluster(s, s).FindAll(t.Context(), refs)
			if err != nil {
				t.Fatal(err)
			}
			for n, r := range refs {
				if (found[r.ID()] != nil) != (n < tc.objects) {
					t.Errorf("%s %s: got %v", tc.reason, r, found[r.ID()])
				}
			}
			if lists := s.requests("list"); len(found) != tc.objects || len(lists) != tc.lists {
				t.Errorf("%s found %d, with %v", tc.reason, len(found), lists)
			}
		})
	}
}
