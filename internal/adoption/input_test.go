package adoption

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	inputMissing = "Secret infra/password, which its provider reads, is missing: without it the provider fails, or generates another password than the one in " +
		"use; "
	inputNowhere = inputMissing + "it is not in the backup; create it, with what the external resource has" + inputCode
	inputCode    = " [InputSecretMissing]"
)

// releaseInput is a Secret in which Helm keeps a release.
var releaseInput = Input{Namespace: "shop", Name: "sh.helm.release.v1.shop.v3"}

const releaseNowhere = "Secret shop/sh.helm.release.v1.shop.v3, in which Helm keeps its release, is missing: without it provider-helm installs the chart again over " +
	"what is there, with new passwords where the chart makes some; it is not in the backup; restore it from another one, or, if that may happen, " +
	"release this with --force" + inputCode

// reading returns u held until the Secrets that its provider reads exist, then changed by the
// options.
func reading(u *unstructured.Unstructured, in Input, o ...xptest.Option) *unstructured.Unstructured {
	u = u.DeepCopy()
	if _, err := Put(u, Hold{Restore: restoreName, Since: restoredAt, Reason: ReasonInput(in), Inputs: []Input{in}}); err != nil {
		panic(err) // The test is wrong.
	}

	return xptest.With(u, o...)
}

// If the Secret with a database's password is missing, a provider that generates passwords makes
// another one, and changes the password of the live database.
func TestNextAwaitsWhatAProviderReads(t *testing.T) {
	mr, local, x := xptest.MR("db"), xptest.NamespacedMR("db"), xptest.XR("x")
	input := Input{Namespace: "infra", Name: "password"}
	stored, left := input, input
	stored.Stored = true
	left.Stored, left.By = true, bringSecret
	password := xptest.Object("v1", "Secret", "infra", "password")
	letGo := func(target string) outcome { return outcome{Step: stepLetGo, Target: target, Moving: true} }
	composed, revision := xptest.MR("db", xptest.ControlledBy(x), xptest.Reconciled()), xptest.Revision(xptest.RevisionName, x)
	paused := held(xptest.XR("x", xptest.Refs(mr)), xptest.SeenPaused())
	waits := func(why string) outcome { return outcome{Waiting: []string{"Bucket db: " + why}} }
	runPlans(t, map[string]planCase{
		"Missing": {reason: "The Secret does not exist.", snapshot: snapshot(reading(mr, input)), ref: xp.RefTo(mr), want: waits(inputNowhere)},
		"Failed": {
			reason: "The restore failed to restore the Secret.", snapshot: snapshot(reading(mr, stored)), ref: xp.RefTo(mr),
			want: waits(inputMissing + "it was not restored; restore again" + inputCode),
		},
		"LeftOut": {
			reason: "The filters of the restore leave the Secret out.", snapshot: snapshot(reading(mr, left)), ref: xp.RefTo(mr),
			want: waits(inputMissing + "the restore has left it out; restore it: " + bringSecret + inputCode),
		},
		"There": {reason: "The Secret exists, whatever restored it.", snapshot: snapshot(reading(mr, left), password), ref: xp.RefTo(mr), want: letGo("Bucket db")},
		"Elsewhere": {
			reason: "A Secret of the same name in another namespace does not count.", snapshot: snapshot(reading(mr, input), xptest.Object("v1", "Secret", "team-a", "password")),
			ref: xp.RefTo(mr), want: waits(inputNowhere),
		},
		"Unreadable": {
			reason: "Missing rights to read Secrets must not release the MR.", snapshot: unreadable(reading(mr, input)), ref: xp.RefTo(mr),
			want: waits("its provider reads Secret infra/password, and Secrets can't be read: forbidden; without it the provider fails, or generates another password " +
				"than the one in use; it is not in the backup; create it, with what the external resource has, and run this with the right to list Secrets" + inputCode),
		},
		"NotLookedFor": {
			reason: "Without a lookup the state of the Secret is unknown.", snapshot: func() *Snapshot {
				w := snapshot(reading(mr, input))
				w.WithoutSecrets()

				return w
			}(), ref: xp.RefTo(mr), want: letGo("Bucket db"),
		},
		"NotLookedForByTheXR": {
			reason: "Without a lookup the XR's plan must not claim that the Secret exists.", snapshot: func() *Snapshot {
				w := snapshot(paused, reading(composed, input), revision)
				w.WithoutSecrets()

				return w
			}(), ref: xp.RefTo(x), want: outcome{Total: 1, Moving: true, Also: []string{"Bucket db"}, Waiting: []string{"Bucket db: it is held until the Secrets that its provider reads are there" + inputCode}},
		},
		"Composed": {
			reason: "The XR waits too, and its message gives the reason.", snapshot: snapshot(paused, reading(composed, input), revision), ref: xp.RefTo(x),
			want: outcome{Total: 1, Waiting: []string{"Bucket db: " + inputNowhere}},
		},
		"LetGo": {
			reason: "A user has removed the pause.", snapshot: snapshot(reading(mr, input, xptest.Annotated(xp.AnnotationPaused, "false"))), ref: xp.RefTo(mr),
			want: letGo("Bucket db"),
		},
		"Release": {
			reason: "Helm keeps its release in the Secret, and the provider would install it a second time.", snapshot: snapshot(reading(mr, releaseInput)), ref: xp.RefTo(mr),
			want: waits(releaseNowhere),
		},
		"ReleaseElsewhere": {
			reason: "A Helm release can be in another namespace than its Release.", snapshot: snapshot(reading(local, releaseInput)), ref: xp.RefTo(local),
			want: outcome{Waiting: []string{"Bucket team-a/db: " + releaseNowhere}},
		},
		"Namespaced": {
			reason: "The mark of a namespaced object reaches nothing outside its namespace.", ref: xp.RefTo(local),
			snapshot: snapshot(reading(local, input), xptest.Object("v1", "Secret", "team-a", "password")), want: letGo("Bucket team-a/db"),
		},
	})
}

// Lifting by force names the risk of a missing input.
func TestForceNamesMissingInputs(t *testing.T) {
	mr := reading(xptest.MR("db"), Input{Namespace: "infra", Name: "password"})
	f := AssessForce(snapshot(mr), xp.RefTo(mr))
	if f.Patch == nil || !slices.ContainsFunc(f.Risks, func(risk reason.Message) bool { return strings.HasSuffix(risk.String(), inputNowhere) }) {
		t.Errorf("got %v and risks %q", f.Patch, f.Risks)
	}
}
