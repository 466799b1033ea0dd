package adoption

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// heldForManual returns u with manual release, after its controller has reported the pause.
func heldForManual(u *unstructured.Unstructured) *unstructured.Unstructured {
	return heldFor(u, hold.Hold{ByHand: true}, xptest.SeenPaused())
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
	revision := xptest.Revision(xptest.RevisionName, x)
	let := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		p, _ := hold.Unverified.Consent(u)

		return xptest.Merge(u, p)
	}
	runPlans(t, x, map[string]planCase{
		"XR": {reason: "All composed resources exist.", want: "1/1; ready; waits: XOrder x AwaitingUser", snapshot: snapshot(heldForManual(composes(bucket)), well, revision)},
		"HeldBucket": {
			reason: "The XR of a held and ready MR waits only for the user.", want: "0/1; ready; waits: Bucket b AwaitingUser",
			snapshot: snapshot(heldForManual(composes(bucket)), heldForManual(bucket), revision),
		},
		"HeldXR": {
			reason: "A composed XR reports its own readiness.", want: "0/1; ready; waits: XOrder child AwaitingUser",
			snapshot: snapshot(heldForManual(composes(child)), heldForManual(child), revision),
		},
		"HeldAndMissing": {
			reason: "A composed resource that waits for something else is not ready.", want: "0/2; waits: Bucket b AwaitingUser, XOrder child NotInCluster",
			snapshot: snapshot(heldForManual(composes(bucket, child)), heldForManual(bucket), revision),
		},
		"MR": {reason: "An MR that no XR composes waits only for the user.", of: bucket, want: "ready; waits: Bucket b AwaitingUser", snapshot: snapshot(heldForManual(xptest.MR("b")))},
		"Claim": {
			reason: "A claim has the plan of its XR.", of: claim, want: "ready; waits: XOrder x AwaitingUser", snapshot: snapshot(heldForManual(claim), heldForManual(claimed), revision),
		},
		"ClaimOfLiveXR": {
			reason: "An XR from before the restore does not release its claim.", want: "ready; waits: OrderClaim team-a/o AwaitingUser", snapshot: snapshot(heldForManual(claim), claimed),
		},
		"Observing": {
			reason: "Observing needs no consent of the user.", of: bucket, want: "moving; observe Bucket b",
			snapshot: snapshot(heldFor(xptest.MR("b"), hold.Hold{ByHand: true, Observes: true}, xptest.SeenPaused())),
		},
		"Observed": {
			reason: "Changes to the external resource need the consent of the user.", of: bucket, want: "ready; waits: Bucket b AwaitingUser",
			snapshot: snapshot(heldFor(xptest.MR("b"), hold.Hold{ByHand: true, Observes: true}, xptest.Unpaused(), xptest.Reconciled(), settling(noon.Add(-settleTime), false))),
		},
		"LetGo": {reason: "After the consent the XR continues as usual.", want: "1/1; unpause XOrder x", snapshot: snapshot(let(heldForManual(composes(bucket))), well, revision)},
	})
}

func TestWhyNotAdoptedNamesTheRelease(t *testing.T) {
	for name, of := range map[string]hold.Hold{"ByHand": {ByHand: true}, "Quarantine": {ByHand: true, Quarantine: true}} {
		if _, next := WhyNotAdopted(heldFor(xptest.XR("x"), of)); !strings.Contains(next, "release --restore "+restoreName) {
			t.Errorf("%s: the next step must be the release command; got %q", name, next)
		}
	}
}

// The time limit of an adoption starts with the first poll, from signed marks only. A user who can
// create an object with the label of the restore must not be able to start it again.
func TestRestoredAt(t *testing.T) {
	mark := func(h hold.Hold) xptest.Option {
		return func(u *unstructured.Unstructured) {
			h.Restore = restoreName
			*u = *xptest.Merge(u, key.MarkPatch(u, &h))
		}
	}
	const since, polled, later = "2026-01-02T03:00:00Z", "2026-01-02T03:04:05Z", "2026-01-02T04:00:00Z"
	young := xptest.XR("young", xptest.Field(later, "metadata", "creationTimestamp"))
	xptest.Run(t, map[string]xptest.Row[[]*unstructured.Unstructured, string]{
		"Nothing": {Reason: "Without a hold there is nothing to wait for.", In: []*unstructured.Unstructured{young}},
		"Polled": {
			Reason: "Only the first poll counts, and later objects don't count.",
			In:     []*unstructured.Unstructured{young, xptest.XR("a", mark(hold.Hold{Since: since, Polled: polled})), xptest.XR("b", mark(hold.Hold{Since: since, Polled: later}))}, Want: polled,
		},
		"FirstPoll": {
			Reason: "Without a mark from an earlier poll this is the first one.", In: []*unstructured.Unstructured{young, xptest.XR("a", mark(hold.Hold{Since: since}))},
			Want: noon.UTC().Format(time.RFC3339),
		},
		"MRs": {Reason: "MRs get no reports, so their marks never record a poll.", In: []*unstructured.Unstructured{young, xptest.MR("b", mark(hold.Hold{Since: since}))}, Want: since},
		"Forged": {
			Reason: "A mark without the plugin's signature proves nothing.",
			In: []*unstructured.Unstructured{
				xptest.MR("b", mark(hold.Hold{Since: since})), xptest.MR("c", xptest.Annotated(hold.Annotation, `{"since":"2026-01-02T05:00:00Z","polled":"2026-01-02T05:00:00Z"}`)),
			},
			Want: since,
		},
	}, func(objects []*unstructured.Unstructured) string {
		if at := withKey(objects...).RestoredAt(); !at.IsZero() {
			return at.UTC().Format(time.RFC3339)
		}

		return ""
	})
}

// quarantinedObject returns u in quarantine, after its controller has reported the pause.
func quarantinedObject(u *unstructured.Unstructured) *unstructured.Unstructured {
	return heldFor(u, hold.Hold{Quarantine: true}, xptest.SeenPaused())
}

// An object in quarantine and what belongs to it do not change.
func TestNextInQuarantine(t *testing.T) {
	x := xptest.XR("x")
	child := xptest.XR("child", xptest.ControlledBy(x))
	bucket := xptest.MR("b", xptest.ControlledBy(x))
	claim := xptest.Claim("o", xptest.OfXR(x))
	claimed := xptest.XR("x", xptest.ClaimedBy(claim))
	revision := xptest.Revision(xptest.RevisionName, x)
	composes := func(u ...*unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.XR("x", xptest.Refs(u...))
	}
	released := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		p, _ := hold.Unverified.Consent(u)

		return xptest.Merge(u, p)
	}
	runPlans(t, x, map[string]planCase{
		"XR": {
			reason: "Every composed resource exists, but only the user ends a quarantine.", want: "0/1; quarantined: Quarantined",
			snapshot: snapshot(quarantinedObject(composes(bucket)), xptest.With(bucket, xptest.Reconciled()), revision),
		},
		"Claim": {reason: "A claim without an XR would otherwise be released.", of: claim, want: "quarantined: Quarantined", snapshot: snapshot(quarantinedObject(xptest.Claim("o")))},
		"MR":    {reason: "An MR with a known identity stays too.", of: bucket, want: "quarantined: Quarantined", snapshot: snapshot(quarantinedObject(xptest.MR("b")))},
		"ComposedMR": {
			reason: "The XR is not released without its MR.", want: "0/1; waits: Bucket b Quarantined; quarantined: Bucket b Quarantined",
			snapshot: snapshot(held(composes(bucket), xptest.SeenPaused()), quarantinedObject(bucket), revision),
		},
		"ComposedXR": {
			reason: "The XR is not released without its nested XR.", want: "0/1; waits: XOrder child Quarantined; quarantined: XOrder child Quarantined",
			snapshot: snapshot(held(composes(child), xptest.SeenPaused()), quarantinedObject(child), revision),
		},
		"ClaimOfReleasedXR": {
			reason: "An XR that was released by name does not release its claim.", want: "waits: OrderClaim team-a/o Quarantined; quarantined: OrderClaim team-a/o Quarantined",
			snapshot: snapshot(quarantinedObject(claim), heldFor(claimed, hold.Hold{}, xptest.Unpaused(), xptest.Reconciled()), revision),
		},
		"XROfReleasedClaim": {
			reason: "A claim is not released before its XR.", of: claim, want: "quarantined: Quarantined",
			snapshot: snapshot(released(quarantinedObject(claim)), quarantinedObject(claimed), revision),
		},
		"ReleasedMR": {reason: "A released MR continues as usual.", of: bucket, want: "moving; release Bucket b", snapshot: snapshot(released(quarantinedObject(xptest.MR("b"))))},
		"ReleasedXR": {reason: "A released XR passes through all checks.", want: "unpause XOrder x", snapshot: snapshot(released(quarantinedObject(composes())), revision)},
	})
}

func TestConsentInASnapshot(t *testing.T) {
	u := quarantinedObject(xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "false"), xptest.Policy("Automatic")))
	p, _ := hold.Unverified.Consent(u)
	w := snapshot(u)
	w.Consent(xp.RefTo(u))
	xptest.Same(t, xptest.With(xptest.Merge(u, p), xptest.Without("metadata", "resourceVersion")), w.Get(xp.RefTo(u)), "the Snapshot must have the patched object")
}
