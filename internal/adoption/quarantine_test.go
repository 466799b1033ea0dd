package adoption

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const inQuarantine = reasonQuarantine + "make sure that no other cluster manages the same external resources, then run: velero-plugin-for-crossplane release " +
	"--restore " + restoreName + " [Quarantined]"

// quarantinedObject returns u in quarantine, after its controller has reported the pause.
func quarantinedObject(u *unstructured.Unstructured) *unstructured.Unstructured {
	return heldFor(u, Hold{Quarantine: true}, xptest.SeenPaused())
}

// An object in quarantine and what belongs to it do not change.
func TestNextInQuarantine(t *testing.T) {
	x, modern := xptest.XR("x"), xptest.XRV2("m")
	child := xptest.XR("child", xptest.ControlledBy(x))
	bucket := xptest.MR("b", xptest.ControlledBy(x))
	fresh := xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "new", xptest.Field(map[string]any{"region": "eu"}, "spec", "forProvider"))
	claim := xptest.Claim("o", xptest.OfXR(x))
	claimed := xptest.XR("x", xptest.ClaimedBy(claim))
	revision := xptest.Revision(xptest.RevisionName, x)
	composes := func(u ...*unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.XR("x", xptest.Refs(u...))
	}
	released := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		p, _ := Unverified.Consent(u)

		return xptest.Merge(u, p)
	}
	type want struct {
		Step, Target, Quarantine string
		Waiting                  []string
		Moving, Done             bool
	}
	waits := func(name string) want {
		s := name + ": it is in quarantine; " + strings.TrimPrefix(inQuarantine, reasonQuarantine)

		return want{Quarantine: s, Waiting: []string{s}}
	}
	stays := want{Quarantine: inQuarantine}
	cases := map[string]struct {
		reason   string
		snapshot *Snapshot
		of       *unstructured.Unstructured
		want     want
	}{
		"XR":         {reason: "Every composed resource exists, but only the user ends a quarantine.", snapshot: snapshot(quarantinedObject(composes(bucket)), xptest.With(bucket, xptest.Reconciled()), revision), of: x, want: stays},
		"ModernXR":   {reason: "An XR of Crossplane v2 stays too.", snapshot: snapshot(quarantinedObject(modern), revision), of: modern, want: stays},
		"Claim":      {reason: "A claim without an XR would otherwise be released.", snapshot: snapshot(quarantinedObject(xptest.Claim("o"))), of: claim, want: stays},
		"MR":         {reason: "An MR with a known identity stays too.", snapshot: snapshot(quarantinedObject(xptest.MR("b"))), of: bucket, want: stays},
		"Fresh":      {reason: "The provider would create the external resource.", snapshot: snapshot(quarantinedObject(fresh)), of: fresh, want: stays},
		"ComposedMR": {reason: "The XR is not released without its MR.", snapshot: snapshot(held(composes(bucket), xptest.SeenPaused()), quarantinedObject(bucket), revision), of: x, want: waits("Bucket b")},
		"ComposedXR": {reason: "The XR is not released without its nested XR.", snapshot: snapshot(held(composes(child), xptest.SeenPaused()), quarantinedObject(child), revision), of: x, want: waits("XOrder child")},
		"ClaimOfLiveXR": {
			reason: "An XR from before the restore does not release its claim.", snapshot: snapshot(quarantinedObject(claim), claimed), of: x, want: waits("OrderClaim team-a/o"),
		},
		"ClaimOfReleasedXR": {
			reason: "An XR that was released by name does not release its claim.", of: x, want: waits("OrderClaim team-a/o"),
			snapshot: snapshot(quarantinedObject(claim), heldFor(claimed, Hold{}, unpaused(), xptest.Reconciled()), revision),
		},
		"XROfReleasedClaim": {reason: "A claim is not released before its XR.", snapshot: snapshot(released(quarantinedObject(claim)), quarantinedObject(claimed), revision), of: claim, want: stays},
		"ReleasedMR": {
			reason: "A released MR continues as usual.", snapshot: snapshot(released(quarantinedObject(xptest.MR("b")))), of: bucket, want: want{Step: "give its own settings back", Target: "Bucket b", Moving: true},
		},
		"ReleasedFresh": {
			reason: "The provider may now create the external resource.", snapshot: snapshot(released(quarantinedObject(fresh))), of: fresh,
			want: want{Step: "it was new when it was backed up; give its own settings back", Target: "Bucket new", Moving: true},
		},
		"ReleasedXR": {reason: "A released XR passes through all checks.", snapshot: snapshot(released(quarantinedObject(composes())), revision), of: x, want: want{Step: stepUnpause, Target: "XOrder x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Next(tc.snapshot, xp.RefTo(tc.of))
			got := want{Step: p.Step, Quarantine: p.Quarantine.String(), Waiting: reason.Strings(p.Waiting), Moving: p.Moving, Done: p.Done}
			if p.Target != nil {
				got.Target = xp.String(p.Target)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || !p.Failed.IsZero() || len(p.Also) > 0 || len(p.Pending) > 0 {
				t.Errorf("%s\n-want, +got:\n%s%+v", tc.reason, diff, p)
			}
			if notices := Changes(tc.snapshot, map[xp.ID]Plan{xp.RefTo(tc.of).ID(): p}, nil); p.Quarantine.String() == inQuarantine && len(notices) > 0 {
				t.Errorf("an object in quarantine must get no notice: %+v", notices)
			}
		})
	}
}

// The end of a quarantine leaves an ordinary hold.
func TestConsent(t *testing.T) {
	own := xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "false"), xptest.Policy("Automatic"))
	without := func(u *unstructured.Unstructured) *Hold {
		h, err := HoldOf(u)
		if err != nil || h == nil {
			t.Fatalf("got %+v, %v", h, err)
		}
		h.Reason = ""

		return h
	}
	u := quarantinedObject(own)
	p, ok := Unverified.Consent(u)
	if !ok {
		t.Fatal("the object must be in quarantine")
	}
	ended := xptest.Merge(u, p)
	if diff := cmp.Diff(without(held(own)), without(ended)); diff != "" {
		t.Errorf("-ordinary, +ended:\n%s", diff)
	}
	if !xp.IsPaused(ended) {
		t.Error("the object must stay paused")
	}
	if h, _ := HoldOf(ended); !strings.HasSuffix(h.Reason, "release x [AwaitingAdoption]") {
		t.Errorf("the reason must have the next step; got %q", h.Reason)
	}
	w := snapshot(u)
	w.Consent(xp.RefTo(u))
	if diff := cmp.Diff(xptest.With(ended, xptest.Without("metadata", "resourceVersion")), w.Get(xp.RefTo(u))); diff != "" {
		t.Errorf("-patched, +observed:\n%s", diff)
	}
	for name, u := range map[string]*unstructured.Unstructured{
		"Ended": ended, "Held": held(own), "Free": own, "Unreadable": xptest.XR("x", xptest.Annotated(AnnotationHold, "?")),
	} {
		if p, ok := Unverified.Consent(u); ok || p != nil {
			t.Errorf("%s: there is no quarantine to end; got %v", name, p)
		}
	}
}

// An object in quarantine at its backup is not in quarantine in the next restore, unless that asks
// for it.
func TestPutAfterAQuarantine(t *testing.T) {
	own := xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "false"))
	again := held(quarantinedObject(own))
	if diff := cmp.Diff(held(own), xptest.With(again, xptest.Without("status"))); diff != "" {
		t.Errorf("-first restore, +second:\n%s", diff)
	}
}

// Lifting by force ends the quarantine too, and names the same risks as without it.
func TestForceInQuarantine(t *testing.T) {
	x := xptest.XR("x")
	u := quarantinedObject(xptest.XR("x", xptest.Refs(xptest.MR("b", xptest.ControlledBy(x)))))
	f := AssessForce(snapshot(u, xptest.Revision(xptest.RevisionName, x)), xp.RefTo(x))
	if f.Patch == nil || !slices.ContainsFunc(f.Risks, func(m reason.Message) bool { return m.Code == reason.Dangling }) {
		t.Fatalf("got %+v", f)
	}
	if h, err := HoldOf(xptest.Merge(u, f.Patch)); h != nil || err != nil {
		t.Errorf("got %+v, %v", h, err)
	}
}
