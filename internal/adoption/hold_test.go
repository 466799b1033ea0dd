package adoption

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	restoreName = "velero/monday"
	restoredAt  = "2026-01-02T03:04:05Z"
)

func TestPut(t *testing.T) {
	type want struct {
		Hold   *Hold
		Paused string
		Policy string
		Err    string
	}
	bucket := xptest.MR("b")
	gone := xptest.MR("gone")
	hold := func(change func(*Hold)) *Hold {
		h := &Hold{Restore: restoreName, Since: restoredAt, Reason: reasonRestored, Pinned: true}
		change(h)

		return h
	}
	refs := []xp.Ref{xp.RefTo(bucket)}
	marker := func(key string, h Hold) xptest.Option {
		b, _ := json.Marshal(h)

		return xptest.Annotated(key, string(b))
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   want
	}{
		"V1XR": {
			reason: "A v1 XR is paused and pinned, with its references in the mark.", object: xptest.XR("x", xptest.Refs(bucket)),
			want: want{Hold: hold(func(h *Hold) { h.Refs = refs }), Paused: "true", Policy: "Manual"},
		},
		"NeverComposed": {
			reason: "Without a revision there is nothing to pin, so the policy does not change.", object: xptest.XR("x", xptest.NeverComposed(), xptest.Policy("Automatic")),
			want: want{Hold: hold(func(h *Hold) { h.Pinned, h.UpdatePolicy = false, ptr.To("Automatic") }), Paused: "true", Policy: "Automatic"},
		},
		"WithoutDangling": {
			reason: "Adoption does not wait for a reference that was dangling in the backup.",
			object: xptest.XR("x", xptest.Refs(gone, bucket), func(u *unstructured.Unstructured) { xp.SetUnresolvedRefs(u, []xp.Ref{xp.RefTo(gone)}) }),
			want:   want{Hold: hold(func(h *Hold) { h.Refs = refs }), Paused: "true", Policy: "Manual"},
		},
		"BackedUpWhileHeld": {
			reason: "The mark keeps the user's settings, and the XR's current list replaces the references in it.",
			object: xptest.XR("x", xptest.Refs(bucket), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Policy("Manual"), marker(AnnotationHold, Hold{
				Restore: "velero/sunday", Pinned: true, Paused: ptr.To("false"), UpdatePolicy: ptr.To("Automatic"), Refs: []xp.Ref{xp.RefTo(gone)},
			})),
			want: want{
				Hold:   hold(func(h *Hold) { h.Paused, h.UpdatePolicy, h.Refs = ptr.To("false"), ptr.To("Automatic"), refs }),
				Paused: "true", Policy: "Manual",
			},
		},
		"ComposedWhileHeld": {
			reason: "An XR that got its first revision while held must be pinned like any other.",
			object: xptest.XR("x", xptest.Refs(bucket), xptest.Policy("Automatic"), marker(AnnotationHold, Hold{UpdatePolicy: ptr.To("Automatic")})),
			want:   want{Hold: hold(func(h *Hold) { h.UpdatePolicy, h.Refs = ptr.To("Automatic"), refs }), Paused: "true", Policy: "Manual"},
		},
		"ForgedMarker": {
			reason: "A tenant's mark affects only the tenant's own settings, never the safety of the restore.",
			object: xptest.XR("x", xptest.Refs(bucket), marker(AnnotationHold, Hold{Restore: "velero/theirs", Since: "never", Reason: "none", Refs: []xp.Ref{}})),
			want:   want{Hold: hold(func(h *Hold) { h.Refs = refs }), Paused: "true", Policy: "Manual"},
		},
		"UnreadableMarker": {
			reason: "An object with an unreadable mark must come back held, with a message.", object: xptest.XR("x", xptest.Annotated(AnnotationHold, "?")),
			want: want{Hold: hold(func(h *Hold) {
				h.Reason += ". It had another mark that could not be read, and lost it: cannot read the annotation velero.crossplane.x-k8s.io/hold of XOrder x: " +
					"invalid character '?' looking for beginning of value"
			}), Paused: "true", Policy: "Manual"},
		},
		"UnreadableRefs": {
			reason: "Unreadable references can't be checked later.", object: xptest.XR("x", xptest.JSON(`{"spec":{"resourceRefs":{}}}`)),
			want: want{Err: "cannot read the resourceRefs of XOrder x: they are a map[string]interface {}, not a list"},
		},
		"UnreadableDangling": {
			reason: "Without a readable list of dangling references adoption waits for all of them.",
			object: xptest.XR("x", xptest.Refs(bucket), xptest.Field(map[string]any{}, "metadata", xp.FieldUnresolvedRefs)),
			want:   want{Hold: hold(func(h *Hold) { h.Refs = refs }), Paused: "true", Policy: "Manual"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, err := Put(tc.object, Hold{Restore: restoreName, Since: restoredAt})
			got := want{Hold: h, Paused: tc.object.GetAnnotations()[xp.AnnotationPaused]}
			got.Policy, _ = xp.Instance{Unstructured: tc.object}.UpdatePolicy()
			if err != nil {
				got = want{Err: err.Error()}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Hold{}, "Of", "Composition", "Revision")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if err != nil {
				return
			}
			read, err := HoldOf(tc.object)
			if diff := cmp.Diff(h, read); err != nil || diff != "" {
				t.Errorf("The mark must hold the fields of the hold: error %v, -put, +read:\n%s", err, diff)
			}
		})
	}
}

// A tenant who can write a namespaced XR can write its mark, and a Plan reads and names the objects
// in a mark.
func TestHoldOfReachesNoOtherNamespace(t *testing.T) {
	const marker = `{"resourceRefs":[{"apiVersion":"v1","kind":"Secret","namespace":"team-b","name":"theirs"},{"apiVersion":"v1","kind":"Node","name":"n"}],` +
		`"inputs":[{"namespace":"team-b","name":"theirs"}],` +
		`"owner":{"apiVersion":"example.org/v1alpha1","kind":"Order","namespace":"team-b","name":"theirs"}}`
	h := must(HoldOf(xptest.XRV2("x", xptest.Annotated(AnnotationHold, marker))))
	for _, r := range append(h.Refs, h.Inputs[0].Ref(), *h.Owner) {
		if r.Namespace != xptest.Namespace {
			t.Errorf("%s is not in the XR's namespace", r)
		}
	}
}

// ReleasePatch reverts Put for every combination of user settings, however often the object is
// backed up during its hold.
func TestReleaseIsTheInverseOfPut(t *testing.T) {
	builders := map[string]func(string, ...xptest.Option) *unstructured.Unstructured{
		"v1": xptest.XR, "v2": xptest.XRV2, "claim": xptest.Claim,
	}
	pauses := map[string]xptest.Option{
		"none": nil, "true": xptest.Annotated(xp.AnnotationPaused, "true"), "false": xptest.Annotated(xp.AnnotationPaused, "false"),
		"empty": xptest.Annotated(xp.AnnotationPaused, ""), "odd": xptest.Annotated(xp.AnnotationPaused, `"\u2028<>`),
	}
	policies := map[string]xptest.Option{"none": nil, "manual": xptest.Policy("Manual"), "automatic": xptest.Policy("Automatic"), "empty": xptest.Policy("")}
	composed := map[string]xptest.Option{"composed": xptest.Refs(xptest.MR("b")), "chosen": xptest.Annotated("theirs", "kept"), "never": xptest.NeverComposed()}
	for kind, build := range builders {
		for p, pause := range pauses {
			for q, policy := range policies {
				for c, how := range composed {
					options := slices.DeleteFunc([]xptest.Option{how, pause, policy}, func(o xptest.Option) bool { return o == nil })
					own := build("x", options...)
					t.Run(fmt.Sprint(kind, "/pause:", p, "/policy:", q, "/", c), func(t *testing.T) {
						for times := 1; times <= 3; times++ {
							checkGivesBack(t, own, times)
						}
					})
				}
			}
		}
	}
}

func checkGivesBack(t *testing.T, own *unstructured.Unstructured, times int) {
	t.Helper()
	held := own.DeepCopy()
	for range times {
		must(Put(held, Hold{Restore: restoreName, Since: restoredAt}))
	}
	if !xp.IsPaused(held) {
		t.Fatal("a held object is not paused")
	}
	h := must(HoldOf(held))
	for name, from := range map[string]*unstructured.Unstructured{"held": held, "unpaused": xptest.Merge(held, Unverified.Unpause(held, h, noon))} {
		got := xptest.Merge(from, ReleasePatch(from, h))
		if diff := cmp.Diff(asStored(own), asStored(got)); diff != "" {
			t.Errorf("returned while %s: -own, +got:\n%s", name, diff)
		}
	}
	err := RemoveBackedUpHold(held)
	if diff := cmp.Diff(asStored(own), asStored(held)); err != nil || diff != "" {
		t.Errorf("returned for a backup: error %v, -own, +got:\n%s", err, diff)
	}
}

// asStored returns u as the API server does: without empty annotations, and with a new
// resourceVersion.
func asStored(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetResourceVersion("")
	if len(u.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
	}
	u.SetGeneration(0)

	return u
}

func TestPatchesAreRefusedAfterAChange(t *testing.T) {
	u := xptest.XR("x", xptest.Version("41"))
	h := must(Put(u, Hold{Restore: restoreName, Since: restoredAt}))
	stopped := must(Stopped(Unverified, u, "why"))
	for name, patch := range map[string]map[string]any{"unpause": Unverified.Unpause(u, h, noon), "giveBack": ReleasePatch(u, h), "Stopped": stopped.Patch} {
		if got, _, _ := unstructured.NestedString(patch, "metadata", "resourceVersion"); got != "41" {
			t.Errorf("%s must carry the observed resourceVersion, so that the API server refuses it after another change; "+
				"got %q", name, got)
		}
	}
}

func TestStopped(t *testing.T) {
	u := xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b")), xptest.Annotated(xp.AnnotationPaused, "false"))
	h := must(Put(u, Hold{Restore: restoreName, Since: restoredAt}))
	notice := must(Stopped(Unverified, u, `it waits for "b" <&>`))
	got, err := HoldOf(xptest.Merge(u, notice.Patch))
	h.Reason, h.LastReported = `it waits for "b" <&>`, stopped
	if diff := cmp.Diff(h, got); err != nil || diff != "" {
		t.Errorf("Only the reason and the last report may change: error %v, -want, +got:\n%s", err, diff)
	}
	if _, err := Stopped(Unverified, xptest.XR("x"), "why"); err == nil {
		t.Error("an object that is not held has no hold to explain")
	}
}

// Any text as a mark is read or refused, and Next does not panic.
func FuzzHoldOf(f *testing.F) {
	for _, s := range []string{
		`{"restore":"a/b","since":"","reason":"","paused":"true","pinned":true,"compositionUpdatePolicy":"Manual",` +
			`"resourceRefs":[{"apiVersion":"v1","kind":"K","name":"n"}]}`,
		`{"identity":"unknown","observes":true,"managementPolicies":["*"],"status":["a",""],"restoreStatus":"x","composedConditions":["?","","Ready,Synced"]}`,
		`{"resourceRefs":[{"apiVersion":"v1","kind":"K","name":"n"}],"composedConditions":[]}`, `{"status":[null],"composedConditions":[7]}`,
		`{}`, `null`, `[]`, `""`, ``, `{"resourceRefs":[null,{}]}`, `{"paused":1}`, `{"Pinned":true}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, marker string) {
		for _, u := range []*unstructured.Unstructured{
			xptest.XR("x", xptest.Annotated(AnnotationHold, marker), xptest.SeenPaused(), xptest.Annotated(xp.AnnotationPaused, "true")),
			xptest.XRV2("x", xptest.Annotated(AnnotationHold, marker), xptest.Reconciled()),
			xptest.Claim("o", xptest.Annotated(AnnotationHold, marker), xptest.OfXR(xptest.XR("x"))),
			xptest.MR("b", xptest.Annotated(AnnotationHold, marker), xptest.PublishesTo("infra", "s")),
		} {
			h, err := HoldOf(u)
			if (h == nil) == (err == nil) {
				t.Errorf("got hold %v and error %v", h, err)
			}
			if h != nil {
				b, _ := json.Marshal(h)
				again := &Hold{}
				if err := json.Unmarshal(b, again); err != nil {
					t.Errorf("cannot read %s again: %v", b, err)
				}
			}
			w := NewSnapshot(Unverified)
			w.Add(u)
			_ = w.Subjects()
			_ = w.Needs([]xp.Ref{xp.RefTo(u)})
			if plan := Next(w, xp.RefTo(u)); plan.Done {
				t.Errorf("a marked object must not count as adopted: %+v", plan)
			}
			if _, err := Put(u, Hold{Restore: restoreName, Since: restoredAt}); err == nil && !xp.IsPaused(u) {
				t.Error("a held object is not paused")
			}
		}
	})
}

// Applying a manifest again during a hold removes the pin. Without the pin a changed Composition
// would take effect before the adoption is proven.
func TestUnpauseIsPinned(t *testing.T) {
	manual, automatic := xp.UpdateManual, "Automatic"
	cases := map[string]struct {
		reason string
		xr     *unstructured.Unstructured
		during *string
		want   string
	}{
		"Modern":  {reason: "The applied manifest sets Automatic.", xr: xptest.XRV2("x"), during: &automatic, want: manual},
		"Legacy":  {reason: "An XR with a claim has the field in another place.", xr: xptest.XR("x"), during: &automatic, want: manual},
		"Removed": {reason: "No policy means Automatic.", xr: xptest.XRV2("x"), want: manual},
		"Kept":    {reason: "No other writer has changed the policy.", xr: xptest.XRV2("x"), during: &manual, want: manual},
		"Without": {reason: "Without a revision there was nothing to pin.", xr: xptest.XRV2("x", xptest.NeverComposed()), during: &automatic, want: automatic},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := must(Put(tc.xr, Hold{Restore: restoreName, Since: restoredAt}))
			if tc.during == nil {
				xp.Instance{Unstructured: tc.xr}.RemoveUpdatePolicy()
			} else if err := (xp.Instance{Unstructured: tc.xr}).SetUpdatePolicy(*tc.during); err != nil {
				t.Fatal(err)
			}
			free := xptest.Merge(tc.xr, Unverified.Unpause(tc.xr, h, noon))
			if got, _ := (xp.Instance{Unstructured: free}).UpdatePolicy(); got != tc.want || xp.IsPaused(free) {
				t.Errorf("%s\ngot policy %q, paused %v, want %q", tc.reason, got, xp.IsPaused(free), tc.want)
			}
		})
	}
}
