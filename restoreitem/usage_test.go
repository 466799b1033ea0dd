package restoreitem

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// usage returns a Usage of bucket b by bucket n.
func usage(o ...xptest.Option) *unstructured.Unstructured {
	return xptest.Object(xp.GroupAPIExtensions+"/v1beta1", "Usage", "", "u", append([]xptest.Option{xptest.JSON(`{"spec":{
		"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"b"}},
		"by":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"n"}}}}`)}, o...)...)
}

func TestAdoptUsages(t *testing.T) {
	b, n := xptest.MR("b"), xptest.MR("n")
	old, x := xptest.XR("x", xptest.UID("old")), xptest.XR("x", xptest.UID("new"))
	composed := usage(xptest.ControlledBy(old))
	const command = "kubectl label Usage.v1beta1.apiextensions.crossplane.io u crossplane.io/composite- && kubectl delete Usage.v1beta1.apiextensions.crossplane.io u"
	type want struct {
		Skip bool
		// Warned are parts of the only warning.
		Warned  []string
		Command string
	}
	cases := map[string]struct {
		reason   string
		item     *unstructured.Unstructured
		live     []*unstructured.Unstructured
		selected bool
		want     want
	}{
		"Whole": {reason: "With what it needs there it comes back as it was.", item: usage(), live: []*unstructured.Unstructured{b, n}},
		"Listed": {
			reason: "So does one that its XR lists.", item: composed, live: []*unstructured.Unstructured{b, n, xptest.With(x, xptest.Refs(composed))},
		},
		"Leftover": {
			reason: "One that its XR has dropped protects for ever.", item: composed, live: []*unstructured.Unstructured{b, n, x},
			want: want{Skip: true, Warned: []string{"Not restored", "its XR does not list it", "Bucket b for Bucket n"}, Command: command},
		},
		"LeftoverOfHeld": {
			reason: "Also if the XR has come back with it.", item: composed, live: []*unstructured.Unstructured{b, n, heldWith(x)},
			want: want{Skip: true, Warned: []string{"Not restored", "its XR does not list it"}, Command: command},
		},
		"XRUnreadable": {
			reason: "Of an XR that can't be read nobody knows what it lists.", item: composed,
			live: []*unstructured.Unstructured{b, n, xptest.With(heldWith(x), xptest.Field("odd", "spec", "resourceRefs"))}, want: want{Warned: []string{"without an owner"}},
		},
		"XRGone": {
			reason: "Without its XR it still protects what came back.", item: composed, live: []*unstructured.Unstructured{b, n},
			want: want{Warned: []string{"Restored without an owner"}},
		},
		"Terminating": {
			reason: "One that is being deleted is not brought back by being written again.", item: composed,
			live: []*unstructured.Unstructured{b, n, xptest.With(x, xptest.Refs(composed)), xptest.With(composed, xptest.Deleting())},
			want: want{Skip: true, Warned: []string{"it exists and is being deleted", "Bucket b for Bucket n", "Bucket n is gone"}},
		},
		"TerminatingAlone": {
			reason: "One of a person's own goes at once.", item: usage(), live: []*unstructured.Unstructured{b, n, usage(xptest.Deleting())},
			want: want{Skip: true, Warned: []string{"it exists and is being deleted", "Crossplane has seen that"}},
		},
		"TerminatingInBackup": {
			reason: "Nor is one that was when it was backed up.", item: usage(xptest.Deleting()), live: []*unstructured.Unstructured{b, n},
			want: want{Skip: true, Warned: []string{"it was being deleted when it was backed up"}},
		},
		"Live": {reason: "Velero leaves what is live by itself.", item: usage(), live: []*unstructured.Unstructured{usage()}},
		"NoUser": {
			reason: "Without what uses the used the protection never ends.", item: usage(), live: []*unstructured.Unstructured{b},
			want: want{Warned: []string{"Restored, but Bucket n", "protects Bucket b for", "restore Bucket n too"}, Command: command},
		},
		"NoUsed": {
			reason: "Without what it protects it has no meaning.", item: usage(), live: []*unstructured.Unstructured{n},
			want: want{Warned: []string{"Restored, but Bucket b, which it protects, is not in the cluster"}},
		},
		"Selected":   {reason: "In a restore by labels what it needs may come later.", item: usage(), selected: true},
		"Unresolved": {reason: "A selector looks for what is there.", item: usage(xptest.Without("spec", "of", "resourceRef"))},
		"ForAReason": {reason: "Nothing needs to use what is protected.", item: usage(xptest.Without("spec", "by")), live: []*unstructured.Unstructured{b}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			if tc.selected {
				restore.Spec.LabelSelector = &metav1.LabelSelector{}
			}
			c := live(tc.live...)
			out, entries := adoptLogged(t, c, tc.item, restore)
			exists := slices.ContainsFunc(tc.live, xp.IsUsage)
			if got := slices.Contains(c.asked, "owner Usage /u"); got != exists {
				t.Errorf("%s\nit was read by itself: %v, it exists: %v", tc.reason, got, exists)
			}
			if out.err != nil {
				t.Fatal(out.err)
			}
			if out.SkipRestore != tc.want.Skip {
				t.Errorf("%s\nskipped: %v", tc.reason, out.SkipRestore)
			}
			if (len(entries) == 0) != (tc.want.Warned == nil) || len(entries) > 1 {
				t.Fatalf("%s\ntold: %v", tc.reason, out.logged)
			}
			if len(entries) == 0 {
				return
			}
			for _, word := range tc.want.Warned {
				if !strings.Contains(entries[0].Message, word) {
					t.Errorf("%s\n%q does not say %q", tc.reason, entries[0].Message, word)
				}
			}
			command, _ := entries[0].Data["command"].(string)
			if diff := cmp.Diff(tc.want.Command, command); diff != "" {
				t.Errorf("%s\ncommand: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAdoptUsagesWithoutAnswer(t *testing.T) {
	if out := adopt(t, failingCluster(errAPI), usage(), restoreOf(nil)); out.err == nil {
		t.Errorf("without an answer a Usage is not restored: %+v", out)
	}
}

// A deletion that a user attempted before the backup is not replayed.
func TestAdoptRemovesDeletionAttempts(t *testing.T) {
	tried := xptest.Annotated(xp.AnnotationDeletionAttempt, "Background")
	for name, item := range map[string]*unstructured.Unstructured{
		"MR":        xptest.MR("b", tried),
		"XR":        xptest.XR("x", tried),
		"ConfigMap": xptest.Object("v1", "ConfigMap", "team-a", "c", tried, xptest.Labelled(xp.LabelInUse, "true")),
		"Thing":     xptest.Object("example.org/v1", "Thing", "team-a", "t", tried, xptest.Annotated("theirs", "kept")),
	} {
		out := adopt(t, live(), item, restoreOf(nil))
		if out.err != nil || out.object == nil || xp.HasDeletionAttempt(out.object) || len(out.logged) != 1 {
			t.Errorf("%s must come back without the note, and say so; got %+v", name, out)

			continue
		}
		if diff := cmp.Diff(item.GetLabels(), out.object.GetLabels()); diff != "" {
			t.Errorf("%s stays protected: -before, +after:\n%s", name, diff)
		}
		if name == "Thing" && out.object.GetAnnotations()["theirs"] != "kept" {
			t.Errorf("other annotations are not touched: %v", out.object.GetAnnotations())
		}
	}
}

func TestUsedSelector(t *testing.T) {
	if got := Used().LabelSelector; got != "crossplane.io/in-use,!crossplane.io/composite" {
		t.Errorf("what an XR composes has an action already: %q", got)
	}
}
