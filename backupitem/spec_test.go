package backupitem

import (
	"slices"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Whatever a Backup selects, an MR is stored, and its connection secret too unless the Backup
// excludes that.
func TestOddBackups(t *testing.T) {
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"))
	c := clusterOf(xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr)))
	cases := map[string]struct {
		reason string
		spec   velerov1.BackupSpec
		out    bool
	}{
		"NilSelectors":    {reason: "A list of selectors can contain nil.", spec: velerov1.BackupSpec{OrLabelSelectors: []*metav1.LabelSelector{nil}}},
		"Contradiction":   {reason: "An exclusion takes precedence over an inclusion.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{"infra"}, ExcludedNamespaces: []string{"infra"}}, out: true},
		"NoNamespace":     {reason: "The backup excludes all namespaces.", spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"*"}}, out: true},
		"Glob":            {reason: "Velero allows globs.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{"inf[ra]a"}, ExcludedNamespaces: []string{"team-*"}}},
		"GlobExcluded":    {reason: "Velero allows globs in exclusions.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{"infra"}, ExcludedNamespaces: []string{"inf??"}}, out: true},
		"BadGlobExcluded": {reason: "A malformed pattern excludes no namespace.", spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"infra["}}},
		"EmptyName":       {reason: "The Secret may hold the only copy of a password.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{""}}},
		"Resources": {
			reason: "A user decides which resources come.", out: true,
			spec: velerov1.BackupSpec{IncludedResources: []string{"*"}, ExcludedResources: []string{"*"}},
		},
		"ResourcesElsewhere": {
			reason: "A user who selects resources also decides which ones stay out, with either filter.", out: true,
			spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, ExcludedResources: []string{""}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := backUp(t, c, mr, &velerov1.Backup{Spec: tc.spec})
			if got.Stored == nil || xp.RefTo(got.Stored) != xp.RefTo(mr) {
				t.Fatalf("%s\nthe backup has %v as %v", tc.reason, xp.RefTo(mr), got.Stored)
			}
			if in := slices.Contains(got.Items, id("", "secrets", "infra", "s")); in == tc.out || (len(got.Left) > 0) != tc.out {
				t.Errorf("%s\nthe plugin asks for its secret: %v, with the warnings %v", tc.reason, in, got.Left)
			}
		})
	}
}
