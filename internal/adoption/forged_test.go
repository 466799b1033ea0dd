package adoption

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestNextOfForgedMarks(t *testing.T) {
	x := xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b")))
	genuine := signed(x)
	mark := xp.Annotation(genuine, hold.Annotation)
	for name, u := range map[string]*unstructured.Unstructured{
		"Unsigned": held(x), "OtherName": xptest.XRV2("y", markOf(genuine)), "OtherKind": xptest.Claim("x", markOf(genuine)),
		"OtherPlace": xptest.XRV2("x", xptest.In("team-b"), markOf(genuine)), "EmptyMAC": xptest.With(x, xptest.Annotated(hold.Annotation, `{"restore":"velero/monday","mac":""}`)),
		"Changed": xptest.With(x, xptest.Annotated(hold.Annotation, strings.Replace(mark, "monday", "sunday", 1))),
	} {
		if p := Next(withKey(u), xp.RefTo(u)); !strings.Contains(p.Failed.String(), hold.ErrForged.Error()) || p.Patch != nil || len(p.Also) > 0 {
			t.Errorf("%s: the Plan must name the cause and change nothing: %+v", name, p)
		}
	}
}

// withKey returns a Snapshot of restored objects that accepts only signed marks.
func withKey(objects ...*unstructured.Unstructured) *Snapshot {
	w := NewSnapshot(key)
	w.SetTime(noon)

	return withRestored(w, objects...)
}

// A mark is signed again only if it was signed: else a forged mark would become genuine.
func TestForgedMarksAreNotSigned(t *testing.T) {
	forged := held(xptest.XRV2("x"), xptest.JSON(`{"metadata":{"annotations":{"`+hold.Annotation+`":"{\"quarantine\":true}"}}}`))
	if p, ok := key.Consent(forged); ok {
		t.Errorf("Consent must not sign a forged mark: %v", p)
	}
	if n, err := Stopped(key, forged, "why"); err == nil {
		t.Errorf("Stopped must not sign a forged mark: %v", n.Patch)
	}
	w := withKey(forged)
	if notices := append(HeldNotices(w, refs(forged)), Changes(w, map[xp.ID]Plan{xp.RefTo(forged).ID(): {Waiting: []reason.Message{{Text: "x"}}}}, nil)...); len(notices) > 0 {
		t.Errorf("a notice must not sign a forged mark: %v", notices)
	}
	if n, ok := w.LaterNotice(xp.RefTo(forged)); ok {
		t.Errorf("a later notice must not sign a forged mark: %v", n)
	}
	if err := w.Forged(); len(err) != 1 || !errors.Is(err[0], hold.ErrForged) {
		t.Errorf("Forged must name the object: %v", err)
	}
}

// TestForgedOwnPause has a tenant write that they had paused an XR. That makes this plugin the
// writer of owner references on what the XR lists: quotas and policies of the namespace, and
// through a claim any object of the cluster.
func TestForgedOwnPause(t *testing.T) {
	quota := xptest.Object("v1", "ResourceQuota", xptest.Namespace, "limits")
	crd := xptest.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.example.org")
	refs := func(targets ...*unstructured.Unstructured) string {
		var list []string
		for _, u := range targets {
			list = append(list, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"namespace":%q}`, u.GetAPIVersion(), u.GetKind(), u.GetName(), u.GetNamespace()))
		}

		return strings.Join(list, ",")
	}
	forged := func(xr, target *unstructured.Unstructured) *unstructured.Unstructured {
		mark := `{"restore":"velero/monday","since":"2026-01-02T03:04:05Z","reason":"r","paused":"true","resourceRefs":[` + refs(target) + `]}`

		return xptest.With(xr, xptest.Annotated(hold.Annotation, mark), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Labelled(xp.LabelRestore, "monday"))
	}
	for name, tc := range map[string]struct {
		xr, target *unstructured.Unstructured
	}{
		"Namespaced":     {xptest.XRV2("x"), quota},
		"ListedToo":      {xptest.XRV2("x", xptest.Refs(quota)), quota},
		"ThroughAClaim":  {xptest.XR("x"), crd},
		"LegacyListsToo": {xptest.XR("x", xptest.Refs(crd)), crd},
	} {
		for _, k := range []hold.Key{key, hold.Unverified} {
			xr := forged(tc.xr, tc.target)
			w := NewSnapshot(k)
			w.SetTime(noon)
			withRestored(w, xr, tc.target)
			for _, r := range append(w.Subjects(), xp.RefTo(xr)) {
				if p := Next(w, r); p.Patch != nil || len(p.Also) > 0 {
					t.Fatalf("%s, key %t: the plan must change nothing: %v %v", name, k != nil, p.Change, p.Also)
				}
			}
		}
	}
}

// What has a mark in a newer format stays held.
func TestNextOfNewer(t *testing.T) {
	for name, mark := range map[string]string{"Format": `{"format":2,"restore":"velero/monday"}`, "OtherTypes": `{"format":2,"restore":{"name":"monday"},"since":1}`} {
		u := xptest.XR("x", xptest.Annotated(hold.Annotation, mark), xptest.Annotated(xp.AnnotationPaused, "true"))
		p := Next(snapshot(u), xp.RefTo(u))
		want := "XOrder x stays held: cannot read the annotation velero.crossplane.x-k8s.io/hold of XOrder x: a newer version of this plugin has written it, in " +
			"format 2; this one reads up to 1; " + hold.HowToRead + ", and run: " + xp.ReleaseCommand(xp.RefTo(u)).String() + " [MarkNewer]"
		if p.Patch != nil || p.Failed.String() != want {
			t.Errorf("%s: got %+v", name, p)
		}
	}
	child := xptest.XR("child", xptest.Annotated(hold.Annotation, `{"format":2}`), xptest.Annotated(xp.AnnotationPaused, "true"))
	x := xptest.XR("x", xptest.Refs(child))
	p := Next(snapshot(heldFor(x, hold.Hold{}), xptest.With(child, xptest.ControlledBy(x)), xptest.Revision(xptest.RevisionName, x)), xp.RefTo(x))
	if said := strings.Join(reason.Strings(p.Waiting), "; "); !strings.Contains(said, hold.HowToRead) || p.Done {
		t.Errorf("the parent XR must wait and name the newer mark; got %+v", p)
	}
}

// copied returns u held as a copy of a live object.
func copied(u *unstructured.Unstructured) *unstructured.Unstructured {
	return withMark(u, hold.Hold{Restore: restoreName, Since: restoredAt, Clone: "Bucket team-a/b", Reason: "it is a copy"})
}

// A copy stays held even if all its composed resources exist: both would manage the same external
// resources.
func TestNextLeavesCopiesHeld(t *testing.T) {
	x := xptest.XRV2("x")
	mr := xptest.NamespacedMR("b", xptest.ControlledBy(x))
	bucket := xptest.With(mr, xptest.Reconciled())
	xr := xptest.XRV2("x", xptest.Refs(bucket), xptest.SeenPaused())
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	revision := xptest.Revision(xptest.RevisionName, x)
	runPlans(t, x, map[string]planCase{
		"XR": {reason: "A copied XR stays held even if nothing is missing.", want: "failed: Order team-a/x stays held: it is a copy", snapshot: snapshot(copied(xr), bucket, revision)},
		"Claim": {
			reason: "A copied claim stays held in any state of its XR.", of: claim, want: "failed: OrderClaim team-a/o stays held: it is a copy",
			snapshot: snapshot(copied(claim), xptest.XR("x", xptest.ClaimedBy(claim))),
		},
		"Composed": {
			reason: "An XR whose MR is held as a copy waits for nothing that could come.", want: "0/1; failed: Order team-a/x stays held: Bucket team-a/b: it is a copy",
			snapshot: snapshot(held(xr, xptest.SeenPaused()), copied(mr), revision),
		},
		"ComposedXR": {
			reason: "An XR with a nested copy waits for nothing that could come either.", want: "0/1; failed: Order team-a/x stays held: Order team-a/child: it is a copy",
			snapshot: snapshot(held(xptest.XRV2("x", xptest.Refs(xptest.XRV2("child"))), xptest.SeenPaused()), copied(xptest.XRV2("child", xptest.ControlledBy(x))), revision),
		},
		"OtherHold": {
			reason: "An MR with another reason for its hold is released, not treated as a copy.", want: "0/1; moving; release Bucket team-a/b; waits: Bucket team-a/b Releasing",
			snapshot: snapshot(held(xr, xptest.SeenPaused()), held(bucket), revision),
		},
	})
}

// An object with a copied mark does not wait without a message.
func TestNextOfCopiedMarks(t *testing.T) {
	child := xptest.XR("child")
	mr := xptest.MR("b")
	x := xptest.XR("x", xptest.Refs(child, mr))
	of := xptest.ControlledBy(x)
	parent, revision := held(x, xptest.SeenPaused()), xptest.Revision(xptest.RevisionName, x)
	copied := []xptest.Option{of, markOf(parent), xptest.Reconciled()}
	runPlans(t, x, map[string]planCase{
		"Composed": {
			reason: "An unpaused object is reconciled in spite of its copied mark.", want: "2/2; unpause XOrder x",
			snapshot: snapshot(parent, revision, xptest.With(child, copied...), xptest.With(mr, copied...)),
		},
		"Paused": {
			reason: "The message names the paused object and the next step.", want: "1/2; waits: XOrder child MarkForged",
			snapshot: snapshot(parent, revision, xptest.With(child, append(copied, xptest.Annotated(xp.AnnotationPaused, "true"))...), xptest.With(mr, copied...)),
		},
	})
}

// TestNextOfItsOwnXR plans for an object that is its own claim and XR, and for two that are each
// other's. Both must end.
func TestNextOfItsOwnXR(t *testing.T) {
	both := func(name, of string) *unstructured.Unstructured {
		ref := fmt.Sprintf(`{"apiVersion":"example.org/v1alpha1","kind":%q,"namespace":%q,"name":%q}`, xptest.ClaimKind, xptest.Namespace, of)

		return xptest.Claim(name, xptest.JSON(`{"metadata":{"finalizers":["`+xp.FinalizerClaim+`","`+xp.FinalizerComposite+`"]},"spec":{"resourceRef":`+ref+`,"claimRef":`+ref+`}}`))
	}
	onlyClaim := xptest.Claim("c", xptest.OfXR(both("a", "a")), xptest.JSON(`{"spec":{"resourceRef":{"namespace":"team-a"}}}`))
	for name, objects := range map[string][]*unstructured.Unstructured{
		"Itself":    {both("a", "a")},
		"EachOther": {both("a", "b"), both("b", "a")},
		"OfAClaim":  {held(onlyClaim), both("a", "c")},
		"Held":      {held(both("a", "a"))},
	} {
		w := withRestored(snapshot(), objects...)
		for _, r := range append(w.Subjects(), refs(objects...)...) {
			p := Next(w, r)
			if p.Patch != nil || len(p.Also) > 0 || p.Failed.IsZero() || !strings.Contains(p.Failed.String(), r.Name) {
				t.Errorf("%s: the Plan for %s must change nothing and name it: %+v", name, r, p)
			}
		}
	}
}

// A panic about one object fails the Plan of that object only.
func TestPanicsAreContained(t *testing.T) {
	missing := xptest.MR("b")
	x := held(xptest.XR("x", xptest.Refs(missing)))
	w := snapshot(x)
	w.AddUnserved(missing.GroupVersionKind().GroupKind())
	w.Definitions(func(schema.GroupKind) string { panic("a defect") })
	p := Next(w, xp.RefTo(x))
	if !strings.Contains(p.Failed.String(), "XOrder x") || !strings.Contains(p.Failed.String(), "a defect") {
		t.Errorf("got %+v", p)
	}
	if p := Next(w, xp.RefTo(xptest.XR("y"))); !strings.Contains(p.Failed.String(), "XOrder y: it was not restored") {
		t.Errorf("the plan of the next object must not fail the same way: %+v", p)
	}
}

func TestStopped(t *testing.T) {
	u := xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b")), xptest.Annotated(xp.AnnotationPaused, "false"))
	h := xptest.Value(hold.Put(u, hold.Hold{Restore: restoreName, Since: restoredAt}))
	notice := xptest.Value(Stopped(hold.Unverified, u, `it waits for "b" <&>`))
	got, err := hold.Of(xptest.Merge(u, notice.Patch))
	h.Reason, h.LastReported = `it waits for "b" <&>`, stopped
	if diff := cmp.Diff(h, got); err != nil || diff != "" {
		t.Errorf("Only the reason and the last report may change: error %v, -want, +got:\n%s", err, diff)
	}
	if _, err := Stopped(hold.Unverified, xptest.XR("x"), "why"); err == nil {
		t.Error("an object that is not held has no hold to explain")
	}
}
