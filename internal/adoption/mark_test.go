package adoption

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var key = Key(strings.Repeat("k", KeySize))

// signed returns u with a signed mark, in its own namespace.
func signed(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	u = held(u)
	if err := key.Sign(u, u.GetNamespace()); err != nil {
		panic(err) // The test is wrong.
	}

	return xptest.With(u, o...)
}

// markOf is the option that writes the mark of u on another object.
func markOf(u *unstructured.Unstructured) xptest.Option {
	return xptest.Annotated(AnnotationHold, xp.Annotation(u, AnnotationHold))
}

func TestKeyHoldOf(t *testing.T) {
	x := xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b")))
	genuine := signed(x)
	mark := xp.Annotation(genuine, AnnotationHold)
	mapped := held(x)
	if err := key.Sign(mapped, "team-b"); err != nil {
		t.Fatal(err)
	}
	other := held(x)
	if err := Key(strings.Repeat("o", KeySize)).Sign(other, x.GetNamespace()); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		held   bool
		forged bool
	}{
		"Genuine":     {reason: "A mark with the plugin's signature is valid.", object: genuine, held: true},
		"Unsigned":    {reason: "Any user can write a mark.", object: held(x), forged: true},
		"OtherKey":    {reason: "The plugin of another cluster has another key.", object: other, forged: true},
		"OtherName":   {reason: "A mark is valid for one object, even if a Composition copies an XR's annotations.", object: xptest.XRV2("y", markOf(genuine)), forged: true},
		"OtherKind":   {reason: "A claim can have the name of its XR.", object: xptest.Claim("x", markOf(genuine)), forged: true},
		"OtherPlace":  {reason: "Names are unique only within a namespace.", object: xptest.XRV2("x", xptest.In("team-b"), markOf(genuine)), forged: true},
		"Mapped":      {reason: "A mark is valid in the namespace that the restore maps to.", object: xptest.XRV2("x", xptest.In("team-b"), markOf(mapped)), held: true},
		"MappedFrom":  {reason: "A mark is valid only in the mapped namespace.", object: mapped, forged: true},
		"Changed":     {reason: "Every byte of a mark is signed.", object: xptest.With(x, xptest.Annotated(AnnotationHold, strings.Replace(mark, "monday", "sunday", 1))), forged: true},
		"Appended":    {reason: "JSON can repeat a field, and the last one counts.", object: xptest.With(x, xptest.Annotated(AnnotationHold, strings.TrimSuffix(mark, "}")+`,"paused":"true"}`)), forged: true},
		"EmptyMAC":    {reason: "An empty signature counts as none.", object: xptest.With(x, xptest.Annotated(AnnotationHold, `{"restore":"velero/monday","mac":""}`)), forged: true},
		"NewVersion":  {reason: "The served version does not change the signature.", object: xptest.With(genuine, xptest.JSON(`{"apiVersion":"example.org/v9"}`)), held: true},
		"LineFeeds":   {reason: "Different objects never have the same signed text.", object: xptest.XRV2("x", xptest.JSON(`{"kind":"Order\nteam-a"}`), markOf(genuine)), forged: true},
		"Explained":   {reason: "The plugin signs the explanations that it writes.", object: xptest.Merge(genuine, must(Stopped(key, genuine, "why")).Patch), held: true},
		"Unpaused":    {reason: "The plugin also signs that it unpaused the object.", object: xptest.Merge(genuine, key.Unpause(genuine, must(HoldOf(genuine)), noon)), held: true},
		"NotReadable": {reason: "An unreadable mark is not reported as forged.", object: xptest.With(x, xptest.Annotated(AnnotationHold, "?"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, err := key.HoldOf(tc.object)
			if diff := cmp.Diff([]bool{tc.held, tc.forged}, []bool{h != nil, errors.Is(err, ErrForged)}); diff != "" {
				t.Errorf("%s\nerror %v; held, forged: -want, +got:\n%s", tc.reason, err, diff)
			}
			if p := Next(withKey(tc.object), xp.RefTo(tc.object)); tc.forged && (!strings.Contains(p.Failed.String(), ErrForged.Error()) || p.Patch != nil || len(p.Also) > 0) {
				t.Errorf("%s\nThe Plan must name the cause and change nothing: %+v", tc.reason, p)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // The test is wrong.
	}

	return v
}

// withKey returns a Snapshot of restored objects that accepts only signed marks.
func withKey(objects ...*unstructured.Unstructured) *Snapshot {
	w := NewSnapshot(key)
	w.SetTime(noon)

	return withRestored(w, objects...)
}

// The health script of example/gitops/argocd searches a mark for these.
func TestMarkHasWhatArgoCDReads(t *testing.T) {
	mark := liveKey.mark(xp.RefTo(xptest.XR("x")), &Hold{Reason: "why", Freed: true})
	for _, want := range []string{`"reason":"why"`, `"freed":true`} {
		if !strings.Contains(mark, want) {
			t.Errorf("the mark must have %s: %s", want, mark)
		}
	}
}

func TestNewKey(t *testing.T) {
	if _, err := NewKey(make([]byte, KeySize-1)); err == nil {
		t.Error("a short key must be refused")
	}
	must(NewKey(make([]byte, KeySize)))
}

// A mark is signed again only if it was signed: else a forged mark would become genuine.
func TestForgedMarksAreNotSigned(t *testing.T) {
	forged := held(xptest.XRV2("x"), xptest.JSON(`{"metadata":{"annotations":{"`+AnnotationHold+`":"{\"quarantine\":true}"}}}`))
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
	if err := w.Forged(); len(err) != 1 || !errors.Is(err[0], ErrForged) {
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

		return xptest.With(xr, xptest.Annotated(AnnotationHold, mark), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Labelled(xp.LabelRestore, "monday"))
	}
	for name, tc := range map[string]struct {
		xr, target *unstructured.Unstructured
	}{
		"Namespaced":     {xptest.XRV2("x"), quota},
		"ListedToo":      {xptest.XRV2("x", xptest.Refs(quota)), quota},
		"ThroughAClaim":  {xptest.XR("x"), crd},
		"LegacyListsToo": {xptest.XR("x", xptest.Refs(crd)), crd},
	} {
		for _, k := range []Key{key, Unverified} {
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

// An XR can list any number of kinds, and each costs a request per poll.
func TestPutRefusesTooManyKinds(t *testing.T) {
	var composed []*unstructured.Unstructured
	for n := range MaxKinds + 1 {
		composed = append(composed, xptest.Object("example.org/v1", fmt.Sprint("Kind", n), xptest.Namespace, "o"))
	}
	if _, err := Put(xptest.XRV2("x", xptest.Refs(composed...)), Hold{}); err == nil || !strings.Contains(err.Error(), "cannot put a hold on Order team-a/x") {
		t.Errorf("got %v", err)
	}
	if _, err := Put(xptest.XRV2("x", xptest.Refs(composed[1:]...)), Hold{}); err != nil {
		t.Error(err)
	}
}

// A user who can write an object can write a mark.
func TestMarkWithBadValues(t *testing.T) {
	for restore, possible := range map[string]bool{
		"velero/nightly": true, "velero/nightly-2026.01": true, "": true, "nightly": false, "velero/": false, "/nightly": false, "velero/a/b": false, "velero/-rf": false,
		"velero/--all": false, "velero/$(touch pwned)": false, "velero/a\nb": false, "velero/\x1b]0;pwned\x07": false, "../velero/nightly": false, "velero/\u202ea": false,
	} {
		b := must(json.Marshal(Hold{Restore: restore, Reason: "r"}))
		h, err := HoldOf(xptest.XR("x", xptest.Annotated(AnnotationHold, string(b))))
		switch {
		case possible && (err != nil || h == nil || h.Restore != restore):
			t.Errorf("%q is a possible name of a Restore: %v, %v", restore, h, err)
		case !possible && (err == nil || !strings.Contains(err.Error(), "this plugin has not written it")):
			t.Errorf("%q is no possible name of a Restore: %v, %v", restore, h, err)
		}
	}
}

// copied returns u held as a copy of a live object.
func copied(u *unstructured.Unstructured) *unstructured.Unstructured {
	return withMark(u, Hold{Restore: restoreName, Since: restoredAt, Clone: "Bucket team-a/b", Reason: "it is a copy"})
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

// An original that is restored in place of its copy is not a copy.
func TestPutOfAnOriginal(t *testing.T) {
	original := copied(xptest.XRV2("x"))
	if h, err := Put(original, Hold{Restore: restoreName, Since: restoredAt}); err != nil || h.Clone != "" || h.Reason != reasonRestored {
		t.Errorf("a new restore must replace the copy's hold; got %+v, %v", h, err)
	}
}

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
			h := must(Put(u, Hold{Restore: restoreName, Since: restoredAt, Reason: "why"}))
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
