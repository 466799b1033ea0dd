package adoption

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// forSecret returns u held until its connection secret is restored, then changed by the options.
func forSecret(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	return withMark(u, hold.Hold{Restore: restoreName, Since: restoredAt, Reason: hold.ReasonSecret}, o...)
}

// bringSecret is the command that restores a Secret which the restore left out.
const bringSecret = "velero restore create --from-backup nightly --include-namespaces infra --include-resources secrets" //nolint:gosec // It is none.

// leftOut is forSecret for a Secret in the backup that the restore's filters leave out.
func leftOut(u *unstructured.Unstructured) *unstructured.Unstructured {
	return withMark(u, hold.Hold{Restore: restoreName, Since: restoredAt, Reason: hold.ReasonSecret, Secret: true, SecretBy: bringSecret})
}

// awaiting is forSecret for a Secret in the backup.
func awaiting(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	return withMark(u, hold.Hold{Restore: restoreName, Since: restoredAt, Reason: hold.ReasonSecret, Secret: true, Reported: hold.ReportedOf(u)}, o...)
}

// withoutSecrets returns the Snapshot, of a cluster whose Secrets were not listed.
func withoutSecrets(w *Snapshot) *Snapshot {
	w.WithoutSecrets()

	return w
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
	with := func(h hold.Hold, o ...xptest.Option) *unstructured.Unstructured {
		u := publishing.DeepCopy()
		h.Restore, h.Since = restoreName, restoredAt
		xptest.Value(hold.Put(u, h))

		return xptest.With(u, append([]xptest.Option{xptest.SeenPaused()}, o...)...)
	}
	awaits, left := hold.Hold{Secret: true}, hold.Hold{Secret: true, SecretBy: bringSecret}
	runPlans(t, publishing, map[string]planCase{
		"Back": {reason: "The Secret is back.", want: "unpause XOrder x", snapshot: snapshot(with(awaits), revision, secret)},
		"Failed": {
			reason: "The restore failed to restore the Secret.", want: "waits: XOrder x ConnectionSecretMissing", says: "restore again", snapshot: snapshot(with(awaits), revision),
		},
		"LeftOut": {
			reason: "The filters of the restore leave the Secret out.", want: "waits: XOrder x ConnectionSecretMissing", says: bringSecret, snapshot: snapshot(with(left), revision),
		},
		"NoneInTheBackup": {reason: "The backup has no Secret to wait for.", want: "unpause XOrder x", snapshot: snapshot(with(hold.Hold{}), revision)},
		"LetGo":           {reason: "The XR was unpaused and has published already.", want: "release XOrder x", snapshot: snapshot(with(left, xptest.Unpaused(), xptest.Reconciled()), revision)},
	})
}

// An MR that no XR composes has its own Plan.
func TestNextForManaged(t *testing.T) {
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"))
	local := xptest.NamespacedMR("b", xptest.PublishesTo("", "s"))
	secret := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr))
	x := xptest.XR("x", xptest.Refs(mr))
	runPlans(t, mr, map[string]planCase{
		"Held":       {reason: "Nothing shows a Secret in the backup, so the step must not claim that it is back.", want: "moving; release Bucket b", snapshot: snapshot(forSecret(mr))},
		"SecretBack": {reason: "The Secret of the MR is back.", want: "moving; release Bucket b", snapshot: snapshot(awaiting(mr), secret)},
		"SecretLeftOut": {
			reason: "A Secret that the filters leave out is lost too if the provider publishes another one.", want: "waits: Bucket b ConnectionSecretMissing", says: bringSecret,
			snapshot: snapshot(leftOut(mr)),
		},
		"SecretLeftOutUnreadable": {
			reason: "Without the right to read Secrets the plugin can't know that the Secret is back.", want: "waits: Bucket b ConnectionSecretMissing", says: "can't be read: forbidden",
			snapshot: unreadable(leftOut(mr)),
		},
		"SecretLoose": {
			reason: "A provider takes over no uncontrolled Secret with the same data.", want: "moving; make Bucket b its controller again Secret infra/s",
			snapshot: snapshot(awaiting(mr), xptest.With(secret, xptest.Without("metadata", "ownerReferences"))),
		},
		"SecretFailed": {
			reason: "Some clouds return a password only once, so one failed item must not lose it.", want: "waits: Bucket b ConnectionSecretMissing", says: "restore again",
			snapshot: snapshot(awaiting(mr)),
		},
		"SecretUnreadable":   {reason: "The plan can't wait for a Secret without the right to read it.", want: "moving; release Bucket b", snapshot: unreadable(awaiting(mr))},
		"SecretNotLookedFor": {reason: "The plan can't wait for a Secret without a lookup.", want: "moving; release Bucket b", snapshot: withoutSecrets(snapshot(awaiting(mr)))},
		"SecretOfPaused": {
			reason: "A paused MR of the user publishes nothing.", want: "moving; release Bucket b",
			snapshot: snapshot(awaiting(xptest.With(mr, xptest.Annotated(xp.AnnotationPaused, "true")))),
		},
		"SecretTooLate": {
			reason: "A user has released the MR already.", want: "moving; release Bucket b", snapshot: snapshot(awaiting(mr, xptest.Annotated(xp.AnnotationPaused, "false"))),
		},
		"Released": {reason: "The MR was released, or was live before the restore.", want: "done", snapshot: snapshot(mr)},
		"OwnPause": {reason: "A paused MR of the user is not held.", want: "done", snapshot: snapshot(xptest.With(mr, xptest.Annotated(xp.AnnotationPaused, "true")))},
		"XRLiveAllAlong": {
			reason: "The XR of the MR has no hold, so its plan ignores the MR.", want: "moving; release Bucket b", snapshot: snapshot(x, forSecret(mr, xptest.ControlledBy(x))),
		},
		"Copy": {reason: "Only a user can release a copy of a live object.", of: local, want: "failed: Bucket team-a/b stays held: it is a copy", snapshot: snapshot(copied(local))},
		"Gone": {reason: "The plan reports an MR that did not come back.", want: "failed: Bucket b NotInCluster", snapshot: snapshot()},
		"Unreadable": {
			reason: "A user must correct a mark that can't be read.", want: "failed: MarkUnreadable", snapshot: snapshot(xptest.With(mr, xptest.Annotated(hold.Annotation, "?"))),
		},
	})
}

// The Plan of a held XR releases its MRs, and unpauses the XR after that.
func TestNextReleasesComposed(t *testing.T) {
	x := xptest.XR("x")
	publishes := xptest.PublishesTo("infra", "s")
	mr, other := xptest.MR("b", xptest.ControlledBy(x), publishes), xptest.MR("c", xptest.ControlledBy(x), publishes)
	revision := xptest.Revision(xptest.RevisionName, x)
	paused := held(xptest.XR("x", xptest.Refs(mr, other)), xptest.SeenPaused())
	free := xptest.With(paused, xptest.Unpaused(), xptest.Reconciled())
	ownPause := held(xptest.XR("x", xptest.Refs(mr), xptest.Annotated(xp.AnnotationPaused, "true")))
	runPlans(t, x, map[string]planCase{
		"Both": {
			reason: "The MRs do not wait for each other, and the XR waits for both.",
			want:   "0/2; moving; release Bucket b; release Bucket c; waits: Bucket b Releasing, Bucket c Releasing", snapshot: snapshot(paused, forSecret(mr), forSecret(other), revision),
		},
		"One": {
			reason: "An XR stays paused while one of its MRs is held.", want: "1/2; moving; release Bucket c; waits: Bucket c Releasing",
			snapshot: snapshot(paused, xptest.With(mr, xptest.Reconciled()), forSecret(other, xptest.Reconciled()), revision),
		},
		"OtherMissing": {
			reason: "A ready MR is released even if the XR waits for something else.", want: "0/2; moving; release Bucket b; waits: Bucket b Releasing, Bucket c NotInCluster",
			snapshot: snapshot(paused, forSecret(mr), revision),
		},
		"SecretFailed": {
			reason: "An MR without its Secret does not delay the other MR.", want: "0/2; moving; release Bucket b; waits: Bucket b Releasing, Bucket c ConnectionSecretMissing",
			snapshot: snapshot(paused, forSecret(mr), awaiting(other), revision),
		},
		"SecretNotLookedFor": {
			reason:   "Without a lookup the step must not claim that the Secret is back.",
			want:     "0/2; moving; release Bucket b; release Bucket c; waits: Bucket b Releasing, Bucket c ConnectionSecretMissing",
			snapshot: withoutSecrets(snapshot(paused, forSecret(mr), awaiting(other), revision)),
		},
		"AfterTheUnpause": {
			reason: "An MR that another restore put back is released.", want: "1/2; moving; release Bucket b; waits: Bucket b Releasing", snapshot: snapshot(free, forSecret(mr), other),
		},
		"OwnPause": {
			reason: "The user's pause of the XR does not pause its MRs.", want: "0/1; moving; release Bucket b; waits: Bucket b Releasing", snapshot: snapshot(ownPause, forSecret(mr)),
		},
		"Unheld": {reason: "The plan of an XR without a hold ignores its composed resources.", want: "1/1; done", snapshot: snapshot(xptest.XR("x", xptest.Refs(mr)), forSecret(mr))},
	})
}

// A held copy of a claim that never had an XR has no finalizer: only its mark shows what it is.
func TestNextOfACopyOfAnUnboundClaim(t *testing.T) {
	claim := copied(xptest.Claim("o"))
	claim.SetFinalizers(nil)
	if xp.IsClaim(claim) {
		t.Fatal("the copy must not look like a claim")
	}
	runPlans(t, claim, map[string]planCase{
		"Copy": {reason: "An empty copy must not count as adopted.", want: "failed: OrderClaim team-a/o stays held: it is a copy", snapshot: snapshot(claim)},
	})
	notice := xptest.Value(Stopped(hold.Unverified, claim, "why"))
	h, err := hold.Of(xptest.Merge(claim, notice.Patch))
	if err != nil || h == nil || h.Reason != "why" {
		t.Errorf("Stopped must work for a held copy; got %+v, %v", h, err)
	}
}

// releaseInput is a Secret in which Helm keeps a release.
var releaseInput = hold.Input{Namespace: "shop", Name: "sh.helm.release.v1.shop.v3"}

// reading returns u held until the Secrets that its provider reads exist, then changed by the
// options.
func reading(u *unstructured.Unstructured, in hold.Input, o ...xptest.Option) *unstructured.Unstructured {
	return withMark(u, hold.Hold{Restore: restoreName, Since: restoredAt, Reason: hold.ReasonInput(in), Inputs: []hold.Input{in}}, o...)
}

// If the Secret with a database's password is missing, a provider that generates passwords makes
// another one, and changes the password of the live database.
func TestNextAwaitsWhatAProviderReads(t *testing.T) {
	mr, local, x := xptest.MR("db"), xptest.NamespacedMR("db"), xptest.XR("x")
	input := hold.Input{Namespace: "infra", Name: "password"}
	stored, left := input, input
	stored.Stored = true
	left.Stored, left.By = true, bringSecret
	password := xptest.Object("v1", "Secret", "infra", "password")
	composed, revision := xptest.MR("db", xptest.ControlledBy(x), xptest.Reconciled()), xptest.Revision(xptest.RevisionName, x)
	paused := held(xptest.XR("x", xptest.Refs(mr)), xptest.SeenPaused())
	runPlans(t, mr, map[string]planCase{
		"Missing": {reason: "The Secret does not exist.", want: "waits: Bucket db InputSecretMissing", says: "it is not in the backup", snapshot: snapshot(reading(mr, input))},
		"Failed":  {reason: "The restore failed to restore the Secret.", want: "waits: Bucket db InputSecretMissing", says: "restore again", snapshot: snapshot(reading(mr, stored))},
		"LeftOut": {reason: "The filters of the restore leave the Secret out.", want: "waits: Bucket db InputSecretMissing", says: bringSecret, snapshot: snapshot(reading(mr, left))},
		"There":   {reason: "The Secret exists, whatever restored it.", want: "moving; release Bucket db", snapshot: snapshot(reading(mr, left), password)},
		"Elsewhere": {
			reason: "A Secret of the same name in another namespace does not count.", want: "waits: Bucket db InputSecretMissing",
			snapshot: snapshot(reading(mr, input), xptest.Object("v1", "Secret", "team-a", "password")),
		},
		"Unreadable": {
			reason: "Missing rights to read Secrets must not release the MR.", want: "waits: Bucket db InputSecretMissing", says: "can't be read: forbidden",
			snapshot: unreadable(reading(mr, input)),
		},
		"NotLookedFor": {reason: "Without a lookup the state of the Secret is unknown.", want: "moving; release Bucket db", snapshot: withoutSecrets(snapshot(reading(mr, input)))},
		"NotLookedForByTheXR": {
			reason: "Without a lookup the XR's plan must not claim that the Secret exists.", of: x, want: "0/1; moving; release Bucket db; waits: Bucket db InputSecretMissing",
			snapshot: withoutSecrets(snapshot(paused, reading(composed, input), revision)),
		},
		"Composed": {
			reason: "The XR waits too, and its message gives the reason.", of: x, want: "0/1; waits: Bucket db InputSecretMissing",
			snapshot: snapshot(paused, reading(composed, input), revision),
		},
		"LetGo": {reason: "A user has removed the pause.", want: "moving; release Bucket db", snapshot: snapshot(reading(mr, input, xptest.Annotated(xp.AnnotationPaused, "false")))},
		"Release": {
			reason: "Helm keeps its release in the Secret, and the provider would install it a second time.", want: "waits: Bucket db InputSecretMissing", says: "Helm keeps its release",
			snapshot: snapshot(reading(mr, releaseInput)),
		},
		"Namespaced": {
			reason: "The mark of a namespaced object reaches nothing outside its namespace.", of: local, want: "moving; release Bucket team-a/db",
			snapshot: snapshot(reading(local, input), xptest.Object("v1", "Secret", "team-a", "password")),
		},
	})
}

// A Velero that does not know the annotation for the connection secret leaves it on the object.
func TestLiftRemovesVeleroAnnotations(t *testing.T) {
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"))
	u := awaiting(mr, xptest.Annotated(xp.AnnotationMustRestore, "true"))
	p := Next(snapshot(u, xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr))), xp.RefTo(u))
	if after := xptest.Merge(p.Target, p.Patch); !p.Lifts() || xp.HasAnnotation(after, xp.AnnotationMustRestore) {
		t.Errorf("got %v", after.GetAnnotations())
	}
}
