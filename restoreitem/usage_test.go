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
		"Whole": {reason: "A Usage comes back unchanged when both of its objects are live.", item: usage(), live: []*unstructured.Unstructured{b, n}},
		"Listed": {
			reason: "A Usage in its XR's list comes back unchanged.", item: composed, live: []*unstructured.Unstructured{b, n, xptest.With(x, xptest.Refs(composed))},
		},
		"Leftover": {
			reason: "A Usage that its XR dropped would protect for ever.", item: composed, live: []*unstructured.Unstructured{b, n, x},
			want: want{Skip: true, Warned: []string{"not restored", "[UsageLeftBehind]", "Bucket b for Bucket n"}, Command: command},
		},
		"LeftoverOfHeld": {
			reason: "A Usage that its restored XR does not list would protect for ever too.", item: composed, live: []*unstructured.Unstructured{b, n, heldWith(x)},
			want: want{Skip: true, Warned: []string{"not restored", "[UsageLeftBehind]"}, Command: command},
		},
		"XRUnreadable": {
			reason: "An unreadable XR may list the Usage.", item: composed,
			live: []*unstructured.Unstructured{b, n, xptest.With(heldWith(x), xptest.Field("odd", "spec", "resourceRefs"))}, want: want{Warned: []string{"[RestoredWithoutOwner]"}},
		},
		"XRGone": {
			reason: "A Usage without its XR still protects the restored object.", item: composed, live: []*unstructured.Unstructured{b, n},
			want: want{Warned: []string{"[RestoredWithoutOwner]"}},
		},
		"Terminating": {
			reason: "Velero cannot restore a live Usage that is being deleted.", item: composed,
			live: []*unstructured.Unstructured{b, n, xptest.With(x, xptest.Refs(composed)), xptest.With(composed, xptest.Deleting())},
			want: want{Skip: true, Warned: []string{"exists and is being deleted", "Bucket b for Bucket n", "Bucket n is gone"}},
		},
		"TerminatingAlone": {
			reason: "The API server deletes a user's own Usage at once.", item: usage(), live: []*unstructured.Unstructured{b, n, usage(xptest.Deleting())},
			want: want{Skip: true, Warned: []string{"exists and is being deleted", "Crossplane has seen that"}},
		},
		"TerminatingInBackup": {
			reason: "A Usage that was terminating in the backup does not come back.", item: usage(xptest.Deleting()), live: []*unstructured.Unstructured{b, n},
			want: want{Skip: true, Warned: []string{"it was being deleted at the backup"}},
		},
		"Live": {reason: "Velero leaves a live Usage as it is.", item: usage(), live: []*unstructured.Unstructured{usage()}},
		"NoUsingObject": {
			reason: "Without the using object the protection never ends.", item: usage(), live: []*unstructured.Unstructured{b},
			want: want{Warned: []string{"Bucket n, for which the Usage protects Bucket b, is not in the cluster"}, Command: command},
		},
		"NoProtectedObject": {
			reason: "Without the protected object a Usage is useless.", item: usage(), live: []*unstructured.Unstructured{n},
			want: want{Warned: []string{"Bucket b, which the Usage protects, is not in the cluster"}},
		},
		"Selected":   {reason: "In a restore by labels the objects may come later.", item: usage(), selected: true},
		"Unresolved": {reason: "A selector finds the objects that are live.", item: usage(xptest.Without("spec", "of", "resourceRef"))},
		"WithReason": {reason: "A Usage with a reason needs no using object.", item: usage(xptest.Without("spec", "by")), live: []*unstructured.Unstructured{b}},
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
				t.Errorf("%s\nthe plugin read the Usage: %v, it exists: %v", tc.reason, got, exists)
			}
			if out.err != nil {
				t.Fatal(out.err)
			}
			if out.SkipRestore != tc.want.Skip {
				t.Errorf("%s\nskipped: %v", tc.reason, out.SkipRestore)
			}
			if (len(entries) == 0) != (tc.want.Warned == nil) || len(entries) > 1 {
				t.Fatalf("%s\nlogged: %v", tc.reason, out.logged)
			}
			if len(entries) == 0 {
				return
			}
			for _, word := range tc.want.Warned {
				if !strings.Contains(entries[0].Message, word) {
					t.Errorf("%s\n%q lacks %q", tc.reason, entries[0].Message, word)
				}
			}
			if !strings.Contains(entries[0].Message, tc.want.Command) {
				t.Errorf("%s\n%q lacks the command %q", tc.reason, entries[0].Message, tc.want.Command)
			}
		})
	}
}

func TestAdoptUsagesWithoutAnswer(t *testing.T) {
	if out := adopt(t, failingCluster(errAPI), usage(), restoreOf(nil)); out.err == nil {
		t.Errorf("without an answer a Usage must not come back: %+v", out)
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
			t.Errorf("%s must come back without the annotation, and log that; got %+v", name, out)

			continue
		}
		if diff := cmp.Diff(item.GetLabels(), out.object.GetLabels()); diff != "" {
			t.Errorf("%s must stay protected: -before, +after:\n%s", name, diff)
		}
		if name == "Thing" && out.object.GetAnnotations()["theirs"] != "kept" {
			t.Errorf("other annotations must stay: %v", out.object.GetAnnotations())
		}
	}
}

func TestUsedSelector(t *testing.T) {
	if got := Used().LabelSelector; got != "crossplane.io/in-use,!crossplane.io/composite" {
		t.Errorf("another action already handles composed resources: %q", got)
	}
}
