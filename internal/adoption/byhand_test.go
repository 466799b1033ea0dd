package adoption

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// heldForManual returns u with manual release, after its controller has reported the pause.
func heldForManual(u *unstructured.Unstructured) *unstructured.Unstructured {
	return heldFor(u, Hold{ByHand: true}, xptest.SeenPaused())
}

// With manual release an object gets as far as it can, and is not released.
func TestNextOfManualRelease(t *testing.T) {
	x := xptest.XR("x")
	child := xptest.XR("child", xptest.ControlledBy(x))
	bucket := xptest.MR("b", xptest.ControlledBy(x))
	well := xptest.With(bucket, xptest.Reconciled())
	composes := func(u ...*unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.XR("x", xptest.Refs(u...))
	}
	claim := xptest.Claim("o", xptest.OfXR(x))
	claimed := xptest.XR("x", xptest.ClaimedBy(claim))
	fresh := xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "new", xptest.Field(map[string]any{"region": "eu"}, "spec", "forProvider"))
	revision := xptest.Revision(xptest.RevisionName, x)
	let := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		p, _ := Unverified.Consent(u)

		return xptest.Merge(u, p)
	}
	const run = "; run: velero-plugin-for-crossplane release --restore " + restoreName + " [AwaitingUser]"
	ready := func(name string) string {
		return name + ": it waits for nothing but a user who releases it" + run
	}
	type want struct {
		Step, Target string
		Waiting      []string
		Ready        bool
	}
	waits := func(s string) want { return want{Waiting: []string{s}, Ready: true} }
	cases := map[string]struct {
		reason   string
		snapshot *Snapshot
		of       *unstructured.Unstructured
		want     want
	}{
		"XR": {reason: "All composed resources exist.", snapshot: snapshot(heldForManual(composes(bucket)), well, revision), of: x, want: waits(ready("XOrder x"))},
		"Missing": {
			reason: "The XR waits for the missing resource and is not ready.", snapshot: snapshot(heldForManual(composes(bucket)), revision), of: x,
			want: want{Waiting: []string{"Bucket b: it is not in the cluster. Restore it; or, if its external resource is gone too, remove it from the resourceRefs of XOrder x, and Crossplane composes another [NotInCluster]"}},
		},
		"Unseen": {
			reason: "Crossplane must have seen the resource.", of: x, snapshot: snapshot(heldFor(composes(), Hold{ByHand: true}), revision),
			want: want{Waiting: []string{"XOrder x: Crossplane has not reported yet that it is paused [AwaitingPauseReport]"}},
		},
		"HeldBucket": {
			reason: "The XR of a held and ready MR waits only for the user.", snapshot: snapshot(heldForManual(composes(bucket)), heldForManual(bucket), revision), of: x,
			want: waits(ready("Bucket b")),
		},
		"HeldXR": {
			reason: "A composed XR reports its own readiness.", snapshot: snapshot(heldForManual(composes(child)), heldForManual(child), revision), of: x,
			want: waits("XOrder child: this composed XR stays held until a user releases it" + run),
		},
		"HeldAndMissing": {
			reason: "A composed resource that waits for something else is not ready.", snapshot: snapshot(heldForManual(composes(bucket, child)), heldForManual(bucket), revision), of: x,
			want: want{Waiting: []string{
				ready("Bucket b"), "XOrder child: it is not in the cluster. Restore it; or, if its external resource is gone too, remove it from the resourceRefs of XOrder x, and Crossplane composes another [NotInCluster]",
			}},
		},
		"MR":    {reason: "An MR that no XR composes waits only for the user.", snapshot: snapshot(heldForManual(xptest.MR("b"))), of: bucket, want: waits(ready("Bucket b"))},
		"Fresh": {reason: "The provider would create the external resource.", snapshot: snapshot(heldForManual(fresh)), of: fresh, want: waits(ready("Bucket new"))},
		"Claim": {reason: "A claim has the plan of its XR.", snapshot: snapshot(heldForManual(claim), heldForManual(claimed), revision), of: claim, want: waits(ready("XOrder x"))},
		"ClaimWithoutXR": {
			reason: "Crossplane would create an XR.", snapshot: snapshot(heldForManual(xptest.Claim("o"))), of: claim, want: waits(ready("OrderClaim team-a/o")),
		},
		"ClaimOfLiveXR": {
			reason: "An XR from before the restore does not release its claim.", snapshot: snapshot(heldForManual(claim), claimed), of: x, want: waits(ready("OrderClaim team-a/o")),
		},
		"Observing": {
			reason: "Observing needs no consent of the user.", snapshot: snapshot(heldFor(xptest.MR("b"), Hold{ByHand: true, Observes: true}, xptest.SeenPaused())), of: bucket,
			want: want{Step: "let its provider observe it", Target: "Bucket b"},
		},
		"Observed": {
			reason: "Changes to the external resource need the consent of the user.", of: bucket, want: waits(ready("Bucket b")),
			snapshot: snapshot(heldFor(xptest.MR("b"), Hold{ByHand: true, Observes: true}, unpaused(), xptest.Reconciled(), settling(noon.Add(-settleTime), false))),
		},
		"LetGo": {reason: "After the consent the XR continues as usual.", snapshot: snapshot(let(heldForManual(composes(bucket))), well, revision), of: x, want: want{Step: stepUnpause, Target: "XOrder x"}},
		"LetGoMR": {
			reason: "After the consent an MR continues as usual.", snapshot: snapshot(let(heldForManual(xptest.MR("b")))), of: bucket, want: want{Step: "give its own settings back", Target: "Bucket b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Next(tc.snapshot, xp.RefTo(tc.of))
			got := want{Step: p.Step, Waiting: reason.Strings(p.Waiting), Ready: p.Ready}
			if p.Target != nil {
				got.Target = xp.String(p.Target)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || !p.Failed.IsZero() || p.Done || len(p.Also) > 0 || !p.Quarantine.IsZero() {
				t.Errorf("%s\n-want, +got:\n%s%+v", tc.reason, diff, p)
			}
		})
	}
}

// A user's consent leaves an ordinary hold, and a quarantine needs no second consent.
func TestPutForManualRelease(t *testing.T) {
	own := xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "false"), xptest.Policy("Automatic"))
	cases := map[string]struct {
		reason string
		of     Hold
		want   Hold
		says   string
	}{
		"ByHand": {
			reason: "The mark must show that only a user releases the object.", of: Hold{ByHand: true}, want: Hold{ByHand: true},
			says: "release --restore " + restoreName,
		},
		"Reason": {
			reason: "The mark also gives the reason why the MR is held.", of: Hold{ByHand: true, Reason: ReasonStatus}, want: Hold{ByHand: true}, says: "until its status is restored [AwaitingRestore]; a user releases it",
		},
		"Identity": {
			reason: "A reason without a next step gets the next step for a user.", of: Hold{ByHand: true, Reason: "it has no name"}, want: Hold{ByHand: true},
			says: "it has no name; a user releases it",
		},
		"Quarantine": {reason: "One consent is enough.", of: Hold{ByHand: true, Quarantine: true}, want: Hold{Quarantine: true}, says: reasonQuarantine},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := heldFor(own, tc.of)
			h, err := HoldOf(u)
			if err != nil || h.ByHand != tc.want.ByHand || h.Quarantine != tc.want.Quarantine || !strings.Contains(h.Reason, tc.says) {
				t.Fatalf("%s\ngot %+v, %v", tc.reason, h, err)
			}
			if _, next := WhyNotAdopted(u); !strings.Contains(next, "release --restore "+restoreName) {
				t.Errorf("The next step must be the release command; got %q", next)
			}
			p, ok := Unverified.Consent(u)
			if !ok {
				t.Fatal("the hold must wait for the user's consent")
			}
			after, ordinary := xptest.Merge(u, p), heldFor(own, Hold{})
			for _, u := range []*unstructured.Unstructured{after, ordinary} {
				h, _ := HoldOf(u)
				h.Reason = ""
				if diff := cmp.Diff(Hold{}, Hold{ByHand: h.ByHand, Quarantine: h.Quarantine}); diff != "" || !xp.IsPaused(u) {
					t.Errorf("%s", diff)
				}
			}
			if h, _ := HoldOf(after); !strings.HasSuffix(h.Reason, "release x [AwaitingAdoption]") {
				t.Errorf("the reason must have the next step; got %q", h.Reason)
			}
			if _, ok := Unverified.Consent(after); ok {
				t.Error("a second consent must change nothing")
			}
		})
	}
}

// The time limit of an adoption starts with the first poll, from signed marks only. A user who can
// create an object with the label of the restore must not be able to start it again.
func TestRestoredAt(t *testing.T) {
	mark := func(h Hold) xptest.Option {
		return func(u *unstructured.Unstructured) {
			h.Restore = restoreName
			b := key.mark(xp.RefTo(u), &h)
			xptest.Annotated(AnnotationHold, b)(u)
		}
	}
	const since, polled, later = "2026-01-02T03:00:00Z", "2026-01-02T03:04:05Z", "2026-01-02T04:00:00Z"
	young := xptest.XR("young", xptest.Field(later, "metadata", "creationTimestamp"))
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		want    string
	}{
		"Nothing": {reason: "Without a hold there is nothing to wait for.", objects: []*unstructured.Unstructured{young}},
		"Polled": {
			reason:  "Only the first poll counts, and later objects don't count.",
			objects: []*unstructured.Unstructured{young, xptest.XR("a", mark(Hold{Since: since, Polled: polled})), xptest.XR("b", mark(Hold{Since: since, Polled: later}))},
			want:    polled,
		},
		"FirstPoll": {
			reason: "Without a mark from an earlier poll this is the first one.", objects: []*unstructured.Unstructured{young, xptest.XR("a", mark(Hold{Since: since}))},
			want: noon.UTC().Format(time.RFC3339),
		},
		"MRs": {
			reason: "MRs get no reports, so their marks never record a poll.", objects: []*unstructured.Unstructured{young, xptest.MR("b", mark(Hold{Since: since}))}, want: since,
		},
		"Forged": {
			reason: "A mark without the plugin's signature proves nothing.",
			objects: []*unstructured.Unstructured{
				xptest.MR("b", mark(Hold{Since: since})), xptest.MR("c", xptest.Annotated(AnnotationHold, `{"since":"2026-01-02T05:00:00Z","polled":"2026-01-02T05:00:00Z"}`)),
			},
			want: since,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := NewSnapshot(key)
			w.SetTime(noon)
			got := ""
			if at := withRestored(w, tc.objects...).RestoredAt(); !at.IsZero() {
				got = at.UTC().Format(time.RFC3339)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
