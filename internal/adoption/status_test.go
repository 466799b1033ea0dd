package adoption

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
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
	on := heldFor(x, hold.Hold{Status: []string{"address", "zones"}}, xptest.SeenPaused())
	ownPause := heldFor(xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "true")), hold.Hold{Status: []string{"address"}})
	mr := heldFor(xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true")), hold.Hold{Status: []string{"atProvider"}})
	runPlans(t, x, map[string]planCase{
		"Both": {
			reason: "A function would read less than it has written.", want: "waits: XOrder x StatusMissing", says: "status.address, status.zones", snapshot: snapshot(on, revision),
		},
		"One":  {reason: "Every field counts.", want: "waits: XOrder x StatusMissing", says: "XOrder x: status.zones", snapshot: snapshot(xptest.With(on, address), revision)},
		"Back": {reason: "Every field is back.", want: "unpause XOrder x", snapshot: snapshot(xptest.With(on, address, xptest.JSON(`{"status":{"zones":[]}}`)), revision)},
		"Unseen": {
			reason: "A restored status does not prove that Crossplane has seen the pause.", want: "moving; waits: XOrder x AwaitingPauseReport",
			snapshot: snapshot(heldFor(x, hold.Hold{Status: []string{"address"}}, address, xptest.JSON(`{"status":{"conditions":[{"type":"Synced","status":"True"}]}}`)), revision),
		},
		"UnseenSince": {
			reason: "A condition that came back with the status describes the backup.", want: "moving; waits: XOrder x AwaitingPauseReport",
			snapshot: snapshot(heldFor(x, hold.Hold{Status: []string{"address"}}, xptest.SeenPaused(), xptest.OfGeneration(7), address, xptest.Generation(1)), revision),
		},
		"Unpaused": {reason: "Functions own the status after the unpause.", want: "release XOrder x", snapshot: snapshot(xptest.With(on, xptest.Unpaused(), xptest.Reconciled()), revision)},
		"OwnPause": {reason: "The status must be back when the user lifts the pause.", want: "waits: XOrder x StatusMissing", says: "status.address did", snapshot: snapshot(ownPause)},
		"MR": {
			reason: "An MR that no provider observes has no other source of its status.", of: mr, want: "waits: Bucket b StatusMissing", says: "status.atProvider", snapshot: snapshot(mr),
		},
	})
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
	short := composing(mr(is(wellBoth)))
	short = xptest.With(short, markOf(withMark(xptest.With(short, xptest.Without("metadata", xp.FieldConditions)), hold.Hold{})))
	cases := map[string]planCase{}
	for name, tc := range map[string]struct {
		reason  string
		xr, now *unstructured.Unstructured
		want    string
	}{
		"Well":          {"The MR has the conditions of the backup.", composing(mr(is(wellBoth))), mr(is(wellBoth)), "1/1; unpause XOrder x"},
		"Unobserved":    {"A function would find no condition of the MR.", composing(mr(is(wellBoth))), mr(), "0/1; moving; waits: Bucket b AwaitingProvider"},
		"SaysPaused":    {"The provider has not observed the MR since the pause.", composing(mr(is(wellBoth))), mr(is(pausedNow)), "0/1; moving; waits: Bucket b AwaitingProvider"},
		"Fails":         {"The MR was reconciled in the backup and fails now.", composing(mr(is(wellBoth))), mr(is(wellReady)), "0/1; waits: Bucket b ProviderFailing"},
		"Unready":       {"A function that waits for a ready MR would leave out later resources.", composing(mr(is(wellBoth))), mr(is(unready)), "0/1; moving; waits: Bucket b AwaitingConditions"},
		"FailedBefore":  {"The MR failed in the backup too.", composing(mr(is(wellReady))), mr(is(wellReady)), "1/1; unpause XOrder x"},
		"FailedLost":    {"The Ready condition that functions read must come back.", composing(mr(is(wellReady))), mr(), "0/1; moving; waits: Bucket b AwaitingConditions"},
		"NothingBefore": {"The MR had no working provider in the backup.", composing(mr()), mr(), "1/1; unpause XOrder x"},
		"Paused":        {"A pause of the user is no failure.", composing(mr(paused, is(pausedNow))), mr(paused, is(pausedNow)), "1/1; unpause XOrder x"},
		"PausedUnready": {"A paused MR that was ready must be ready again.", composing(mr(paused, is(pausedNow))), mr(paused), "0/1; moving; waits: Bucket b AwaitingConditions"},
		"Unrecorded":    {"Without recorded conditions every MR must be reconciled.", short, mr(is(wellReady)), "0/1; waits: Bucket b ProviderFailing"},
		"Child":         {"The same rules apply to a composed XR.", composing(child(is(wellBoth))), child(is(wellBoth)), "1/1; unpause XOrder x"},
		"ChildUnready":  {"An adopted composed XR must be ready again.", composing(child(is(wellBoth))), child(is(unready)), "0/1; moving; waits: XOrder c AwaitingConditions"},
		"ChildUnsynced": {"An adopted composed XR must be synced again.", composing(child(is(wellBoth))), child(is(wellReady)), "0/1; moving; waits: XOrder c AwaitingConditions"},
		"ChildHeld":     {"A composed XR must be adopted first.", composing(child(is(wellBoth))), held(child(), is(wellBoth)), "0/1; moving; waits: XOrder c AwaitingComposedXR"},
		"Other":         {"Functions read the Ready condition of any resource.", composing(cache(is(wellBoth))), cache(), "0/1; moving; waits: Cache c AwaitingConditions"},
		"OtherReady":    {"Only the Ready condition of other resources counts.", composing(cache(is(wellBoth))), cache(is(wellReady)), "1/1; unpause XOrder x"},
		"OtherNothing":  {"Many resources have no conditions.", composing(cache()), cache(), "1/1; unpause XOrder x"},
		"Usage":         {"Crossplane reconciles a Usage only with webhooks enabled, so the plan does not wait for it.", composing(usage(is(wellBoth))), usage(), "1/1; unpause XOrder x"},
	} {
		cases[name] = planCase{reason: tc.reason, want: tc.want, snapshot: snapshot(tc.xr, tc.now, revision)}
	}
	runPlans(t, x, cases)
}

// A provider with an old crossplane-runtime ignores the pause, and no hold works. Only the MR shows
// it, whatever clocks the backed-up cluster and the provider have.
func TestNextOfProvidersThatIgnoreThePause(t *testing.T) {
	for clock, noted := range map[string]string{"InStep": restoredAt, "Ahead": "2026-01-02T03:09:05Z", "Behind": "2026-01-02T02:59:05Z"} {
		t.Run(clock, func(t *testing.T) { testIgnoredPause(t, noted) })
	}
}

// testIgnoredPause tests MRs with notes of a provider from the given time.
func testIgnoredPause(t *testing.T, noted string) {
	t.Helper()
	created := xptest.Field(restoredAt, "metadata", "creationTimestamp")
	synced := func(reason, since string) xptest.Option {
		return xptest.JSON(`{"status":{"conditions":[{"type":"Synced","status":"True","reason":"` + reason + `","lastTransitionTime":"` + since + `"}]}}`)
	}
	publishing := xptest.MR("b", xptest.PublishesTo("infra", "s"), created)
	backedUp := func(o ...xptest.Option) *unstructured.Unstructured { return awaiting(xptest.With(publishing, o...)) }
	of := func(h hold.Hold) hold.Hold { h.Restore, h.Since = restoreName, restoredAt; return h }
	secret := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(publishing))
	reconciled := "the provider of cloud.example.org reconciled it at " + noted
	creating := "the provider of cloud.example.org began to create an external resource at " + noted
	const before = "2025-12-31T00:00:00Z"
	cases := map[string]struct {
		reason string
		mr     *unstructured.Unstructured
		others []*unstructured.Unstructured
		// failed, waits and warns are prefixes of the messages; "" for none.
		failed, waits, warns string
	}{
		"Heeds":      {reason: "The provider reports the pause.", mr: awaiting(publishing, synced(xp.ReasonReconcilePaused, noted)), others: []*unstructured.Unstructured{secret}},
		"AsBackedUp": {reason: "The status is from the backup.", mr: backedUp(synced("ReconcileSuccess", noted)), others: []*unstructured.Unstructured{secret}},
		"StatusNotRestored": {
			reason: "The status of the backup is not restored.", others: []*unstructured.Unstructured{secret},
			mr: xptest.With(backedUp(synced("ReconcileSuccess", noted)), xptest.Without("status")),
		},
		"Reconciled": {
			reason: "The provider may have published before the Secret was back.", mr: awaiting(publishing, synced("ReconcileSuccess", noted)), others: []*unstructured.Unstructured{secret},
			warns: reconciled,
		},
		"ReconciledInTwoSteps": {
			reason: "If the mark is removed after the pause, the first step already carries the warning.", warns: reconciled, others: []*unstructured.Unstructured{secret},
			mr: awaiting(publishing, synced("ReconcileSuccess", noted), xptest.JSON(`{"metadata":{"managedFields":[{"manager":"velero-server","operation":"Update",`+
				`"apiVersion":"cloud.example.org/v1alpha1","time":"2026-12-31T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}}`)),
		},
		"ReconciledUnnamed": {
			reason: "The MR was to create nothing before the user's check.", waits: reconciled,
			mr: heldFor(unnamed(created), of(hold.Hold{Identity: xp.Unknown}), synced("ReconcileSuccess", noted)),
		},
		"ReconciledObserving": {
			reason: "The provider was to observe the MR only after the unpause.", waits: reconciled,
			mr: heldFor(xptest.MR("b", created), of(hold.Hold{Observes: true}), synced("ReconcileSuccess", noted)),
		},
		"Creating": {
			reason: "The provider may have created a second external resource.", failed: creating,
			mr: heldFor(unnamed(created), of(hold.Hold{Identity: xp.Unknown}), xptest.Annotated(xp.AnnotationCreatePending, noted)),
		},
		"Created": {
			reason: "The provider has created an external resource.", failed: creating, others: []*unstructured.Unstructured{secret},
			mr: awaiting(publishing, xptest.Annotated(xp.AnnotationCreatePending, before), xptest.Annotated(xp.AnnotationCreateSucceeded, noted)),
		},
		"CreatedAgain": {
			reason: "The provider had created the external resource before the backup, and creates another.", failed: creating, others: []*unstructured.Unstructured{secret},
			mr: xptest.With(backedUp(xptest.Annotated(xp.AnnotationCreateSucceeded, before)), xptest.Annotated(xp.AnnotationCreateSucceeded, noted)),
		},
		"Corrected": {
			reason: "A user has found that nothing was being created.", others: []*unstructured.Unstructured{secret},
			mr: xptest.With(backedUp(xptest.Annotated(xp.AnnotationCreatePending, noted)), xptest.Without("metadata", "annotations", xp.AnnotationCreatePending)),
		},
		"OfEarlierVersion": {
			reason: "The mark does not have what the provider had noted.", others: []*unstructured.Unstructured{secret},
			mr: withMark(publishing, hold.Hold{Restore: restoreName, Since: restoredAt, Secret: true}, xptest.Annotated(xp.AnnotationCreateSucceeded, noted)),
		},
		"LetGo": {reason: "A user has released the MR already.", mr: awaiting(publishing, synced("ReconcileSuccess", noted), xptest.Unpaused()), others: []*unstructured.Unstructured{secret}},
		"OwnPause": {
			reason: "The user may add and remove their own pause.", others: []*unstructured.Unstructured{secret},
			mr: awaiting(xptest.With(publishing, xptest.Annotated(xp.AnnotationPaused, "true")), synced("ReconcileSuccess", noted)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Next(snapshot(append(tc.others, tc.mr)...), xp.RefTo(tc.mr))
			waits := ""
			if len(p.Waiting) > 0 {
				waits = p.Waiting[0].String()
			}
			for _, said := range []struct{ got, begin, want string }{
				{p.Failed.String(), "Bucket b stays held: ", tc.failed}, {waits, "Bucket b: ", tc.waits}, {p.Warning.String(), "", tc.warns},
			} {
				if said.want == "" && said.got != "" || said.want != "" && !strings.HasPrefix(said.got, said.begin+said.want) {
					t.Errorf("%s\ngot %q, want %q", tc.reason, said.got, said.want)
				}
			}
			if lifts := p.Patch != nil; lifts != (tc.failed == "" && tc.waits == "") {
				t.Errorf("%s\nhold lifted: %v", tc.reason, lifts)
			}
			if tc.failed == "" {
				return
			}
			x := held(xptest.XR("x", xptest.Refs(tc.mr)), xptest.SeenPaused())
			of := Next(snapshot(x, xptest.With(tc.mr, xptest.ControlledBy(x)), xptest.Revision(xptest.RevisionName, x)), xp.RefTo(x))
			if !strings.HasPrefix(of.Failed.String(), "XOrder x stays held: Bucket b: "+tc.failed) || of.Patch != nil {
				t.Errorf("%s\nthe XR must stay held too: got %+v", tc.reason, of)
			}
		})
	}
}

// withMark returns a held MR whose mark has no more than the given Hold.
func withMark(u *unstructured.Unstructured, h hold.Hold, o ...xptest.Option) *unstructured.Unstructured {
	u = u.DeepCopy()
	xptest.Value(hold.Put(u, h))

	return xptest.With(u, o...)
}
