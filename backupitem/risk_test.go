package backupitem

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
		down     bool
		want     string
	}{
		"Counted":   {reason: "The warning counts all such MRs in the cluster.", want: "25 of the MRs of Bucket.cloud.example.org in this cluster have no external-name. "},
		"NotListed": {reason: "If the count fails, the warning gives the number of named MRs as a minimum.", down: true, want: "More than 10 of the MRs of "},
		"Named": {
			reason: "MRs to which the backup gives an external-name count too.", id: "arn:", settings: fromID("Bucket.cloud.example.org"),
			want: "25 of the MRs of Bucket.cloud.example.org in this cluster have no external-name. ",
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
			log, hook := logtest.NewNullLogger()
			tree := NewTree(NewResolver(c), log)
			if _, err := tree.settings(&velerov1.Backup{}); err != nil {
				t.Fatal(err)
			}
			for i, mr := range append([]*unstructured.Unstructured{unfound}, mrs...) {
				c.down = tc.down && i > 0
				if _, _, _, _, err := tree.Execute(mr.DeepCopy(), &velerov1.Backup{}); err != nil {
					t.Fatal(err)
				}
			}
			count, summary := map[logrus.Level]int{}, ""
			for _, e := range hook.AllEntries() {
				switch {
				case strings.Contains(e.Message, "of the MRs of "):
					summary += e.Message
				case strings.HasPrefix(e.Message, "Bucket "):
					count[e.Level]++
				}
			}
			// One of the warnings is of the MR at another risk.
			if diff := cmp.Diff(map[logrus.Level]int{logrus.WarnLevel: mostAtRisk + 1, logrus.InfoLevel: many - mostAtRisk}, count); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if !strings.HasPrefix(summary, tc.want) || strings.Count(summary, "of the MRs of ") != 1 {
				t.Errorf("%s\nwant %q once, got %q", tc.reason, tc.want, summary)
			}
		})
	}
}
