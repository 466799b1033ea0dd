package hold

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestKeyHoldOf(t *testing.T) {
	x := xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b")))
	genuine := held(x)
	xptest.Must(t, key.Sign(genuine, x.GetNamespace()))
	mark := xp.Annotation(genuine, Annotation)
	mapped := held(x)
	xptest.Must(t, key.Sign(mapped, "team-b"))
	other := held(x)
	xptest.Must(t, Key(strings.Repeat("o", KeySize)).Sign(other, x.GetNamespace()))
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
		"Changed":     {reason: "Every byte of a mark is signed.", object: xptest.With(x, xptest.Annotated(Annotation, strings.Replace(mark, "monday", "sunday", 1))), forged: true},
		"Appended":    {reason: "JSON can repeat a field, and the last one counts.", object: xptest.With(x, xptest.Annotated(Annotation, strings.TrimSuffix(mark, "}")+`,"paused":"true"}`)), forged: true},
		"EmptyMAC":    {reason: "An empty signature counts as none.", object: xptest.With(x, xptest.Annotated(Annotation, `{"restore":"velero/monday","mac":""}`)), forged: true},
		"NewVersion":  {reason: "The served version does not change the signature.", object: xptest.With(genuine, xptest.JSON(`{"apiVersion":"example.org/v9"}`)), held: true},
		"LineFeeds":   {reason: "Different objects never have the same signed text.", object: xptest.XRV2("x", xptest.JSON(`{"kind":"Order\nteam-a"}`), markOf(genuine)), forged: true},
		"Explained":   {reason: "The plugin signs the explanations that it writes.", object: xptest.Merge(genuine, key.MarkPatch(genuine, xptest.Value(Of(genuine)))), held: true},
		"Unpaused":    {reason: "The plugin also signs that it unpaused the object.", object: xptest.Merge(genuine, key.Unpause(genuine, xptest.Value(Of(genuine)), noon)), held: true},
		"NotReadable": {reason: "An unreadable mark is not reported as forged.", object: xptest.With(x, xptest.Annotated(Annotation, "?"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, err := key.HoldOf(tc.object)
			xptest.Same(t, []bool{tc.held, tc.forged}, []bool{h != nil, errors.Is(err, ErrForged)}, fmt.Sprintf("%s\nerror %v; held, forged", tc.reason, err))
		})
	}
}

// The health script of example/gitops/argocd searches a mark for these.
func TestMarkHasWhatArgoCDReads(t *testing.T) {
	mark := key.mark(xp.RefTo(xptest.XR("x")), &Hold{Reason: "why", Freed: true})
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
	xptest.Value(NewKey(make([]byte, KeySize)))
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
		b := xptest.Value(json.Marshal(Hold{Restore: restore, Reason: "r"}))
		h, err := Of(xptest.XR("x", xptest.Annotated(Annotation, string(b))))
		switch {
		case possible && (err != nil || h == nil || h.Restore != restore):
			t.Errorf("%q is a possible name of a Restore: %v, %v", restore, h, err)
		case !possible && (err == nil || !strings.Contains(err.Error(), "this plugin has not written it")):
			t.Errorf("%q is no possible name of a Restore: %v, %v", restore, h, err)
		}
	}
}

// An original that is restored in place of its copy is not a copy.
func TestPutOfAnOriginal(t *testing.T) {
	original := heldFor(xptest.XRV2("x"), Hold{Clone: "Bucket team-a/b"})
	if h, err := Put(original, Hold{Restore: restoreName, Since: restoredAt}); err != nil || h.Clone != "" || h.Reason != reasonRestored {
		t.Errorf("a new restore must replace the copy's hold; got %+v, %v", h, err)
	}
}

// A Composition can copy all annotations of an XR to its composed resources, and does so while the
// XR is reconciled and still marked. A backup then has the XR's mark on its children, and in
// another cluster no key shows whose mark it is.
func TestPutTakesNoMarkOfAnother(t *testing.T) {
	xr := held(xptest.XR("x", xptest.Refs(xptest.MR("b")), xptest.Annotated(xp.AnnotationPaused, "false")), xptest.Unpaused())
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
			if _, err := Of(tc.object); !errors.Is(err, ErrForged) {
				t.Errorf("%s\na copied mark must count as forged; got %v", tc.reason, err)
			}
			u := tc.object.DeepCopy()
			h := xptest.Value(Put(u, Hold{Restore: restoreName, Since: restoredAt, Reason: "why"}))
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

func TestIsMarked(t *testing.T) {
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		want   bool
	}{
		"MR":         {held(xptest.MR("b")), true},
		"Unreadable": {xptest.MR("b", xptest.Annotated(Annotation, "?")), true},
		"ClaimsMark": {xptest.NamespacedMR("b", xptest.Annotated(Annotation, "{}")), true},
		"Free":       {xptest.MR("b"), false},
		"XR":         {held(xptest.XR("x")), false},
		"Other":      {xptest.Object("v1", "ConfigMap", "team-a", "c", xptest.Annotated(Annotation, "{}")), false},
	} {
		if got := IsMarked(tc.object); got != tc.want {
			t.Errorf("%s: only an MR with a hold counts as marked: got %v, want %v", name, got, tc.want)
		}
	}
}
