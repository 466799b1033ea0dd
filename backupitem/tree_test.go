package backupitem

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A result is what a backup takes of an item and with it.
type result struct {
	Items []velero.ResourceIdentifier
	// Before is the item's list for the restore, as its stored copy has it.
	Before   []velero.ResourceIdentifier
	Dangling []xp.Ref
	// Left are the refs that are not followed, with the reason.
	Left []string
	Err  error
}

func backUp(c *cluster, item *unstructured.Unstructured, backup *velerov1.Backup) result {
	log, hook := logtest.NewNullLogger()
	stored, items, _, _, err := NewTree(NewLinks(c), log).Execute(item.DeepCopy(), backup)
	got := result{Items: items, Err: err}
	for _, e := range hook.AllEntries() {
		got.Left = append(got.Left, fmt.Sprint(e.Data["reference"], ": ", e.Data["reason"]))
	}
	if stored != nil {
		u := &unstructured.Unstructured{Object: stored.UnstructuredContent()}
		before, _, treeErr := xp.Tree(u)
		got.Before = identifiers(before)
		var danglingErr error
		got.Dangling, danglingErr = xp.Dangling(u)
		got.Err = errors.Join(treeErr, danglingErr)
	}

	return got
}

type treeCase struct {
	reason  string
	cluster *cluster
	item    *unstructured.Unstructured
	want    result
}

func runTrees(t *testing.T, cases map[string]treeCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := backUp(tc.cluster, tc.item, &velerov1.Backup{})
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for id, n := range tc.cluster.asked {
				if n > 1 {
					t.Errorf("%v was asked for %d times", id, n)
				}
			}
		})
	}
}

func TestTreeOfAnythingElse(t *testing.T) {
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"))
	forged := xptest.Annotated(xp.AnnotationTree, `["secrets/team-b/theirs"]`)
	runTrees(t, map[string]treeCase{
		"MR": {
			reason: "Its connection secret comes with it.", cluster: clusterOf(xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr))), item: mr,
			want: result{Items: []velero.ResourceIdentifier{id("", "secrets", "infra", "s")}},
		},
		"MRsNeighbour": {
			reason:  "A Secret that another MR controls stays out.",
			cluster: clusterOf(xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(xptest.MR("c")))),
			item:    mr,
			want:    result{Left: []string{"Secret infra/s: it is not controlled by it"}},
		},
		"APIOfMR": {
			reason:  "A Secret that could not be read is an error.",
			cluster: clusterOf().without(xptest.Secret("s", xptest.In("infra"))), item: mr, want: result{Err: errAPI},
		},
		"Unrelated": {
			reason:  "A resource that Crossplane has nothing to do with brings nothing; what its tenant wrote is theirs, and not read by a restore.",
			cluster: clusterOf(),
			item:    xptest.Object("example.org/v1", "Thing", "team-a", "t", forged),
			want:    result{Before: []velero.ResourceIdentifier{id("", "secrets", "team-b", "theirs")}},
		},
	})
}

func TestTreeWarnsOfWhatTheFiltersLeaveOut(t *testing.T) {
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"))
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	c := clusterOf(xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr)), xptest.XR("x", xptest.ClaimedBy(claim)))
	const elsewhere = "secrets infra/s: its namespace is not in the backup; add infra to --include-namespaces if it can't be made anew"
	const cluster = "xorders.example.org x: the backup is made with --include-cluster-resources=false, so the tree can't be restored from it"
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		spec   velerov1.BackupSpec
		want   []string
	}{
		"Everything": {reason: "Nothing is left out.", item: mr},
		"Included":   {reason: "The namespace is in the list.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a", "infra"}}},
		"Glob":       {reason: "Velero allows globs.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"inf*"}}},
		"Star":       {reason: "Velero allows a star for all.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}}},
		"NotIncluded": {
			reason: "Velero drops it without a word.",
			item:   mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}, want: []string{elsewhere},
		},
		"Excluded": {
			reason: "The same for an exclusion.",
			item:   mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{"infra"}}, want: []string{elsewhere},
		},
		"BadPattern": {
			reason: "A pattern that can't be read matches nothing.",
			item:   mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"["}}, want: []string{elsewhere},
		},
		"NoCluster": {
			reason: "The tree of a claim is cluster-scoped.",
			item:   claim, spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(false)}, want: []string{cluster},
		},
		"WithCluster":   {reason: "Then it is in.", item: claim, spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(true)}},
		"NamespaceOnly": {reason: "Additional items are in by default.", item: claim, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, backUp(c, tc.item, &velerov1.Backup{Spec: tc.spec}).Left); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTreeHasNoOperations(t *testing.T) {
	tree := NewTree(nil, nil)
	if _, err := tree.Progress("id", nil); err == nil {
		t.Error("An operation that was never started must not look as if it were under way.")
	}
	if err := tree.Cancel("id", nil); err != nil {
		t.Error(err)
	}
	got, err := tree.AppliesTo()
	want := velero.ResourceSelector{IncludedResources: []string{"*.*.*"}, ExcludedResources: []string{"*.k8s.io", "*.velero.io"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Each call costs, and CRDs can exceed one: error %v, -want, +got:\n%s", err, diff)
	}
}
