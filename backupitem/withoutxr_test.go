package backupitem

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
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
			want: []string{"XOrder x [XRNotRestored]"},
		},
		"Gone":     {reason: "Its XR is gone.", item: mr, want: []string{"XOrder x [XRNotRestored]"}},
		"Replaced": {reason: "Another XR has the name.", live: []*unstructured.Unstructured{xptest.XR("x", xptest.UID("other"))}, item: mr, want: []string{"XOrder x [XRNotRestored]"}},
		"Label": {
			reason: "A label keeps it out.", live: []*unstructured.Unstructured{xptest.With(xr, xptest.Labelled("velero.io/exclude-from-backup", "true"))}, item: mr,
			want: []string{"XOrder x [XRNotRestored]"},
		},
		"Kind": {
			reason: "The backup is of other kinds.", live: []*unstructured.Unstructured{xr}, item: mr, spec: velerov1.BackupSpec{IncludedResources: []string{"buckets.cloud.example.org"}},
			want: []string{"XOrder x [XRNotRestored]"},
		},
		"ClusterScoped": {
			reason: "Nothing in the namespace requests a cluster-scoped XR without a claim.", live: []*unstructured.Unstructured{xr}, item: mr, spec: team,
			want: []string{"XOrder x [XRNotRestored]"},
		},
		"Unselected": {
			reason: "The MR has the label, and its XR has not.", live: []*unstructured.Unstructured{xr}, item: mr, spec: selects,
			want: []string{"XOrder x [XRNotRestored]"},
		},
		"Selected": {reason: "Its XR has the label.", live: []*unstructured.Unstructured{xptest.With(xr, xptest.Labelled("pick", "me"))}, item: mr, spec: selects},
		"Claimed":  {reason: "The claim requests the XR.", live: []*unstructured.Unstructured{xptest.With(xr, xptest.ClaimedBy(xptest.Claim("o")))}, item: mr, spec: team},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(tc.live...)
			got := backUp(t, c, tc.item, &velerov1.Backup{Spec: tc.spec})
			left := slices.DeleteFunc(got.Left, func(left string) bool { return !isOf(reason.XRNotRestored)(left) })
			if diff := cmp.Diff(tc.want, left, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			c.checkCost(t)
		})
	}
}

// A tenant can have any number of such XRs, with any number of MRs.
func TestMissingXRsCost(t *testing.T) {
	s := newSession(t, clusterOf())
	for n := range 100 {
		s.take(xptest.MR(fmt.Sprint("b", n), xptest.ControlledBy(xptest.XR(fmt.Sprint("x", n/2)))), &velerov1.Backup{})
	}
	warned := 0
	for _, e := range s.log.AllEntries() {
		if e.Level == logrus.WarnLevel {
			warned++
		}
	}
	if all := len(s.log.AllEntries()); warned != mostAtRisk+1 || all != 51 {
		t.Errorf("warned %d times with %d messages, want %d and one for each XR", warned, all, mostAtRisk+1)
	}
}
