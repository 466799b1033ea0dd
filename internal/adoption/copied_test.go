package adoption

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A Composition can copy all annotations of an XR to its composed resources, and does so while the
// XR is reconciled and still marked. A backup then has the XR's mark on its children, and in
// another cluster no key shows whose mark it is.
func TestPutTakesNoMarkOfAnother(t *testing.T) {
	xr := held(xptest.XR("x", xptest.Refs(xptest.MR("b")), xptest.Annotated(xp.AnnotationPaused, "false")), unpaused())
	copiedOnto := func(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.With(u, append(o, markOf(xr))...)
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   *string
		pinned bool
	}{
		"MR":            {reason: "The backed-up MR had no pause.", object: copiedOnto(xptest.MR("b"))},
		"PausedMR":      {reason: "The MR's own pause must come back.", object: copiedOnto(xptest.MR("b"), xptest.Annotated(xp.AnnotationPaused, "true")), want: ptr.To("true")},
		"XR":            {reason: "The XR gets a pin of its own.", object: copiedOnto(xptest.XR("y")), pinned: true},
		"OfTheSameName": {reason: "The kind distinguishes two objects of the same name.", object: copiedOnto(xptest.MR("x"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := HoldOf(tc.object); !errors.Is(err, ErrForged) {
				t.Errorf("%s\na copied mark must count as forged; got %v", tc.reason, err)
			}
			u := tc.object.DeepCopy()
			h, err := Put(u, Hold{Restore: restoreName, Since: restoredAt, Reason: "why"})
			if err != nil {
				t.Fatal(err)
			}
			if ptr.Deref(h.Paused, "-") != ptr.Deref(tc.want, "-") || h.Pinned != tc.pinned || !strings.Contains(h.Reason, "another mark") {
				t.Errorf("%s\ngot %+v", tc.reason, h)
			}
			if _, pinned := (xp.Instance{Unstructured: u}).UpdatePolicy(); pinned != tc.pinned {
				t.Errorf("%s\nhas an update policy: %v", tc.reason, pinned)
			}
			off := tc.object.DeepCopy()
			if err := RemoveBackedUpHold(off); err != nil || xp.Annotation(off, xp.AnnotationPaused) != xp.Annotation(tc.object, xp.AnnotationPaused) {
				t.Errorf("%s\nthe own pause must stay: %v", tc.reason, err)
			}
		})
	}
}

// An object with a copied mark does not wait without a message.
func TestNextOfCopiedMarks(t *testing.T) {
	child := xptest.XR("child")
	mr := xptest.MR("b")
	x := xptest.XR("x", xptest.Refs(child, mr))
	of := xptest.ControlledBy(x)
	parent, revision := held(x, xptest.SeenPaused()), xptest.Revision(xptest.RevisionName, x)
	copied := []xptest.Option{of, markOf(parent), xptest.Reconciled()}
	runPlans(t, map[string]planCase{
		"Composed": {
			reason: "An unpaused object is reconciled in spite of its copied mark.", ref: xp.RefTo(x),
			snapshot: snapshot(parent, revision, xptest.With(child, copied...), xptest.With(mr, copied...)),
			want:     outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 2, Total: 2},
		},
		"Paused": {
			reason: "The message names the paused object and the next step.", ref: xp.RefTo(x),
			snapshot: snapshot(parent, revision, xptest.With(child, append(copied, xptest.Annotated(xp.AnnotationPaused, "true"))...), xptest.With(mr, copied...)),
			want: outcome{Adopted: 1, Total: 2, Waiting: []string{
				"XOrder child: cannot use the annotation velero.crossplane.x-k8s.io/hold of XOrder child: it is that of another object: this plugin did not write " +
					"it on this object, or another writer has changed it since; it is ignored. If this plugin wrote it in another cluster, or before its key was " +
					"lost, run: velero-plugin-for-crossplane release --trust-marks child; if not, remove the annotation [MarkForged]",
			}},
		},
	})
}
