package adoption

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const stepLetGo = "give its own settings back"

// forSecret returns u held until its connection secret is restored, then changed by the options.
func forSecret(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	u = u.DeepCopy()
	if _, err := Put(u, Hold{Restore: restoreName, Since: restoredAt, Reason: ReasonSecret}); err != nil {
		panic(err) // The test is wrong.
	}

	return xptest.With(u, o...)
}

const (
	secretMissing = "its connection Secret infra/s was not restored, and another would be published without it; restore again [ConnectionSecretMissing]"
	secretLeftOut = "the restore has left out its connection Secret infra/s, and another would be published without it; restore it: " + bringSecret +
		" [ConnectionSecretMissing]"
)

// bringSecret is the command that restores a Secret which the restore left out.
const bringSecret = "velero restore create --from-backup nightly --include-namespaces infra --include-resources secrets" //nolint:gosec // It is none.

// leftOut is forSecret for a Secret in the backup that the restore's filters leave out.
func leftOut(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	if _, err := Put(u, Hold{Restore: restoreName, Since: restoredAt, Reason: ReasonSecret, Secret: true, SecretBy: bringSecret}); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

// awaiting is forSecret for a Secret in the backup.
func awaiting(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	u = u.DeepCopy()
	if _, err := Put(u, Hold{Restore: restoreName, Since: restoredAt, Reason: ReasonSecret, Secret: true, Reported: ReportedOf(u)}); err != nil {
		panic(err) // The test is wrong.
	}

	return xptest.With(u, o...)
}

// unreadable returns a Snapshot without the right to read Secrets.
func unreadable(objects ...*unstructured.Unstructured) *Snapshot {
	w := snapshot(objects...)
	w.AddUnreadable(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "forbidden")

	return w
}

// Only the XR's Secret has what a function generated, and Crossplane would publish another.
func TestNextAwaitsTheSecretOfAnXR(t *testing.T) {
	publishing := xptest.XR("x", xptest.PublishesTo("infra", "s"))
	revision, secret := xptest.Revision(xptest.RevisionName, publishing), xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(publishing))
	with := func(h Hold, o ...xptest.Option) *unstructured.Unstructured {
		u := publishing.DeepCopy()
		h.Restore, h.Since = restoreName, restoredAt
		if _, err := Put(u, h); err != nil {
			t.Fatal(err)
		}

		return xptest.With(u, append([]xptest.Option{xptest.SeenPaused()}, o...)...)
	}
	awaits, left := Hold{Secret: true}, Hold{Secret: true, SecretBy: bringSecret}
	unpauses := outcome{Step: stepUnpause, Target: "XOrder x"}
	runPlans(t, map[string]planCase{
		"Back":   {reason: "The Secret is back.", snapshot: snapshot(with(awaits), revision, secret), ref: xp.RefTo(publishing), want: unpauses},
		"Failed": {reason: "The restore failed to restore the Secret.", snapshot: snapshot(with(awaits), revision), ref: xp.RefTo(publishing), want: outcome{Waiting: []string{"XOrder x: " + secretMissing}}},
		"LeftOut": {
			reason: "The filters of the restore leave the Secret out.", snapshot: snapshot(with(left), revision), ref: xp.RefTo(publishing),
			want: outcome{Waiting: []string{"XOrder x: " + secretLeftOut}},
		},
		"NoneInTheBackup": {reason: "The backup has no Secret to wait for.", snapshot: snapshot(with(Hold{}), revision), ref: xp.RefTo(publishing), want: unpauses},
		"LetGo": {
			reason: "The XR was unpaused and has published already.", snapshot: snapshot(with(left, unpaused(), xptest.Reconciled()), revision), ref: xp.RefTo(publishing),
			want: outcome{Step: stepRelease, Target: "XOrder x"},
		},
	})
}

// Lifting by force names the Secret that is lost.
func TestForceNamesTheLostSecret(t *testing.T) {
	mr, xr := xptest.MR("b", xptest.PublishesTo("infra", "s")), xptest.XR("x", xptest.PublishesTo("infra", "s"))
	for name, u := range map[string]*unstructured.Unstructured{"MR": leftOut(mr), "XR": leftOut(xr)} {
		f := AssessForce(snapshot(u), xp.RefTo(u))
		if f.Patch == nil || !slices.ContainsFunc(f.Risks, func(risk reason.Message) bool {
			return strings.HasSuffix(risk.String(), secretLeftOut)
		}) {
			t.Errorf("%s: got risks %q", name, f.Risks)
		}
	}
}

// An MR that no XR composes has its own Plan.
func TestNextForManaged(t *testing.T) {
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"))
	local := xptest.NamespacedMR("b", xptest.PublishesTo("", "s"))
	secret := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr))
	x := xptest.XR("x", xptest.Refs(mr))
	letGo := func(target string) outcome { return outcome{Step: stepLetGo, Target: target, Moving: true} }
	runPlans(t, map[string]planCase{
		"Held": {
			reason:   "Nothing shows a Secret in the backup, so the step must not claim that it is back.",
			snapshot: snapshot(forSecret(mr)), ref: xp.RefTo(mr), want: letGo("Bucket b"),
		},
		"SecretBack": {
			reason: "The Secret of the MR is back.", snapshot: snapshot(awaiting(mr), secret), ref: xp.RefTo(mr),
			want: outcome{Step: stepOwn, Target: "Bucket b", Moving: true},
		},
		"SecretLeftOut": {
			reason: "A Secret that the filters leave out is lost too if the provider publishes another one.", snapshot: snapshot(leftOut(mr)), ref: xp.RefTo(mr),
			want: outcome{Waiting: []string{"Bucket b: " + secretLeftOut}},
		},
		"SecretLeftOutBack": {
			reason: "Another restore has restored the Secret.", snapshot: snapshot(leftOut(mr), secret), ref: xp.RefTo(mr),
			want: outcome{Step: stepOwn, Target: "Bucket b", Moving: true},
		},
		"SecretLeftOutUnreadable": {
			reason: "Without the right to read Secrets the plugin can't know that the Secret is back.", snapshot: unreadable(leftOut(mr)), ref: xp.RefTo(mr),
			want: outcome{Waiting: []string{"Bucket b: the restore has left out its connection Secret infra/s, and Secrets can't be read: forbidden. Without it another " +
				"would be published; restore it: " + bringSecret + ", and run this with the right to list Secrets [ConnectionSecretMissing]"}},
		},
		"SecretLoose": {
			reason:   "A provider takes over no uncontrolled Secret with the same data.",
			snapshot: snapshot(awaiting(mr), xptest.With(secret, xptest.Without("metadata", "ownerReferences"))), ref: xp.RefTo(mr),
			want: outcome{Step: "make Bucket b its controller again", Target: "Secret infra/s", Moving: true},
		},
		"SecretFailed": {
			reason: "Some clouds return a password only once, so one failed item must not lose it.", snapshot: snapshot(awaiting(mr)), ref: xp.RefTo(mr),
			want: outcome{Waiting: []string{"Bucket b: " + secretMissing}},
		},
		"SecretUnreadable": {
			reason: "The plan can't wait for a Secret without the right to read it.", snapshot: unreadable(awaiting(mr)), ref: xp.RefTo(mr),
			want: letGo("Bucket b"),
		},
		"SecretNotLookedFor": {
			reason: "The plan can't wait for a Secret without a lookup.", snapshot: func() *Snapshot {
				w := snapshot(awaiting(mr))
				w.WithoutSecrets()

				return w
			}(), ref: xp.RefTo(mr), want: letGo("Bucket b"),
		},
		"SecretOfPaused": {
			reason: "A paused MR of the user publishes nothing.", snapshot: snapshot(awaiting(xptest.With(mr, xptest.Annotated(xp.AnnotationPaused, "true")))),
			ref: xp.RefTo(mr), want: letGo("Bucket b"),
		},
		"SecretTooLate": {
			reason: "A user has released the MR already.", snapshot: snapshot(awaiting(mr, xptest.Annotated(xp.AnnotationPaused, "false"))), ref: xp.RefTo(mr),
			want: letGo("Bucket b"),
		},
		"Namespaced": {reason: "Crossplane v2 has namespaced MRs with the same hold.", snapshot: snapshot(forSecret(local)), ref: xp.RefTo(local), want: letGo("Bucket team-a/b")},
		"Released":   {reason: "The MR was released, or was live before the restore.", snapshot: snapshot(mr), ref: xp.RefTo(mr), want: outcome{Done: true}},
		"OwnPause": {
			reason: "A paused MR of the user is not held.", snapshot: snapshot(xptest.With(mr, xptest.Annotated(xp.AnnotationPaused, "true"))), ref: xp.RefTo(mr),
			want: outcome{Done: true},
		},
		"XRLiveAllAlong": {
			reason: "The XR of the MR has no hold, so its plan ignores the MR.", snapshot: snapshot(x, forSecret(mr, xptest.ControlledBy(x))), ref: xp.RefTo(mr),
			want: letGo("Bucket b"),
		},
		"Copy": {
			reason: "Only a user can release a copy of a live object.", snapshot: snapshot(copied(local)), ref: xp.RefTo(local),
			want: outcome{Failed: "Bucket team-a/b stays held: it is a copy"},
		},
		"Gone": {
			reason: "The plan reports an MR that did not come back.", snapshot: snapshot(), ref: xp.RefTo(mr),
			want: outcome{Failed: "Bucket b: it was not restored, or was deleted since. See the errors of the restore. " + howObserved},
		},
		"Unreadable": {
			reason:   "A user must correct a mark that can't be read.",
			snapshot: snapshot(xptest.With(mr, xptest.Annotated(AnnotationHold, "?"))), ref: xp.RefTo(mr),
			want: outcome{Failed: "cannot read the annotation velero.crossplane.x-k8s.io/hold of Bucket b: invalid character '?' looking for beginning of value; " +
				"remove the annotation, then run release, or restore again [MarkUnreadable]"},
		},
	})
}

// The Plan of a held XR releases its MRs, and unpauses the XR after that.
func TestNextReleasesComposed(t *testing.T) {
	x := xptest.XR("x")
	publishes := xptest.PublishesTo("infra", "s")
	mr, other := xptest.MR("b", xptest.ControlledBy(x), publishes), xptest.MR("c", xptest.ControlledBy(x), publishes)
	revision, secret := xptest.Revision(xptest.RevisionName, x), xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(other))
	paused := held(xptest.XR("x", xptest.Refs(mr, other)), xptest.SeenPaused())
	free := xptest.With(paused, unpaused(), xptest.Reconciled())
	ownPause := held(xptest.XR("x", xptest.Refs(mr), xptest.Annotated(xp.AnnotationPaused, "true")))
	const waitB, waitC = "Bucket b: it gets its own settings back [Releasing]", "Bucket c: it gets its own settings back [Releasing]"
	waiting := func(adopted int, also []string, why ...string) outcome {
		return outcome{Adopted: adopted, Total: 2, Moving: true, Also: also, Waiting: why}
	}
	runPlans(t, map[string]planCase{
		"Both": {
			reason: "The MRs do not wait for each other, and the XR waits for both.", snapshot: snapshot(paused, forSecret(mr), forSecret(other), revision), ref: xp.RefTo(x),
			want: waiting(0, []string{"Bucket b", "Bucket c"}, waitB, waitC),
		},
		"One": {
			reason: "An XR stays paused while one of its MRs is held.", ref: xp.RefTo(x),
			snapshot: snapshot(paused, xptest.With(mr, xptest.Reconciled()), forSecret(other, xptest.Reconciled()), revision), want: waiting(1, []string{"Bucket c"}, waitC),
		},
		"NotObserved": {
			reason: "The provider must observe a released MR.", snapshot: snapshot(paused, mr, xptest.With(other, xptest.Reconciled()), revision), ref: xp.RefTo(x),
			want: waiting(1, nil, "Bucket b: its provider has not observed it yet [AwaitingProvider]"),
		},
		"Observed": {
			reason: "The XR is unpaused after its MRs.", ref: xp.RefTo(x),
			snapshot: snapshot(paused, xptest.With(mr, xptest.Reconciled()), xptest.With(other, xptest.Reconciled()), revision),
			want:     outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 2, Total: 2},
		},
		"OtherMissing": {
			reason: "A ready MR is released even if the XR waits for something else.", snapshot: snapshot(paused, forSecret(mr), revision), ref: xp.RefTo(x),
			want: waiting(0, []string{"Bucket b"}, waitB, "Bucket c: it is not in the cluster. Restore it; or, if its external resource is gone too, remove it from the resourceRefs of XOrder x, and Crossplane composes another [NotInCluster]"),
		},
		"SecretFailed": {
			reason: "An MR without its Secret does not delay the other MR.", snapshot: snapshot(paused, forSecret(mr), awaiting(other), revision), ref: xp.RefTo(x),
			want: waiting(0, []string{"Bucket b"}, waitB, "Bucket c: "+secretMissing),
		},
		"SecretBack": {
			reason: "The step gives the reason of each MR.", snapshot: snapshot(paused, forSecret(mr), awaiting(other), secret, revision), ref: xp.RefTo(x),
			want: waiting(0, []string{"Bucket b", "Bucket c"}, waitB, "Bucket c: it gets its own settings back [Releasing]"),
		},
		"SecretNotLookedFor": {
			reason: "Without a lookup the step must not claim that the Secret is back.", ref: xp.RefTo(x), snapshot: func() *Snapshot {
				w := snapshot(paused, forSecret(mr), awaiting(other), revision)
				w.WithoutSecrets()

				return w
			}(), want: waiting(0, []string{"Bucket b", "Bucket c"}, waitB, "Bucket c: it is held until its connection secret is back [ConnectionSecretMissing]"),
		},
		"AfterTheUnpause": {
			reason: "An MR that another restore put back is released.", snapshot: snapshot(free, forSecret(mr), other), ref: xp.RefTo(x),
			want: waiting(1, []string{"Bucket b"}, waitB),
		},
		"OwnPause": {
			reason: "The user's pause of the XR does not pause its MRs.", snapshot: snapshot(ownPause, forSecret(mr)), ref: xp.RefTo(x),
			want: outcome{Total: 1, Moving: true, Also: []string{"Bucket b"}, Waiting: []string{waitB}},
		},
		"OwnPauseLetGo": {
			reason: "The XR gets its own settings back after its MRs.", snapshot: snapshot(ownPause, mr), ref: xp.RefTo(x),
			want: outcome{Step: stepRelease, Target: "XOrder x", Adopted: 1, Total: 1},
		},
		"OwnPauseOfTheMR": {
			reason: "The plan does not wait for the provider of a released MR that the user had paused.", ref: xp.RefTo(x),
			snapshot: snapshot(held(xptest.XR("x", xptest.Refs(mr)), xptest.SeenPaused()), xptest.With(mr, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.SeenPaused()),
				revision),
			want: outcome{Step: stepUnpause, Target: "XOrder x", Adopted: 1, Total: 1},
		},
		"Unheld": {
			reason: "The plan of an XR without a hold ignores its composed resources.", snapshot: snapshot(xptest.XR("x", xptest.Refs(mr)), forSecret(mr)), ref: xp.RefTo(x),
			want: outcome{Done: true, Adopted: 1, Total: 1},
		},
	})
}

// A user's settings of an MR are returned, however often it is backed up during its hold, and by
// either Plan.
func TestReleaseReturnsSettings(t *testing.T) {
	x := xptest.XR("x")
	for name, options := range map[string][]xptest.Option{
		"None": nil, "Paused": {xptest.Annotated(xp.AnnotationPaused, "true")}, "NotPaused": {xptest.Annotated(xp.AnnotationPaused, "false")},
		"Empty": {xptest.Annotated(xp.AnnotationPaused, ""), xptest.Annotated("theirs", "kept")},
	} {
		own := xptest.MR("b", append(options, xptest.ControlledBy(x), xptest.PublishesTo("infra", "s"), xptest.Version("7"))...)
		mr := forSecret(forSecret(own))
		h, err := HoldOf(mr)
		want := &Hold{Restore: restoreName, Since: restoredAt, Reason: ReasonSecret}
		if paused, ok := own.GetAnnotations()[xp.AnnotationPaused]; ok {
			want.Paused = ptr.To(paused)
		}
		if diff := cmp.Diff(want, h, cmpopts.IgnoreFields(Hold{}, "Of")); err != nil || diff != "" || !xp.IsPaused(mr) || !IsMarked(mr) {
			t.Errorf("%s: an MR must be held without a pin: error %v, -want, +got:\n%s", name, err, diff)
		}
		composed := Next(snapshot(held(xptest.XR("x", xptest.Refs(own))), mr), xp.RefTo(x))
		if len(composed.Also) != 1 {
			t.Fatalf("%s: got %+v", name, composed)
		}
		for by, change := range map[string]Change{"itself": Next(snapshot(mr), xp.RefTo(mr)).Change, "its XR": composed.Also[0]} {
			if diff := cmp.Diff(asStored(own), asStored(xptest.Merge(change.Target, change.Patch))); diff != "" {
				t.Errorf("%s: released by %s: -own, +now:\n%s", name, by, diff)
			}
			if v, _, _ := unstructured.NestedString(change.Patch, "metadata", "resourceVersion"); v != "7" {
				t.Errorf("%s: the API server must refuse it if the MR has changed since; got %v", name, change.Patch)
			}
		}
	}
}

// A held copy of a claim that never had an XR has no finalizer: only its mark shows what it is.
func TestNextOfACopyOfAnUnboundClaim(t *testing.T) {
	claim := copied(xptest.Claim("o"))
	claim.SetFinalizers(nil)
	if xp.IsClaim(claim) {
		t.Fatal("the copy must not look like a claim")
	}
	runPlans(t, map[string]planCase{"Copy": {
		reason: "An empty copy must not count as adopted.", snapshot: snapshot(claim), ref: xp.RefTo(claim), want: outcome{Failed: "OrderClaim team-a/o stays held: it is a copy"},
	}})
	notice, err := Unverified.Stopped(claim, "why")
	if err != nil {
		t.Fatal(err)
	}
	h, err := HoldOf(xptest.Merge(claim, notice.Patch))
	if err != nil || h == nil || h.Reason != "why" {
		t.Errorf("Stopped must work for a held copy; got %+v, %v", h, err)
	}
}
