package adoption

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	wellBoth  = `{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Synced","status":"True"}]}}`
	wellReady = `{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Synced","status":"False","reason":"ReconcileError","message":"no credentials"}]}}`
	unready   = `{"status":{"conditions":[{"type":"Ready","status":"False","message":"it starts"},{"type":"Synced","status":"True"}]}}`
	pausedNow = `{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Synced","status":"False","reason":"ReconcilePaused"}]}}`
)

// An XR whose status functions read gets it back before Crossplane reconciles it.
func TestNextWaitsForStatus(t *testing.T) {
	x := xptest.XR("x")
	revision := xptest.Revision(xptest.RevisionName, x)
	address := xptest.JSON(`{"status":{"address":"a","zones":null}}`)
	on := heldFor(x, Hold{Status: []string{"address", "zones"}}, xptest.SeenPaused())
	const missing = " did not come back. Write it with kubectl edit --subresource=status, or, if nothing reads it, release this: " +
		"velero-plugin-for-crossplane release --force x [StatusMissing]"
	ownPause := heldFor(xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "true")), Hold{Status: []string{"address"}})
	mr := heldFor(xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true")), Hold{Status: []string{"atProvider"}})
	runPlans(t, map[string]planCase{
		"Both": {
			reason: "A function would read less than it has written.", snapshot: snapshot(on, revision), ref: xp.RefTo(x),
			want: outcome{Waiting: []string{"XOrder x: status.address, status.zones" + missing}},
		},
		"One": {
			reason: "Every field counts.", snapshot: snapshot(xptest.With(on, address), revision), ref: xp.RefTo(x),
			want: outcome{Waiting: []string{"XOrder x: status.zones" + missing}},
		},
		"Back": {
			reason: "Every field is back.", snapshot: snapshot(xptest.With(on, address, xptest.JSON(`{"status":{"zones":[]}}`)), revision), ref: xp.RefTo(x),
			want: outcome{Step: stepUnpause, Target: "XOrder x"},
		},
		"Unseen": {
			reason: "A restored status does not prove that Crossplane has seen the pause.", ref: xp.RefTo(x), snapshot: snapshot(heldFor(x, Hold{Status: []string{"address"}}, address, xptest.JSON(
				`{"status":{"conditions":[{"type":"Synced","status":"True"}]}}`)), revision),
			want: outcome{Moving: true, Waiting: []string{"XOrder x: Crossplane has not reported yet that it is paused [AwaitingPauseReport]"}},
		},
		"UnseenSince": {
			reason: "A condition that came back with the status describes the backup.", ref: xp.RefTo(x),
			snapshot: snapshot(heldFor(x, Hold{Status: []string{"address"}}, xptest.SeenPaused(), xptest.OfGeneration(7), address, xptest.Generation(1)), revision),
			want:     outcome{Moving: true, Waiting: []string{"XOrder x: Crossplane has not reported yet that it is paused [AwaitingPauseReport]"}},
		},
		"Unpaused": {
			reason: "Functions own the status after the unpause.", snapshot: snapshot(xptest.With(on, unpaused(), xptest.Reconciled()), revision), ref: xp.RefTo(x),
			want: outcome{Step: stepRelease, Target: "XOrder x"},
		},
		"OwnPause": {
			reason: "The status must be back when the user lifts the pause.", snapshot: snapshot(ownPause), ref: xp.RefTo(x),
			want: outcome{Waiting: []string{"XOrder x: status.address" + missing}},
		},
		"OwnPauseBack": {
			reason: "The status is back.", snapshot: snapshot(xptest.With(ownPause, address)), ref: xp.RefTo(x), want: outcome{Step: stepRelease, Target: "XOrder x"},
		},
		"MR": {
			reason: "An MR that no provider observes has no other source of its status.", snapshot: snapshot(mr), ref: xp.RefTo(mr), want: outcome{Waiting: []string{"Bucket b: status.atProvider" + strings.Replace(missing, "--force x", "--force b", 1)}},
		},
		"MRBack": {
			reason: "The status is back.", snapshot: snapshot(xptest.With(mr, xptest.JSON(`{"status":{"atProvider":{}}}`))), ref: xp.RefTo(mr),
			want: outcome{Step: stepOwn, Target: "Bucket b", Moving: true},
		},
	})
}

// The annotation that makes Velero restore the status is removed with the hold.
func TestStatusRequestIsRemoved(t *testing.T) {
	for name, own := range map[string]*unstructured.Unstructured{
		"None": xptest.XR("x"), "Their no": xptest.XR("x", xptest.Annotated(xp.AnnotationRestoreStatus, "false")),
		"Their yes": xptest.XRV2("x", xptest.Annotated(xp.AnnotationRestoreStatus, "true"), xptest.Annotated("theirs", "kept")),
	} {
		status, none := Hold{Status: []string{"address"}}, Hold{}
		on := heldFor(own, status)
		for times, u := range map[string]*unstructured.Unstructured{"once": on, "again": heldFor(on, status), "again without": heldFor(on, none)} {
			h, err := HoldOf(u)
			if err != nil || h == nil {
				t.Fatal(h, err)
			}
			if times != "again without" && u.GetAnnotations()[xp.AnnotationRestoreStatus] != "true" {
				t.Errorf("%s, %s: the annotation for Velero is missing", name, times)
			}
			if diff := cmp.Diff(asStored(own), asStored(xptest.Merge(u, releasePatch(u, h)))); diff != "" {
				t.Errorf("%s, %s: returned by the release: -own, +now:\n%s", name, times, diff)
			}
			if err := RemoveBackedUpHold(u); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(asStored(own), asStored(u)); diff != "" {
				t.Errorf("%s, %s: returned by RemoveBackedUpHold: -own, +now:\n%s", name, times, diff)
			}
		}
	}
}

// An XR is unpaused when its composed resources have the conditions of the backup, no more.
func TestNextWaitsForConditions(t *testing.T) {
	x := xptest.XR("x")
	revision := xptest.Revision(xptest.RevisionName, x)
	mr := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR("b", append([]xptest.Option{xptest.ControlledBy(x)}, o...)...)
	}
	// composing returns a held XR whose backup has the conditions of its composed resources.
	composing := func(was ...*unstructured.Unstructured) *unstructured.Unstructured {
		xr := xptest.XR("x", xptest.Refs(was...))
		xp.SetSavedConditions(xr, was)

		return held(xr, xptest.SeenPaused())
	}
	child := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.XR("c", append([]xptest.Option{xptest.ControlledBy(x)}, o...)...)
	}
	cache := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("example.org/v1", "Cache", "", "c", append([]xptest.Option{xptest.ControlledBy(x)}, o...)...)
	}
	usage := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object(xp.GroupProtection+"/v1beta1", "ClusterUsage", "", "u", append([]xptest.Option{xptest.ControlledBy(x)}, o...)...)
	}
	is := xptest.JSON
	paused := xptest.Annotated(xp.AnnotationPaused, "true")
	unpauses := outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1}
	waits := func(moving bool, why string) outcome {
		return outcome{Total: 1, Moving: moving, Waiting: []string{why}}
	}
	short := composing(mr(is(wellBoth)))
	short = xptest.With(short, xptest.Annotated(AnnotationHold, withoutConditions(t, short)))
	for name, tc := range map[string]struct {
		reason string
		xr     *unstructured.Unstructured
		now    *unstructured.Unstructured
		want   outcome
	}{
		"Well":       {"The MR has the conditions of the backup.", composing(mr(is(wellBoth))), mr(is(wellBoth)), unpauses},
		"Unobserved": {"A function would find no condition of the MR.", composing(mr(is(wellBoth))), mr(), waits(true, unobserved)},
		"SaysPaused": {"The provider has not observed the MR since the pause.", composing(mr(is(wellBoth))), mr(is(pausedNow)), waits(true, unobserved)},
		"Fails": {
			"The MR was reconciled in the backup and fails now.", composing(mr(is(wellBoth))), mr(is(wellReady)), waits(false, "Bucket b: its provider can't reconcile it: no credentials [ProviderFailing]"),
		},
		"Unready": {
			"A function that waits for a ready MR would leave out later resources.", composing(mr(is(wellBoth))), mr(is(unready)),
			waits(true, "Bucket b: it was Ready in the backup, and is not yet: it starts [AwaitingConditions]"),
		},
		"FailedBefore":    {"The MR failed in the backup too.", composing(mr(is(wellReady))), mr(is(wellReady)), unpauses},
		"FailedAndBetter": {"The MR is in a better state than in the backup.", composing(mr(is(wellReady))), mr(is(wellBoth)), unpauses},
		"FailedLost": {
			"The Ready condition that functions read must come back.", composing(mr(is(wellReady))), mr(), waits(true, "Bucket b: it was Ready in the backup, and is not yet [AwaitingConditions]"),
		},
		"UnreadyBefore":     {"The MR was not ready in the backup either.", composing(mr(is(unready))), mr(is(unready)), unpauses},
		"NothingBefore":     {"The MR had no working provider in the backup.", composing(mr()), mr(), unpauses},
		"Paused":            {"A pause of the user is no failure.", composing(mr(paused, is(pausedNow))), mr(paused, is(pausedNow)), unpauses},
		"PausedUnready":     {"A paused MR that was ready must be ready again.", composing(mr(paused, is(pausedNow))), mr(paused), waits(true, "Bucket b: it was Ready in the backup, and is not yet [AwaitingConditions]")},
		"Unrecorded":        {"Without recorded conditions every MR must be reconciled.", short, mr(is(wellReady)), waits(false, "Bucket b: its provider can't reconcile it: no credentials [ProviderFailing]")},
		"UnrecordedUnready": {"The plan does not wait for a condition that was not recorded.", short, mr(is(unready)), unpauses},
		"Child":             {"The same rules apply to a composed XR.", composing(child(is(wellBoth))), child(is(wellBoth)), unpauses},
		"ChildUnready": {
			"An adopted composed XR must be ready again.", composing(child(is(wellBoth))), child(is(unready)), waits(true, "XOrder c: it was Ready in the backup, and is not yet: it starts [AwaitingConditions]"),
		},
		"ChildUnsynced": {
			"An adopted composed XR must be synced again.", composing(child(is(wellBoth))), child(is(wellReady)), waits(true, "XOrder c: it was Synced in the backup, and is not yet: no credentials [AwaitingConditions]"),
		},
		"ChildHeld":    {"A composed XR must be adopted first.", composing(child(is(wellBoth))), held(child(), is(wellBoth)), waits(true, "XOrder c: this composed XR is not adopted yet [AwaitingComposedXR]")},
		"ChildFailed":  {"The composed XR failed in the backup too.", composing(child(is(wellReady))), child(is(wellReady)), unpauses},
		"Other":        {"Functions read the Ready condition of any resource.", composing(cache(is(wellBoth))), cache(), waits(true, "Cache c: it was Ready in the backup, and is not yet [AwaitingConditions]")},
		"OtherReady":   {"Only the Ready condition of other resources counts.", composing(cache(is(wellBoth))), cache(is(wellReady)), unpauses},
		"OtherNothing": {"Many resources have no conditions.", composing(cache()), cache(), unpauses},
		"Usage":        {"Crossplane reconciles a Usage only with webhooks enabled, so the plan does not wait for it.", composing(usage(is(wellBoth))), usage(), unpauses},
	} {
		t.Run(name, func(t *testing.T) {
			runPlans(t, map[string]planCase{"Plan": {reason: tc.reason, snapshot: snapshot(tc.xr, tc.now, revision), ref: xp.RefTo(x), want: tc.want}})
		})
	}
}

// withoutConditions returns the mark of an XR from a backup without this plugin.
func withoutConditions(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	xr := xptest.With(u, xptest.Without("metadata", xp.FieldConditions))
	if _, err := Put(xr, Hold{}); err != nil {
		t.Fatal(err)
	}

	return xr.GetAnnotations()[AnnotationHold]
}
