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
		"Nothing":         {reason: "All of the cluster."},
		"Empty":           {reason: "An empty list is none.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{}, ExcludedNamespaces: []string{}}},
		"NilSelectors":    {reason: "A selector can be missing in the list.", spec: velerov1.BackupSpec{OrLabelSelectors: []*metav1.LabelSelector{nil}}},
		"EmptySelector":   {reason: "It selects everything.", spec: velerov1.BackupSpec{LabelSelector: &metav1.LabelSelector{}}},
		"Contradiction":   {reason: "An exclusion counts for more.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{"infra"}, ExcludedNamespaces: []string{"infra"}}, out: true},
		"StarAgainstStar": {reason: "The same for all.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{"*"}}, out: true},
		"NoNamespace":     {reason: "All are left out.", spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"*"}}, out: true},
		"Glob":            {reason: "Velero allows globs.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{"inf[ra]a"}, ExcludedNamespaces: []string{"team-*"}}},
		"GlobExcluded":    {reason: "Also here.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{"infra"}, ExcludedNamespaces: []string{"inf??"}}, out: true},
		"BadGlobExcluded": {reason: "It leaves nothing out.", spec: velerov1.BackupSpec{ExcludedNamespaces: []string{"infra["}}},
		"EmptyName":       {reason: "A password may be nowhere else.", spec: velerov1.BackupSpec{IncludedNamespaces: []string{""}}},
		"Resources": {
			reason: "Which resources come is a person's to say.", out: true,
			spec: velerov1.BackupSpec{IncludedResources: []string{"*"}, ExcludedResources: []string{"*"}},
		},
		"ResourcesElsewhere": {
			reason: "Who chooses resources chooses what is left out, however that is said.", out: true,
			spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, ExcludedResources: []string{""}},
		},
		"Hooks":    {reason: "Hooks are Velero's.", spec: velerov1.BackupSpec{Hooks: velerov1.BackupHooks{Resources: []velerov1.BackupResourceHookSpec{{}}}}},
		"NilHooks": {reason: "There may be none.", spec: velerov1.BackupSpec{Hooks: velerov1.BackupHooks{Resources: nil}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := backUp(c, mr, &velerov1.Backup{Spec: tc.spec})
			if got.Err != nil || got.Stored == nil || xp.RefTo(got.Stored) != xp.RefTo(mr) {
				t.Fatalf("%s\n%v is stored as %v, error %v", tc.reason, xp.RefTo(mr), got.Stored, got.Err)
			}
			if in := slices.Contains(got.Items, id("", "secrets", "infra", "s")); in == tc.out || (len(got.Left) > 0) != tc.out {
				t.Errorf("%s\nits secret is asked for: %v, with the warnings %v", tc.reason, in, got.Left)
			}
		})
	}
}
