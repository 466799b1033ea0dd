package backupitem

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A result is what a backup takes of an item and with it.
type result struct {
	Items []velero.ResourceIdentifier
	// Before is the list for the restore on the stored copy.
	Before   []velero.ResourceIdentifier
	Dangling []xp.Ref
	// Left are the references that are not followed, with the code of the reason.
	Left []string

	// Stored is the stored copy.
	Stored *unstructured.Unstructured
}

func (r result) leaving(left ...string) result {
	r.Left = left

	return r
}

func (r result) dangling(objects ...*unstructured.Unstructured) result {
	for _, u := range objects {
		r.Dangling = append(r.Dangling, xp.RefTo(u))
	}

	return r
}

// A session is the tree action during one backup.
type session struct {
	*Tree

	t   *testing.T
	log *logtest.Hook
}

func newSession(t *testing.T, r Reader) session {
	t.Helper()
	log, hook := logtest.NewNullLogger()

	return session{NewTree(NewResolver(r), log), t, hook}
}

// codes returns the codes of the reasons in the log.
func (s session) codes() (codes []reason.Code) {
	for _, e := range s.log.AllEntries() {
		codes = append(codes, reason.Code(fmt.Sprint(e.Data["reason"])))
	}

	return codes
}

// related asks for the block of an item, which Velero does before it backs the item up.
func (s session) related(item *unstructured.Unstructured) []velero.ResourceIdentifier {
	s.t.Helper()
	items, err := NewItemBlock(s.resolver, nil).GetRelatedItems(item.DeepCopy(), nil)
	if err != nil {
		s.t.Fatal(err)
	}

	return items
}

// take backs an item up.
func (s session) take(item *unstructured.Unstructured, backup *velerov1.Backup) result {
	s.t.Helper()
	before := len(s.log.AllEntries())
	stored, items, _, _, err := s.Execute(item.DeepCopy(), backup)
	if err != nil {
		s.t.Fatalf("want %s in the backup: %v", xp.String(item), err)
	}
	got := result{Items: items, Stored: &unstructured.Unstructured{Object: stored.UnstructuredContent()}}
	for _, e := range s.log.AllEntries()[before:] {
		code := fmt.Sprint(e.Data["reason"])
		if code != "<nil>" && !strings.HasSuffix(e.Message, " ["+code+"]") {
			s.t.Errorf("the message %q does not end with the code %q", e.Message, code)
		}
		left := fmt.Sprint(e.Data["reference"])
		if code == string(reason.NotLinked) {
			left += fmt.Sprint(": ", e.Data["cause"]) // A tenant must not learn from it what others have.
		}
		got.Left = append(got.Left, left+" ["+code+"]")
	}
	list, _, err := xp.RestoreFirst(got.Stored)
	if err != nil {
		s.t.Error(err)
	}
	got.Before = identifiers(list)
	if got.Dangling, err = xp.UnresolvedRefs(got.Stored); err != nil {
		s.t.Error(err)
	}

	for _, i := range slices.Concat(got.Items, got.Before) {
		to := xp.Ref{Kind: i.GroupResource.String(), Namespace: i.Namespace, Name: i.Name}.String() + " ["
		if i.Namespace != "" && slices.ContainsFunc(got.Left, func(left string) bool { return strings.HasPrefix(left, to) }) {
			s.t.Errorf("the plugin asks for %s and names it as left out", to)
		}
	}

	return got
}

func backUp(t *testing.T, r Reader, item *unstructured.Unstructured, backup *velerov1.Backup) result {
	t.Helper()

	return newSession(t, r).take(item, backup)
}

// isOf selects the entries of a result with one of the codes.
func isOf(codes ...reason.Code) func(left string) bool {
	return func(left string) bool {
		return slices.ContainsFunc(codes, func(c reason.Code) bool { return strings.HasSuffix(left, "["+string(c)+"]") })
	}
}

// unread returns the entry of what can't be read.
func unread(ref string) string { return ref + " [RelatedNotRead]" }

// A takeCase is an item with Secrets that a backup takes, or names.
type takeCase struct {
	reason              string
	item                *unstructured.Unstructured
	config, annotations map[string]string
	spec                velerov1.BackupSpec
	// down means that the settings can't be read.
	down bool
	// want are the Secrets that the backup takes. beyond means that Velero must look beyond its
	// filters for them.
	want   []velero.ResourceIdentifier
	beyond bool
	left   []string
	// noted is the record of the Secret for a restore: whether it existed, and whether the backup has
	// it.
	noted string
}

func runTakes(t *testing.T, cases map[string]takeCase, around ...*unstructured.Unstructured) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(around...)
			c.settings, c.down = tc.config, tc.down
			item := tc.item
			if xp.IsManaged(item) || xp.IsProviderConfig(item) {
				item = xptest.With(item, xptest.Annotated(xp.AnnotationMustInclude, "true")) // With a tenant's annotation Velero would ignore its filters.
			}
			got := backUp(t, c, item, &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}, Spec: tc.spec})
			secrets := slices.DeleteFunc(slices.Clone(got.Items), func(i velero.ResourceIdentifier) bool { return i.Resource != "secrets" })
			is := takeCase{want: secrets, left: got.Left, noted: notedInputs(got.Stored), beyond: xp.HasAnnotation(got.Stored, xp.AnnotationMustInclude)}
			want := takeCase{want: tc.want, left: tc.left, noted: tc.noted, beyond: tc.beyond}
			if diff := cmp.Diff(want, is, cmp.AllowUnexported(takeCase{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			c.checkCost(t)
		})
	}
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
			got := backUp(t, tc.cluster, tc.item, &velerov1.Backup{})
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(result{}, "Stored")); diff != "" {
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
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, map[string]string]{
		"MR": {
			Reason: "A tenant's annotation would bypass the filters for items that this action asks for.",
			In:     xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "b", xptest.Finalizers(xp.FinalizerManaged), marked),
		},
		"Unrelated": {
			Reason: "The annotation of another plugin on its own kinds stays.",
			In:     xptest.Object("example.org/v1", "Thing", "team-a", "t", marked), Want: map[string]string{xp.AnnotationMustInclude: "true"},
		},
	}, func(in *unstructured.Unstructured) map[string]string {
		return backUp(t, clusterOf(), in, &velerov1.Backup{}).Stored.GetAnnotations()
	}, cmpopts.EquateEmpty())
}

func TestTreeHasTheMarkKeyMade(t *testing.T) {
	for name, failure := range map[string]error{"Made": nil, "Failed": errors.New("forbidden")} {
		c := clusterOf()
		c.keyErr = failure
		s := newSession(t, c)
		for range 2 {
			s.take(xptest.XR("x"), &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "velero"}})
		}
		if diff := cmp.Diff([]string{"velero"}, c.made); diff != "" {
			t.Errorf("%s: a backup has the key made once, and goes on without it: -want, +got:\n%s", name, diff)
		}
	}
}
