package backupitem

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A restore of the backup brings back what the XR composes without an owner.
func TestTreeNamesMissingXRs(t *testing.T) {
	xr := xptest.XR("x")
	mr := xptest.MR("b", xptest.ControlledBy(xr))
	team := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}
	selects := velerov1.BackupSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pick": "me"}}}
	cases := map[string]struct {
		reason string
		live   []*unstructured.Unstructured
		item   *unstructured.Unstructured
		spec   velerov1.BackupSpec
		want   []string
	}{
		"Deleting": {
			reason: "Velero leaves out what is being deleted, and names it nowhere.", live: []*unstructured.Unstructured{xptest.With(xr, xptest.Deleting())}, item: mr,
			want: []string{"XOrder x: it is being deleted, so Velero does not back it up [XRNotRestored]"},
		},
		"Nested": {
			reason: "A nested XR comes back alone, too.", live: []*unstructured.Unstructured{xptest.With(xr, xptest.Deleting())}, item: xptest.XR("nested", xptest.ControlledBy(xr)),
			want: []string{"XOrder x: it is being deleted, so Velero does not back it up [XRNotRestored]"},
		},
		"Gone":     {reason: "Its XR is gone.", item: mr, want: []string{"XOrder x: it does not exist [XRNotRestored]"}},
		"Replaced": {reason: "Another XR has the name.", live: []*unstructured.Unstructured{xptest.XR("x", xptest.UID("other"))}, item: mr, want: []string{"XOrder x: it does not exist [XRNotRestored]"}},
		"Label": {
			reason: "A label keeps it out.", live: []*unstructured.Unstructured{xptest.With(xr, xptest.Labelled("velero.io/exclude-from-backup", "true"))}, item: mr,
			want: []string{"XOrder x: its label velero.io/exclude-from-backup keeps it out of backups. If a restore needs it, remove that label, then back up again [XRNotRestored]"},
		},
		"Kind": {
			reason: "The backup is of other kinds.", live: []*unstructured.Unstructured{xr}, item: mr, spec: velerov1.BackupSpec{IncludedResources: []string{"buckets.cloud.example.org"}},
			want: []string{"XOrder x: the backup's resource filters leave its kind out. If a restore needs it, include xorders.example.org, then back up again [XRNotRestored]"},
		},
		"ClusterScoped": {
			reason: "Nothing in the namespace requests a cluster-scoped XR without a claim.", live: []*unstructured.Unstructured{xr}, item: mr, spec: team,
			want: []string{"XOrder x: it is cluster-scoped, and the backup is of namespaces. To include it, add --include-cluster-resources=true [XRNotRestored]"},
		},
		"Unselected": {
			reason: "The MR has the label, and its XR has not.", live: []*unstructured.Unstructured{xr}, item: mr, spec: selects,
			want: []string{"XOrder x: the backup does not select its labels. To include it, label it, then back up again [XRNotRestored]"},
		},
		"Selected":   {reason: "Its XR has the label.", live: []*unstructured.Unstructured{xptest.With(xr, xptest.Labelled("pick", "me"))}, item: mr, spec: selects},
		"Claimed":    {reason: "The claim requests the XR.", live: []*unstructured.Unstructured{xptest.With(xr, xptest.ClaimedBy(xptest.Claim("o")))}, item: mr, spec: team},
		"There":      {reason: "Its XR comes with the backup.", live: []*unstructured.Unstructured{xr}, item: mr},
		"Standalone": {reason: "No XR composed it.", item: xptest.MR("b")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(tc.live...)
			got := backUp(c, tc.item, &velerov1.Backup{Spec: tc.spec})
			left := slices.DeleteFunc(got.Left, func(s string) bool { return !strings.HasSuffix(s, "[XRNotRestored]") })
			if diff := cmp.Diff(tc.want, left, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			c.checkCost(t)
		})
	}
}

// A tenant can have any number of such XRs, with any number of MRs.
func TestMissingXRsCost(t *testing.T) {
	c := clusterOf()
	log, hook := logtest.NewNullLogger()
	tree := NewTree(NewResolver(c), log)
	for n := range 100 {
		mr := xptest.MR(fmt.Sprint("b", n), xptest.ControlledBy(xptest.XR(fmt.Sprint("x", n/2))))
		if _, _, _, _, err := tree.Execute(mr, &velerov1.Backup{}); err != nil {
			t.Fatal(err)
		}
	}
	warned := 0
	for _, e := range hook.AllEntries() {
		if e.Level == logrus.WarnLevel {
			warned++
		}
	}
	if all := len(hook.AllEntries()); warned != mostAtRisk+1 || all != 51 {
		t.Errorf("warned %d times with %d messages, want %d and one for each XR", warned, all, mostAtRisk+1)
	}
}
