package backupitem

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A result is what a backup takes of an item and with it.
type result struct {
	Items []velero.ResourceIdentifier
	// Before is the list for the restore on the stored copy.
	Before   []velero.ResourceIdentifier
	Dangling []xp.Ref
	// Left are the references that are not followed, with the reason.
	Left []string
	Err  error

	// Stored is the stored copy.
	Stored *unstructured.Unstructured
}

func backUp(c *cluster, item *unstructured.Unstructured, backup *velerov1.Backup) result {
	log, hook := logtest.NewNullLogger()
	stored, items, _, _, err := NewTree(NewResolver(c), log).Execute(item.DeepCopy(), backup)
	got := result{Items: items, Err: err}
	var uncoded []error
	for _, e := range hook.AllEntries() {
		if code := fmt.Sprint(e.Data["reason"]); code == "" || !strings.HasSuffix(e.Message, " ["+code+"]") {
			uncoded = append(uncoded, fmt.Errorf("the message %q does not end with the code %q", e.Message, code))
		}
		got.Left = append(got.Left, fmt.Sprint(e.Data["reference"], ": ", e.Data["cause"], " [", e.Data["reason"], "]"))
	}
	if stored != nil {
		u := &unstructured.Unstructured{Object: stored.UnstructuredContent()}
		got.Stored = u
		before, _, treeErr := xp.RestoreFirst(u)
		got.Before = identifiers(before)
		var danglingErr error
		got.Dangling, danglingErr = xp.UnresolvedRefs(u)
		got.Err = errors.Join(append(uncoded, treeErr, danglingErr)...)
	}

	return got
}

// unreadableWarning returns the warning of what can't be read.
func unreadableWarning(ref, kind string) string {
	return ref + ": " + ref + " can't be read: " + errAPI.Error() + ". The backup can lack what it names there. When the API server answers for " + kind +
		", back up again [RelatedNotRead]"
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
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors(), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(result{}, "Stored")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			tc.cluster.checkCost(t)
		})
	}
}

func TestTreeOfAnythingElse(t *testing.T) {
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"))
	forged := xptest.RestoreFirst("secrets/team-b/theirs")
	runTrees(t, map[string]treeCase{
		"MR": {
			reason: "The MR brings its connection secret.", cluster: clusterOf(xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr))), item: mr,
			want: result{Items: []velero.ResourceIdentifier{id("", "secrets", "infra", "s")}},
		},
		"SecretOfOtherMR": {
			reason:  "A Secret that another MR controls stays out.",
			cluster: clusterOf(xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(xptest.MR("c")))),
			item:    mr,
			want:    result{Left: []string{"Secret infra/s: it does not exist, or Bucket b does not control it [NotLinked]"}},
		},
		"NoSecretOfMR": {
			reason:  "In another namespace, another MR's Secret and a missing one give the same message.",
			cluster: clusterOf(), item: mr,
			want: result{Left: []string{"Secret infra/s: it does not exist, or Bucket b does not control it [NotLinked]"}},
		},
		"APIOfMR": {
			reason:  "An unreadable Secret stays out of the backup, but its MR does not.",
			cluster: clusterOf().without(xptest.Secret("s", xptest.In("infra"))), item: mr, want: result{Left: []string{unreadableWarning("Secret infra/s", "Secret")}},
		},
		"Unrelated": {
			reason:  "A resource outside Crossplane brings no objects, and loses only the fields that the plugin reserves.",
			cluster: clusterOf(), item: xptest.Object("example.org/v1", "Thing", "team-a", "t", forged),
		},
	})
}

func TestTreeHasNoOperations(t *testing.T) {
	tree := NewTree(NewResolver(clusterOf()), nil)
	if _, err := tree.Progress("id", nil); err == nil {
		t.Error("want an error for an operation that was never started")
	}
	if err := tree.Cancel("id", nil); err != nil {
		t.Error(err)
	}
	got, err := tree.AppliesTo()
	want := velero.ResourceSelector{IncludedResources: []string{"*.*.*"}, ExcludedResources: []string{"*.k8s.io", "*.velero.io"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("the selector must save calls and leave out CRDs, which can exceed one: error %v, -want, +got:\n%s", err, diff)
	}
}

func TestTreeKeepsAnnotationsOfOthers(t *testing.T) {
	marked := xptest.Annotated(xp.AnnotationMustInclude, "true")
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		want   map[string]string
	}{
		"MR": {
			reason: "A tenant's annotation would bypass the filters for items that this action asks for.",
			item:   xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "b", xptest.Finalizers(xp.FinalizerManaged), marked),
		},
		"Unrelated": {
			reason: "The annotation of another plugin on its own kinds stays.",
			item:   xptest.Object("example.org/v1", "Thing", "team-a", "t", marked), want: map[string]string{xp.AnnotationMustInclude: "true"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			stored, _, _, _, err := NewTree(NewResolver(clusterOf()), log).Execute(tc.item, &velerov1.Backup{})
			if err != nil {
				t.Fatal(err)
			}
			got := (&unstructured.Unstructured{Object: stored.UnstructuredContent()}).GetAnnotations()
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTreeHasTheMarkKeyMade(t *testing.T) {
	for name, failure := range map[string]error{"Made": nil, "Failed": errors.New("forbidden")} {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			c := clusterOf()
			c.keyErr = failure
			tree := NewTree(NewResolver(c), log)
			for range 2 {
				if _, _, _, _, err := tree.Execute(xptest.XR("x"), &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "velero"}}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff([]string{"velero"}, c.made); diff != "" {
				t.Errorf("a backup has the key made once, and goes on without it: -want, +got:\n%s", diff)
			}
		})
	}
}
