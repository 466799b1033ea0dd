package restoreitem

import (
	"strings"
	"testing"
	"unicode"

	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The author of an item chooses how many warnings it causes. The log and the note have the first,
// and the number of the others.
func TestWarningsOfOneItemAreBounded(t *testing.T) {
	const many = 500
	secrets, owners, refs := make([]any, many), make([]any, many), make([]any, many)
	for n := range many {
		name := "s" + strings.Repeat("x", n%200) + string(rune('a'+n/200))
		secrets[n] = map[string]any{"name": name, "namespace": "infra"}
		owners[n] = map[string]any{"apiVersion": xptest.LegacyVersion, "kind": xptest.LegacyKind, "name": name, "uid": "u"}
		refs[n] = map[string]any{"apiVersion": "gone.example.org/v1", "kind": "Gone", "name": name}
	}
	cases := map[string]struct {
		item *unstructured.Unstructured
		more string
	}{
		"Inputs": {item: xptest.MR("b", xptest.Field(secrets, "spec", "forProvider", "passwordSecretRefs")), more: "There are 480 more warnings like the 20 before [InputMissing]"},
		"Owners": {
			item: xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "b"), xptest.Field(owners, "metadata", "ownerReferences")),
			more: "There are 44 more warnings like the 20 before [RestoredWithoutOwner]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := live()
			got := adopt(t, c, tc.item, restoreOf(nil))
			if got.err != nil {
				t.Fatal(got.err)
			}
			if len(got.logged) > 3*mostWarnings || len(got.note) > longestNote+100 || !strings.Contains(got.note, tc.more) || !strings.Contains(strings.Join(got.logged, "\n"), tc.more) {
				t.Errorf("the log has %d lines, and the note %d bytes; both must have %q:\n%s", len(got.logged), len(got.note), tc.more, got.note)
			}
			if len(c.asked) > 2*xp.MostOwners+many {
				t.Errorf("the cluster was asked %d times", len(c.asked))
			}
		})
	}
	log, hook := logtest.NewNullLogger()
	spec := velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	o := NewOrder(Crossplane(), kindsFn(served), log, Shared{})
	for range 2 {
		hook.Reset()
		if _, err := o.Execute(inputFor(xptest.XRV2("x", xptest.Field(refs, "spec", "crossplane", "resourceRefs")), &velerov1.Restore{Spec: spec})); err != nil {
			t.Fatal(err)
		}
		last := hook.LastEntry()
		if n := len(hook.AllEntries()); n > 2*mostWarnings || last == nil || last.Message != "There are 480 more warnings like the 20 before [KindNotServed]" {
			t.Errorf("each item has warnings of its own; got %d, the last of them %v", n, last)
		}
	}
}

// "velero restore describe --details" prints operations as they are.
func TestOperationsAreClean(t *testing.T) {
	const hostile = "a\x1b[2J\x1b]0;owned\x07\r\n  b\u202e"
	owner := metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: hostile, UID: "u"}
	item := xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "b"), xptest.OwnedBy(owner))
	log, _ := logtest.NewNullLogger()
	out, err := NewAdopt(Crossplane(), live(), nil, log, Shared{}).Execute(inputFor(item, restoreOf(nil)))
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{out.OperationID, "note: Bucket b: " + hostile, "failed: Bucket b: " + hostile}
	for _, id := range ids {
		for name, progress := range map[string]func() (string, string, error){
			"Order": func() (string, string, error) {
				p, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{}).Progress(id, restoreOf(nil))

				return p.Description, p.Err, err
			},
			"Adopt": func() (string, string, error) {
				p, err := NewAdopt(Crossplane(), live(), nil, log, Shared{}).Progress(id, restoreOf(nil))

				return p.Description, p.Err, err
			},
		} {
			description, failed, err := progress()
			if err != nil || !strings.Contains(description, "owned") || strings.ContainsFunc(description+failed, func(c rune) bool { return c != ' ' && !unicode.IsPrint(c) }) {
				t.Errorf("%s: got %q, %q, error %v", name, description, failed, err)
			}
		}
	}
}
