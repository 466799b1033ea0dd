package hold

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
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
			object: xptest.XR("x", xptest.Refs(bucket), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Policy("Manual"), marker(Annotation, Hold{
				Restore: "velero/sunday", Pinned: true, Paused: ptr.To("false"), UpdatePolicy: ptr.To("Automatic"), Refs: []xp.Ref{xp.RefTo(gone)},
			})),
			want: want{Hold: hold(func(h *Hold) { h.Paused, h.UpdatePolicy, h.Refs = ptr.To("false"), ptr.To("Automatic"), refs }), Paused: "true", Policy: "Manual"},
		},
		"ComposedWhileHeld": {
			reason: "An XR that got its first revision while held must be pinned like any other.",
			object: xptest.XR("x", xptest.Refs(bucket), xptest.Policy("Automatic"), marker(Annotation, Hold{UpdatePolicy: ptr.To("Automatic")})),
			want:   want{Hold: hold(func(h *Hold) { h.UpdatePolicy, h.Refs = ptr.To("Automatic"), refs }), Paused: "true", Policy: "Manual"},
		},
		"ForgedMarker": {
			reason: "A tenant's mark affects only the tenant's own settings, never the safety of the restore.",
			object: xptest.XR("x", xptest.Refs(bucket), marker(Annotation, Hold{Restore: "velero/theirs", Since: "never", Reason: "none", Refs: []xp.Ref{}})),
			want:   want{Hold: hold(func(h *Hold) { h.Refs = refs }), Paused: "true", Policy: "Manual"},
		},
		"UnreadableMarker": {
			reason: "An object with an unreadable mark must come back held, with a message.", object: xptest.XR("x", xptest.Annotated(Annotation, "?")),
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
			xptest.Same(t, tc.want, got, tc.reason, cmpopts.IgnoreFields(Hold{}, "Of", "Composition", "Revision"))
			if err != nil {
				return
			}
			read, err := Of(tc.object)
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
	h := xptest.Value(Of(xptest.XRV2("x", xptest.Annotated(Annotation, marker))))
	for _, r := range append(h.Refs, h.Inputs[0].Ref(), *h.Owner) {
		if r.Namespace != xptest.Namespace {
			t.Errorf("%s is not in the XR's namespace", r)
		}
	}
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
			h := xptest.Value(Put(tc.xr, Hold{Restore: restoreName, Since: restoredAt}))
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

func TestPutRefusesWhatCantObserve(t *testing.T) {
	odd := xptest.MR("b", xptest.Field("x", "spec"))
	if _, err := Put(odd, Hold{Observes: true}); err == nil || !strings.HasPrefix(err.Error(), "cannot make Bucket b observe only: ") {
		t.Errorf("got error %v", err)
	}
}

// A tenant's mark affects only its own object.
func TestPutOverForgedMarks(t *testing.T) {
	forged := xptest.Annotated(Annotation, `{"observes":true,"managementPolicies":["*"],"paused":"false","status":["spec"],"restoreStatus":"x","identity":"named"}`)
	h, err := Put(xptest.MR("b", xptest.Without("metadata", "annotations"), forged), Hold{Restore: restoreName, Since: restoredAt, Identity: xp.Unknown})
	want := &Hold{Of: "Bucket.cloud.example.org/b", Restore: restoreName, Since: restoredAt, Reason: reasonRestored, Identity: xp.Unknown, Paused: ptr.To("false")}
	if diff := cmp.Diff(want, h); err != nil || diff != "" {
		t.Errorf("error %v, -want, +got:\n%s", err, diff)
	}
}
