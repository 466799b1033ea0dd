package backupitem

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// For thousands of MRs at one risk, one warning has the count, and the log still names each.
func TestWarnsOnceOfVeryMany(t *testing.T) {
	const many = 25
	unfound := xptest.MR("unfound", xptest.JSON(`{"spec":{"initProvider":{}}}`))
	cases := map[string]struct {
		reason   string
		id       string
		settings map[string]string
		want     string
	}{
		"Unnamed": {reason: "The warning names the kind and the risk.", want: "More than 10 objects of Bucket.cloud.example.org have no external-name. "},
		"Named": {
			reason: "MRs to which the backup gives an external-name count too.", id: "arn:", settings: fromID("Bucket.cloud.example.org"),
			want: "More than 10 objects of Bucket.cloud.example.org have no external-name, and the backup has it from their ids. ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var mrs []*unstructured.Unstructured
			for i := range many {
				id := ""
				if tc.id != "" {
					id = fmt.Sprint(tc.id, i)
				}
				mrs = append(mrs, unnamed(id, xptest.Field(fmt.Sprint("b", i), "metadata", "name")))
			}
			c := clusterOf(append([]*unstructured.Unstructured{unfound, xptest.MR("sound")}, mrs...)...)
			c.settings = tc.settings
			s := newSession(t, c)
			for _, mr := range append([]*unstructured.Unstructured{unfound}, mrs...) {
				s.take(mr, &velerov1.Backup{})
			}
			count, summary := map[logrus.Level]int{}, ""
			for _, e := range s.log.AllEntries() {
				switch {
				case strings.Contains(e.Message, " objects of "):
					summary += e.Message
				case strings.HasPrefix(e.Message, "Bucket "):
					count[e.Level]++
				}
			}
			// One of the warnings is of the MR at another risk.
			if diff := cmp.Diff(map[logrus.Level]int{logrus.WarnLevel: mostAtRisk + 1, logrus.InfoLevel: many - mostAtRisk}, count); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if !strings.HasPrefix(summary, tc.want) || strings.Count(summary, " objects of ") != 1 {
				t.Errorf("%s\nwant %q once, got %q", tc.reason, tc.want, summary)
			}
		})
	}
}

// What is in an External Secret Store is not covered.
func TestTreeWarnsOfSecretStores(t *testing.T) {
	inStore := xptest.Field(map[string]any{"name": "s"}, "spec", "publishConnectionDetailsTo")
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, bool]{
		"MR":    {Reason: "A restored MR can't publish.", In: xptest.MR("b", inStore), Want: true},
		"Claim": {Reason: "Claims have the field, too.", In: xptest.Claim("o", inStore), Want: true},
		"Other": {Reason: "Most publish in Secrets.", In: xptest.MR("b", xptest.PublishesTo("infra", "s"))},
		"V2":    {Reason: "The field belongs to the XRD's author.", In: xptest.XRV2("x", inStore)},
	}, func(in *unstructured.Unstructured) bool {
		return slices.ContainsFunc(backUp(t, clusterOf(), in, &velerov1.Backup{}).Left, isOf(reason.SecretStoreNotCovered))
	})
}
