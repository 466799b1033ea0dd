package hold

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A user's consent leaves an ordinary hold, and a quarantine needs no second consent.
func TestPutForManualRelease(t *testing.T) {
	own := xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "false"), xptest.Policy("Automatic"))
	for name, tc := range map[string]struct {
		of     Hold
		byHand bool
		says   string
	}{
		"ByHand":     {of: Hold{ByHand: true}, byHand: true, says: "release --restore " + restoreName},
		"Reason":     {of: Hold{ByHand: true, Reason: ReasonStatus}, byHand: true, says: "until its status is restored [AwaitingRestore]; a user releases it"},
		"Identity":   {of: Hold{ByHand: true, Reason: "it has no name"}, byHand: true, says: "it has no name; a user releases it"},
		"Quarantine": {of: Hold{ByHand: true, Quarantine: true}, says: reasonQuarantine},
	} {
		u := heldFor(own, tc.of)
		if h := xptest.Value(Of(u)); h.ByHand != tc.byHand || h.Quarantine == tc.byHand || !strings.Contains(h.Reason, tc.says) {
			t.Errorf("%s: got %+v", name, h)
		}
		p, _ := Unverified.Consent(u)
		after := xptest.Merge(u, p)
		if h := xptest.Value(Of(after)); h.ByHand || h.Quarantine || !xp.IsPaused(after) || !strings.HasSuffix(h.Reason, "release x [AwaitingAdoption]") {
			t.Errorf("%s: a consent must leave an ordinary hold; got %+v", name, h)
		}
	}
}

// The reason of each hold that a user lifts has the next step, for who reads the mark alone.
func TestWhyLeavesTheNextStepOut(t *testing.T) {
	for name, of := range map[string]Hold{"Quarantine": {Quarantine: true}, "ByHand": {ByHand: true}} {
		u := xptest.XR("x")
		of.Restore, of.Since = restoreName, restoredAt
		h := xptest.Value(Put(u, of))
		wantOnce(t, name, u, h)
	}
	u := heldLive(t, xptest.XR("x", xptest.Reconciled()))
	h := xptest.Value(Of(u))
	wantOnce(t, "ByCommand", u, h)
}

func wantOnce(t *testing.T, name string, u *unstructured.Unstructured, h *Hold) {
	t.Helper()
	next := HowToRelease(u, h)
	if why := Why(u, h); next == "" || !strings.Contains(h.Reason, next) || strings.Contains(why, "run:") || !strings.HasSuffix(why, "]") {
		t.Errorf("%s: the reason %q must be without the next step %q, and keep its code; got %q", name, h.Reason, next, why)
	}
}

// The end of a quarantine leaves an ordinary hold.
func TestConsent(t *testing.T) {
	own := xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "false"), xptest.Policy("Automatic"))
	u := heldFor(own, Hold{Quarantine: true}, xptest.SeenPaused())
	p, ok := Unverified.Consent(u)
	if !ok {
		t.Fatal("the object must be in quarantine")
	}
	ended := xptest.Merge(u, p)
	ordinary, h := xptest.Value(Of(held(own))), xptest.Value(Of(ended))
	if diff := cmp.Diff(ordinary, h, cmpopts.IgnoreFields(Hold{}, "Reason")); diff != "" || !xp.IsPaused(ended) {
		t.Errorf("-ordinary, +ended:\n%s", diff)
	}
	for name, u := range map[string]*unstructured.Unstructured{"Ended": ended, "Held": held(own), "Free": own, "Unreadable": xptest.XR("x", xptest.Annotated(Annotation, "?"))} {
		if p, ok := Unverified.Consent(u); ok || p != nil {
			t.Errorf("%s: there is no quarantine to end; got %v", name, p)
		}
	}
}

// An object in quarantine at its backup is not in quarantine in the next restore, unless that asks
// for it.
func TestPutAfterAQuarantine(t *testing.T) {
	own := xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "false"))
	again := held(heldFor(own, Hold{Quarantine: true}, xptest.SeenPaused()))
	xptest.Same(t, held(own), xptest.With(again, xptest.Without("status")), "the second restore must hold it as the first one")
}
