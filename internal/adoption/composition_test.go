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
			reason:   "Nobody has changed anything.",
			snapshot: snapshot(follows(x, same.Composition(), same.Revision()), xptest.Revision(same.Revision(), x)),
		},
		"Composition": {
			reason: "It acts when the pin goes.", snapshot: snapshot(follows(x, "other", same.Revision()), xptest.Revision(same.Revision(), x)),
			want: "its compositionRef from orders to other while it was held",
		},
		"Revision": {
			reason: "It acts at once.", snapshot: snapshot(follows(x, same.Composition(), "other-1"), xptest.Revision("other-1", x)),
			want: "its compositionRevisionRef from " + same.Revision() + " to other-1 while",
		},
		"Both": {
			reason: "Both are named.", snapshot: snapshot(follows(x, "other", "other-1"), xptest.Revision("other-1", x)),
			want: "to other and its compositionRevisionRef from",
		},
		"NoName": {
			reason: "What a tenant writes is not told if it can't be a name.", snapshot: snapshot(follows(x, "a\nb", same.Revision()), xptest.Revision(same.Revision(), x)),
			want: "its compositionRef from orders to what can't be the name of one",
		},
		"Removed": {
			reason: "Crossplane selects one then.", snapshot: snapshot(none, xptest.Revision(same.Revision(), x)), want: "its compositionRef from orders to none",
		},
		"Claim": {
			reason: "Crossplane carries it over to the XR.", snapshot: snapshot(adopted, follows(claim, "other", same.Revision())),
			want: "OrderClaim team-a/o follows something else",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Next(tc.snapshot, xp.RefTo(x))
			if plan.Patch == nil || !strings.Contains(plan.Warning, tc.want) || (plan.Warning == "") != (tc.want == "") {
				t.Errorf("%s\nwant %q, got %+v", tc.reason, tc.want, plan)
			}
		})
	}
	waits := snapshot(held(xptest.XR("x", xptest.ClaimedBy(claim))), follows(claim, "other", same.Revision()), xptest.Revision(same.Revision(), x))
	if plan := Next(waits, xp.RefTo(x)); len(plan.Waiting) == 0 || len(plan.Remarks) != 1 || !strings.Contains(plan.Remarks[0], "OrderClaim team-a/o follows") {
		t.Errorf("That is also told while it waits for something; got %+v", plan)
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
		"Nobody": {reason: "The pin was the hold's.", snapshot: snapshot(adopted()), want: xp.UpdateAutomatic},
		"Somebody": {
			reason: "Flux has written it since.", snapshot: snapshot(adopted(managed("kustomize-controller", "Apply", laterAt, path))), want: xp.UpdateManual,
		},
		"Before": {
			reason: "Who managed it in the backup had its own value.", snapshot: snapshot(adopted(managed("kubectl", "Update", saved, path))), want: xp.UpdateAutomatic,
		},
		"Velero": {
			reason: "Velero writes all.", snapshot: snapshot(adopted(managed("velero-server", "Update", laterAt, path))), want: xp.UpdateAutomatic,
		},
		"Server": {
			reason: "The API server has a name for whoever it does not know.", snapshot: snapshot(adopted(managed("before-first-apply", "Update", laterAt, path))),
			want: xp.UpdateAutomatic,
		},
		"Forged": {
			reason: "Somebody has written a time of later into the backup.", want: xp.UpdateAutomatic,
			snapshot: snapshot(xptest.With(held(xptest.XR("x", automatic, ofRestore(), managed("argocd", "Update", laterAt, path))), unpaused(), xptest.Reconciled(),
				managed("argocd", "Update", laterAt, path))),
		},
		"Defaulted": {
			reason: "Who has made it manages the default too, and has updated something else since.", want: xp.UpdateAutomatic, snapshot: snapshot(updated()),
		},
		"AppliedClientSide": {
			reason: "What they have applied since has it.", want: xp.UpdateManual,
			snapshot: snapshot(updated(xptest.Annotated(xp.AnnotationLastApplied, `{"spec":{"compositionUpdatePolicy":"Manual"}}`))),
		},
		"AppliedOther": {
			reason: "What they have applied since has it not.", want: xp.UpdateAutomatic,
			snapshot: snapshot(updated(xptest.Annotated(xp.AnnotationLastApplied, `{"spec":{"region":"here"}}`))),
		},
		"UpdatedAnew": {
			reason: "Who did not manage it in the backup has written it.", want: xp.UpdateManual,
			snapshot: snapshot(adopted(managed("kubectl-edit", "Update", laterAt, path))),
		},
		"Claim":     {reason: "Crossplane carries it over.", snapshot: snapshot(ofClaim, claim(xptest.Policy(xp.UpdateManual))), want: xp.UpdateManual},
		"ClaimSame": {reason: "That of the backup.", snapshot: snapshot(ofClaim, claim(automatic)), want: xp.UpdateAutomatic},
		"ClaimPaused": {
			reason: "Nothing carries it over.", want: xp.UpdateAutomatic,
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
