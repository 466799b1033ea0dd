package adoption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A ForceAssessment is what happens if a hold is lifted at once.
type ForceAssessment struct {
	// Change lifts the hold and gives the user's own settings back. Its Patch is nil if there is no
	// hold.
	hold.Change

	// Risks are the possible consequences, each with the names of the objects concerned.
	Risks []reason.Message
	// Settings are the user's own settings that come back.
	Settings []string
	// Refused is why the hold can't be lifted by force, and the next step; zero if it can.
	Refused reason.Message
}

// AssessForce plans to lift the hold of what r names at once, whatever is missing. It finds only
// the risks that show in the Snapshot. It changes the observed hold as Consent does.
func AssessForce(s *Snapshot, r xp.Ref) ForceAssessment {
	s.Consent(r) // Lifting by force includes consent.
	u := s.Get(r)
	if u == nil {
		return ForceAssessment{Refused: reason.NotFound.Messagef("%s does not exist any more", r)}
	}
	h, err := hold.Unverified.HoldOf(u)
	switch {
	case err != nil:
		return ForceAssessment{Refused: reason.Malformed.Messagef("%v; remove the annotation, and crossplane.io/paused if it should not be paused, "+
			"then run release again", err)}
	case h == nil:
		return ForceAssessment{}
	}
	f := forceAssessor{snapshot: s, u: u, hold: h}
	if err := s.key.Verify(r, xp.Annotation(u, hold.Annotation)); err != nil {
		f.risk(cmp.Or(reason.CodeOf(err), reason.Malformed), "its annotation %s is not trustworthy: %s. All other risks, and its settings, are from it",
			hold.Annotation, err)
	}
	if h.Clone != "" {
		f.risk(reason.CopyOfAnother, "it is a copy of %s: if that exists, both then manage the same external resources, and each changes or deletes those of "+
			"the other", h.Clone)
	}
	f.Change = s.key.Lift(u, h, "hold lifted by force; its own settings are back")
	f.Settings = hold.Settings(h)
	switch {
	case xp.IsSchedule(u):
		f.Step = "hold lifted; its own settings are back"
		if !h.OwnPause() {
			f.risk(reason.StartsOperations, "it starts Operations again: a WatchOperation starts one for each object that it watches")
		}
	case xp.IsComposite(u):
		f.composite()
	case xp.IsManaged(u):
		f.managed()
	default:
		f.claim()
	}

	return f.ForceAssessment
}

type forceAssessor struct {
	ForceAssessment

	snapshot *Snapshot
	u        *unstructured.Unstructured
	hold     *hold.Hold
	// covered are the objects that a risk names already. What waits for one of them is no further
	// risk.
	covered []xp.Ref
}

func (f *forceAssessor) risk(code reason.Code, format string, args ...any) {
	f.Risks = append(f.Risks, code.Messagef(format, args...))
}

func (f *forceAssessor) riskOf(r xp.Ref, code reason.Code, format string, args ...any) {
	f.covered = append(f.covered, r)
	f.risk(code, "%s "+format, append([]any{r}, args...)...)
}

// composite finds what Crossplane does to an XR that it may reconcile now (crossplane
// internal/controller/apiextensions/composite, composition_functions.go, ObserveComposedResources
// and the garbage collection of what a pipeline leaves out).
func (f *forceAssessor) composite() {
	xr := xp.CompositeFrom(f.u)
	if f.hold.OwnPause() {
		f.risk(reason.PausedByUser, "it stays paused, as it was; the following happens when a user removes that pause")
	}
	t := tree{snapshot: f.snapshot, xr: xr, hold: f.hold}
	listed, err := t.listed()
	var names []string // All: each can be lost.
	for _, r := range f.hold.Refs {
		names = append(names, r.String())
	}
	composed := cmp.Or(strings.Join(names, ", "), "nothing")
	if f.u.GetDeletionTimestamp() != nil {
		f.risk(reason.BeingDeleted, "it is being deleted: Crossplane continues the deletion, and deletes all that it composes: %s", composed)
	}
	for _, r := range f.hold.Refs {
		f.composed(r, err != nil || listed[r.ID()])
	}
	if xrd := f.snapshot.definitionOf(f.u.GroupVersionKind().GroupKind()); xrd != nil && xrd.GetDeletionTimestamp() != nil {
		f.covered = append(f.covered, xp.RefTo(f.u))
		f.risk(reason.XRDTerminating, "its XRD %s is being deleted: Crossplane deletes this XR, and all that it composes: %s", xrd.GetName(), composed)
	}
	f.composition(xr)
	f.uncovered()
}

func (f *forceAssessor) composed(r xp.Ref, listed bool) {
	u := f.snapshot.Get(r)
	why, unknown := f.snapshot.isUnknown(r)
	switch {
	case u == nil && !listed: // The XR does not list it, so Crossplane does not look for it.
	case u == nil && f.snapshot.unserved[r.GroupVersionKind().GroupKind()]:
		f.riskOf(r, reason.Dangling, "is missing and its kind is not served: Crossplane can't reconcile this XR until it is, and then creates "+
			"it again, a managed resource with another external resource")
	case unknown:
		f.riskOf(r, reason.NotRead, "can't be read (%s): if it is missing, or does not belong to this XR, Crossplane creates another in its place", why)
	case u == nil:
		f.riskOf(r, reason.Dangling, "is missing: Crossplane creates it again, a managed resource with another external resource and, unless the "+
			"Composition names it, another name; nothing manages the old one")
	case !listed:
		f.riskOf(r, reason.Orphaned, "is not in the resourceRefs: Crossplane creates another in its place, and no XR manages this one any more")
	case u.GetDeletionTimestamp() != nil:
		f.riskOf(r, reason.BeingDeleted, "is being deleted: Crossplane creates it again when it is gone")
	default:
		f.present(r, u)
	}
}

func (f *forceAssessor) present(r xp.Ref, u *unstructured.Unstructured) {
	if c, ok := xp.Controller(u); ok && c.UID != f.u.GetUID() {
		f.riskOf(r, reason.ControlledByAnother, "is controlled by %s %s: Crossplane removes it from the resourceRefs, and creates another in its place, or fails if "+
			"that gets the same name", c.Kind, c.Name)

		return
	}
	h, err := hold.Of(u)
	if err == nil && h != nil && h.FromUID != nil {
		f.riskOf(r, reason.UIDInIdentity, "has the UID %s of the backup in its %s: unless the Composition takes that from elsewhere now, Crossplane writes the new "+
			"UID there, which is another external resource, and nothing manages the old one", h.FromUID.UID, h.FromUID.Named())
	}
	if err != nil || h != nil {
		f.riskOf(r, reason.HeldBelow, "is held: a Composition that waits for it can leave out the resources that it composes later, and Crossplane deletes these")
	}
}

func (f *forceAssessor) composition(xr xp.Composite) {
	if elsewhere := changedFollowing(f.u, f.hold); !elsewhere.IsZero() {
		f.Risks = append(f.Risks, elsewhere)
	}
	c, ok := f.snapshot.choiceOf(xr, f.hold.PolicyOf(f.u))
	if !ok || !f.hold.Pinned {
		return
	}
	if r := revisionRef(xr); !f.snapshot.Has(r) {
		f.covered = append(f.covered, r)
	}
	switch chosen := f.snapshot.chosen(c); {
	case chosen == nil:
		f.risk(reason.RevisionMissing, "it follows %s, and there is none here: Crossplane can't reconcile it until there is one", c)
	case chosen.GetName() != xr.Revision():
		f.risk(reason.FollowsAnother, "its update policy is Automatic: it uses CompositionRevision %s at once, and not %s of the backup", chosen.GetName(),
			xr.Revision())
	}
}

// managed finds what a provider does with an MR that it may reconcile now.
func (f *forceAssessor) managed() {
	own := xp.Instance{Unstructured: f.u.DeepCopy()}
	f.hold.ReturnPolicies(own.Unstructured)
	called := ""
	if id, known := xp.ProviderID(f.u); known {
		called = fmt.Sprintf(" (to its provider %q)", id)
	}
	f.ownerless()
	switch {
	case f.hold.OwnPause() || !xp.MayCreate(own.Unstructured):
	case isSettled(f.u, f.hold):
		if f.hold.Observes && xp.OnlyObserves(f.u) {
			f.risk(reason.NotObserved, "its provider has not found its external resource yet: if it is gone, the provider creates another")
		}
	case f.hold.Identity == xp.CreatePending:
		f.covered = append(f.covered, xp.RefTo(f.u))
		f.risk(reason.CreatePending, "its external resource was being created at the backup: without the annotation %s its provider creates one, "+
			"and a first one can exist that nothing manages", xp.AnnotationCreatePending)
	default:
		f.covered = append(f.covered, xp.RefTo(f.u))
		f.risk(reason.IdentityMissing, "it has no external-name: its provider creates another external resource, and nothing manages the old one%s, unless it finds "+
			"that by the name of this object", called)
	}
	f.uncovered()
}

// ownerless finds the risks for an MR that is released before its XR is its controller. While it
// waited for its XR it did not report the other things that it lacks.
func (f *forceAssessor) ownerless() {
	why := f.snapshot.riskOfOwnerless(f.u, f.hold)
	if why.IsZero() {
		return
	}
	f.covered = append(f.covered, xp.RefTo(f.u))
	f.Risks = append(f.Risks, why)
	for _, why := range []reason.Message{f.snapshot.missingSecret(f.u, f.hold), f.snapshot.missingInput(f.u, f.hold)} {
		if !why.IsZero() {
			f.risk(why.Code, "it no longer waits for this: %s: %s", xp.String(f.u), why.Text)
		}
	}
}

// claim finds what Crossplane does to a claim that it may reconcile now.
func (f *forceAssessor) claim() {
	claim := xp.ClaimFrom(f.u)
	r, ok := claim.CompositeRef()
	why, unknown := f.snapshot.isUnknown(r)
	switch xr := f.snapshot.Get(r); {
	case !ok:
	case xr == nil && unknown:
		f.risk(reason.NotRead, "%s can't be read (%s): if it is missing, Crossplane creates another XR and composes all again, with other external resources", r, why)
	case xr == nil:
		f.risk(reason.Dangling, "%s is missing: Crossplane creates another XR and composes all again, with other external resources; nothing manages the old ones", r)
	case !xp.Bound(claim, xp.CompositeFrom(xr)):
		f.risk(reason.OneSided, "%s does not name it as its claim: Crossplane refuses to reconcile it", r)
	}
	if f.u.GetDeletionTimestamp() != nil {
		f.risk(reason.BeingDeleted, "it is being deleted: Crossplane continues the deletion, and deletes its XR and all that it composes")
	}
}

// uncovered adds what the object still waits for and no other risk covers. Each message of a Plan
// begins with its object.
func (f *forceAssessor) uncovered() {
	for _, waiting := range Next(f.snapshot, xp.RefTo(f.u)).Waiting {
		if !slices.ContainsFunc(f.covered, func(r xp.Ref) bool { return strings.HasPrefix(waiting.Text, r.String()+": ") }) {
			f.risk(waiting.Code, "it no longer waits for this: %s", waiting.Text)
		}
	}
}
