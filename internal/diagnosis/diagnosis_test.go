package diagnosis

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func objectsOf(objects ...*unstructured.Unstructured) *Objects {
	o := NewObjects()
	for _, u := range objects {
		o.Add(u)
	}

	return o
}

// said is which code each object has, as "severity code object".
func said(problems []report.Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, string(p.Severity)+" "+string(p.Code)+" "+p.Object.String())
	}

	return all
}

func TestNothingWrong(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled())
	mr := xptest.MR("b", xptest.ControlledBy(x), xptest.Labelled(xp.LabelComposite, "x"), xptest.Reconciled())
	x = xptest.With(x, xptest.Refs(mr))
	if got := said(Validate(objectsOf(x, mr), Situation{})); len(got) > 0 {
		t.Errorf("A tree as Crossplane keeps it has no problem; got %v", got)
	}
}

func TestValidate(t *testing.T) {
	x := xptest.XR("x")
	composed := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR("b", append([]xptest.Option{xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "b")}, o...)...)
	}
	mine := composed(xptest.ControlledBy(x))
	lists := xptest.With(x, xptest.Refs(mine))
	y := xptest.XR("y")
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		unread  []schema.GroupKind
		s       Situation
		want    []string
	}{
		"Dangling": {
			reason: "What an XR lists and is not there Crossplane makes anew.", objects: []*unstructured.Unstructured{lists}, want: []string{"problem Dangling Bucket b"},
		},
		"Unread": {
			reason: "Of a kind that can't be read nothing is known.", objects: []*unstructured.Unstructured{lists}, unread: []schema.GroupKind{mine.GroupVersionKind().GroupKind()},
			want: []string{"warning NotRead Bucket *"},
		},
		"Uncontrolled": {
			reason: "What nobody controls Crossplane has not adopted.", objects: []*unstructured.Unstructured{lists, composed()}, want: []string{"problem Uncontrolled Bucket b"},
		},
		"NotItsOwn": {
			reason: "What another XR controls is not this one's.", objects: []*unstructured.Unstructured{lists, y, composed(xptest.ControlledBy(y))},
			want: []string{"problem NotItsOwn Bucket b"},
		},
		"DeadController": {
			reason:  "The garbage collector deletes what has only a dead owner.",
			objects: []*unstructured.Unstructured{lists, composed(xptest.ControlledBy(xptest.With(x, xptest.UID("old"))))}, want: []string{"problem DeadController Bucket b"},
		},
		"Orphaned": {
			reason: "What no XR lists nobody updates.", objects: []*unstructured.Unstructured{x, composed()}, want: []string{"problem Orphaned Bucket b"},
		},
		"Dropped": {
			reason: "Also if its XR still controls it.", objects: []*unstructured.Unstructured{x, mine}, want: []string{"problem Orphaned Bucket b"},
		},
		"Duplicated": {
			reason:  "Two MRs with one name that was not made of theirs have one external resource.",
			objects: []*unstructured.Unstructured{xptest.MR("a", xptest.Annotated(xp.AnnotationExternalName, "i-1")), xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "i-1"))},
			want:    []string{"problem Duplicated Bucket b"},
		},
		"Observed": {
			reason: "One that only observes harms nobody.",
			objects: []*unstructured.Unstructured{
				xptest.MR("a", xptest.Annotated(xp.AnnotationExternalName, "i-1")), xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "i-1"), xptest.JSON(`{"spec":{"managementPolicies":["Observe"]}}`)),
			},
		},
		"Elsewhere": {
			reason: "In another region it is another one.",
			objects: []*unstructured.Unstructured{
				xptest.MR("a", xptest.Annotated(xp.AnnotationExternalName, "i-1"), xptest.JSON(`{"spec":{"forProvider":{"region":"eu"}}}`)),
				xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "i-1"), xptest.JSON(`{"spec":{"forProvider":{"region":"us"}}}`)),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := objectsOf(tc.objects...)
			for _, gk := range tc.unread {
				o.AddUnread(gk, "forbidden")
			}
			if diff := cmp.Diff(tc.want, said(Validate(o, tc.s))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	x := xptest.XR("x")
	if _, err := adoption.Put(x, adoption.Hold{Restore: "velero/r", Since: "2026-11-20T10:00:00Z"}); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason   string
		restores map[string]string
		want     []string
	}{
		"UnderWay": {reason: "Velero goes on by itself.", restores: map[string]string{"velero/r": "WaitingForPluginOperations"}, want: []string{"problem Held XOrder x"}},
		"Ended":    {reason: "Nobody works on it any more.", restores: map[string]string{"velero/r": "PartiallyFailed"}, want: []string{"problem LeakedHold XOrder x"}},
		"Gone":     {reason: "Nor if it is gone.", restores: map[string]string{}, want: []string{"problem LeakedHold XOrder x"}},
		"Unread":   {reason: "Whether it is leaked is not known.", restores: map[string]string{"velero/r": PhaseUnread}, want: []string{"problem Held XOrder x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, said(Validate(objectsOf(x), Situation{Restores: tc.restores}))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
