package backupitem

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// What is in an External Secret Store is not covered, which one warning for a kind says.
func TestTreeWarnsOfSecretStores(t *testing.T) {
	inStore := xptest.Field(map[string]any{"name": "s"}, "spec", "publishConnectionDetailsTo")
	mrs := func(n int) (all []*unstructured.Unstructured) {
		for i := range n {
			all = append(all, xptest.MR(fmt.Sprintf("b%02d", i), inStore))
		}

		return all
	}
	broken := xptest.MR("b", inStore)
	claim := xptest.Claim("o", inStore)
	cases := map[string]struct {
		reason  string
		items   []*unstructured.Unstructured
		cluster *cluster
		want    []string
	}{
		"MRs": {
			reason: "One warning names all of them, and no others.", items: mrs(3), cluster: clusterOf(append(mrs(3), xptest.MR("other"))...),
			want: []string{"Bucket b00, Bucket b01, Bucket b02."},
		},
		"Many": {
			reason: "A tenant can make any number of them.", items: mrs(12), cluster: clusterOf(mrs(12)...),
			want: []string{"Bucket b00, Bucket b01, Bucket b02, Bucket b03, Bucket b04, Bucket b05, Bucket b06, Bucket b07, Bucket b08, Bucket b09, 2 more."},
		},
		"Claims": {
			reason: "A warning of a namespace names nothing of another one.", items: []*unstructured.Unstructured{claim, xptest.With(claim, xptest.In("team-b"))},
			cluster: clusterOf(claim, xptest.With(claim, xptest.In("team-b"))), want: []string{"OrderClaim team-a/o.", "OrderClaim team-b/o."},
		},
		"NotListed": {
			reason: "The object itself is known.", items: []*unstructured.Unstructured{broken}, cluster: clusterOf(broken).without(broken),
			want: []string{"Bucket b and maybe others of its kind."},
		},
		"V2": {reason: "The field belongs to the XRD's author.", items: []*unstructured.Unstructured{xptest.XRV2("x", inStore)}, cluster: clusterOf()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			tree := NewTree(NewResolver(tc.cluster), log)
			for _, u := range tc.items {
				if _, _, _, _, err := tree.Execute(u.DeepCopy(), &velerov1.Backup{}); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, e := range hook.AllEntries() {
				if strings.HasSuffix(e.Message, "[SecretStoreNotCovered]") {
					_, named, _ := strings.Cut(e.Message, "refuses them: ")
					named, _, _ = strings.Cut(named, " Let them")
					got = append(got, named)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
