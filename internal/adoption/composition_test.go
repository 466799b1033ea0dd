package adoption

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A warning that a held XR or claim follows another Composition than in the backup comes before the
// change takes effect.
func TestNextOfAChangedComposition(t *testing.T) {
	x := xptest.XR("x")
	claim := xptest.Claim("o", xptest.OfXR(x))
	follows := func(u *unstructured.Unstructured, composition, revision string) *unstructured.Unstructured {
		return xptest.With(held(u, xptest.SeenPaused()), xptest.Field(composition, "spec", "compositionRef", "name"),
			xptest.Field(revision, "spec", "compositionRevisionRef", "name"))
	}
	same := xp.Instance{Unstructured: x}
	none := xptest.With(held(x, xptest.SeenPaused()), xptest.Without("spec", "compositionRef"))
	adopted := held(xptest.XR("x", xptest.ClaimedBy(claim)), unpaused(), xptest.Reconciled())
	for name, tc := range map[string]struct {
		reason   string
		snapshot *Snapshot
		want     string
	}{
		"Same": {
			reason:   "The Composition did not change.",
			snapshot: snapshot(follows(x, same.Composition(), same.Revision()), xptest.Revision(same.Revision(), x)),
		},
		"Composition": {
			reason: "The other Composition takes effect when the pin is removed.", snapshot: snapshot(follows(x, "other", same.Revision()), xptest.Revision(same.Revision(), x)),
			want: "its compositionRef from orders to other while it was held",
		},
		"Revision": {
			reason: "The other revision takes effect at once.", snapshot: snapshot(follows(x, same.Composition(), "other-1"), xptest.Revision("other-1", x)),
			want: "its compositionRevisionRef from " + same.Revision() + " to other-1 while",
		},
		"Both": {
			reason: "The warning names both changes.", snapshot: snapshot(follows(x, "other", "other-1"), xptest.Revision("other-1", x)),
			want: "to other and its compositionRevisionRef from",
		},
		"NoName": {
			reason: "The warning leaves out a value that can't be a name.", snapshot: snapshot(follows(x, "a\nb", same.Revision()), xptest.Revision(same.Revision(), x)),
			want: "its compositionRef from orders to a text that can't be its name while",
		},
		"Removed": {
			reason: "Crossplane then selects a Composition.", snapshot: snapshot(none, xptest.Revision(same.Revision(), x)), want: "its compositionRef from orders to none",
		},
		"Claim": {
			reason: "Crossplane copies the reference of the claim to the XR.", snapshot: snapshot(adopted, follows(claim, "other", same.Revision())),
			want: "OrderClaim team-a/o: another writer has changed its compositionRef",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Next(tc.snapshot, xp.RefTo(x))
			if plan.Patch == nil || !strings.Contains(plan.Warning.String(), tc.want) || plan.Warning.IsZero() != (tc.want == "") {
				t.Errorf("%s\nwant %q, got %+v", tc.reason, tc.want, plan)
			}
		})
	}
	waits := snapshot(held(xptest.XR("x", xptest.ClaimedBy(claim))), follows(claim, "other", same.Revision()), xptest.Revision(same.Revision(), x))
	if plan := Next(waits, xp.RefTo(x)); len(plan.Waiting) == 0 || len(plan.Remarks) != 1 || !strings.Contains(plan.Remarks[0].String(), "OrderClaim team-a/o: another writer") {
		t.Errorf("A waiting plan must carry the remark too; got %+v", plan)
	}
}

// A user who pins an object in Git during a hold wants it pinned.
func TestNextOfPinnedInGit(t *testing.T) {
	path := xp.Instance{Unstructured: xptest.XR("x")}.UpdatePolicyPath()
	automatic := xptest.Policy(xp.UpdateAutomatic)
	adopted := func(o ...xptest.Option) *unstructured.Unstructured {
		return held(xptest.XR("x", automatic, ofRestore()), append([]xptest.Option{unpaused(), xptest.Reconciled()}, o...)...)
	}
	updated := func(o ...xptest.Option) *unstructured.Unstructured {
		const by, operation = "kubectl-client-side-apply", "Update"
		now := append([]xptest.Option{unpaused(), xptest.Reconciled(), managed(by, operation, laterAt, path)}, o...)

		return held(xptest.XR("x", automatic, ofRestore(), managed(by, operation, saved, path)), now...)
	}
	claim := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Claim("o", append([]xptest.Option{xptest.OfXR(xptest.XR("x")), xptest.Reconciled()}, o...)...)
	}
	ofClaim := held(xptest.XR("x", automatic, xptest.ClaimedBy(claim())), unpaused(), xptest.Reconciled())
	for name, tc := range map[string]struct {
		reason   string
		snapshot *Snapshot
		want     string
	}{
		"NoWriter": {reason: "Only the hold set the pin.", snapshot: snapshot(adopted()), want: xp.UpdateAutomatic},
		"Flux": {
			reason: "Flux has written the pin since the hold.", snapshot: snapshot(adopted(managed("kustomize-controller", "Apply", laterAt, path))), want: xp.UpdateManual,
		},
		"Before": {
			reason: "The manager in the backup had another value.", snapshot: snapshot(adopted(managed("kubectl", "Update", saved, path))), want: xp.UpdateAutomatic,
		},
		"Velero": {
			reason: "Velero writes every field.", snapshot: snapshot(adopted(managed("velero-server", "Update", laterAt, path))), want: xp.UpdateAutomatic,
		},
		"Server": {
			reason: "The API server uses this name for unknown managers.", snapshot: snapshot(adopted(managed("before-first-apply", "Update", laterAt, path))),
			want: xp.UpdateAutomatic,
		},
		"Forged": {
			reason: "A writer put a later time into the managedFields of the backup.", want: xp.UpdateAutomatic,
			snapshot: snapshot(xptest.With(held(xptest.XR("x", automatic, ofRestore(), managed("argocd", "Update", laterAt, path))), unpaused(), xptest.Reconciled(),
				managed("argocd", "Update", laterAt, path))),
		},
		"Defaulted": {
			reason: "The creator also manages the default and has updated another field since.", want: xp.UpdateAutomatic, snapshot: snapshot(updated()),
		},
		"AppliedClientSide": {
			reason: "The manifest that was applied since has the pin.", want: xp.UpdateManual,
			snapshot: snapshot(updated(xptest.Annotated(xp.AnnotationLastApplied, `{"spec":{"compositionUpdatePolicy":"Manual"}}`))),
		},
		"AppliedOther": {
			reason: "The manifest that was applied since has no pin.", want: xp.UpdateAutomatic,
			snapshot: snapshot(updated(xptest.Annotated(xp.AnnotationLastApplied, `{"spec":{"region":"here"}}`))),
		},
		"NewManager": {
			reason: "A manager that is new since the backup has written the pin.", want: xp.UpdateManual,
			snapshot: snapshot(adopted(managed("kubectl-edit", "Update", laterAt, path))),
		},
		"Claim":     {reason: "Crossplane copies the policy of the claim to the XR.", snapshot: snapshot(ofClaim, claim(xptest.Policy(xp.UpdateManual))), want: xp.UpdateManual},
		"ClaimSame": {reason: "The claim still has the policy of the backup.", snapshot: snapshot(ofClaim, claim(automatic)), want: xp.UpdateAutomatic},
		"ClaimPaused": {
			reason: "Crossplane copies nothing from a paused claim.", want: xp.UpdateAutomatic,
			snapshot: snapshot(ofClaim, claim(xptest.Policy(xp.UpdateManual), xptest.Annotated(xp.AnnotationPaused, "true"))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := tc.snapshot.Get(xp.RefTo(xptest.XR("x")))
			plan := Next(tc.snapshot, xp.RefTo(u))
			if got, _ := (xp.Instance{Unstructured: xptest.Merge(u, plan.Patch)}).UpdatePolicy(); plan.Patch == nil || got != tc.want {
				t.Errorf("%s\nwant %q, got %q of %+v", tc.reason, tc.want, got, plan)
			}
		})
	}
}
