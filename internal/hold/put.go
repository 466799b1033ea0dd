package hold

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const reasonRestored = "restored from a backup; Crossplane does not reconcile it until everything that it composes is restored [" +
	string(reason.AwaitingRestore) + "]"

// Put puts a hold on u, which is about to be created: an XR or a claim, or another object that must
// not be reconciled yet. It returns the hold and writes it, unsigned, into the mark (see Key.Sign).
//
// of has what u does not show: why it is held, by what, and what it waits for. Without a Reason it
// gets that of an XR; a quarantine has its own. If u was held when it was backed up, its mark has the
// user's own settings. Put fails with ErrNewer if that mark has a newer format.
func Put(u *unstructured.Unstructured, of Hold) (*Hold, error) {
	// Of an earlier hold's state nothing counts: u shows its settings, and the rest comes while the hold is on.
	h := Hold{
		Of: markedOf(u), Restore: of.Restore, Since: of.Since, Reason: cmp.Or(of.Reason, reasonRestored), Clone: of.Clone, Quarantine: of.Quarantine,
		ByHand: of.ByHand, ByCommand: of.ByCommand, Secret: of.Secret, SecretBy: of.SecretBy, SecretWas: of.SecretWas, FromUID: of.FromUID, Inputs: of.Inputs,
		Owner: of.Owner, Reported: of.Reported, Failing: of.Failing, Required: of.Required, Identity: of.Identity, Observes: of.Observes, Status: of.Status,
	}
	h.explainConsent()
	earlier, err := Of(u)
	if errors.Is(err, ErrNewer) {
		return nil, fmt.Errorf("cannot put a hold on %s, which had one when it was backed up: %w; %s, and restore it again", xp.String(u), err, HowToRead)
	}
	if err != nil {
		// A mark that can't be read is another program's, or damaged. The object must be restored
		// all the same.
		h.Reason += ". It had another mark that could not be read, and lost it: " + err.Error()
	}
	if earlier != nil && earlier.Freed {
		earlier = nil // The object has its own settings.
	}
	if err := h.pin(u, earlier); err != nil {
		return nil, err
	}
	if err := h.saveComposed(u, earlier); err != nil {
		return nil, err
	}
	if err := h.saveOriginals(u, earlier); err != nil {
		return nil, err
	}
	h.Fields = packManagers(u)
	mark := h.encode()
	annotations := map[string]string{}
	maps.Copy(annotations, u.GetAnnotations())
	dropRequest(annotations)
	annotations[Annotation], annotations[xp.AnnotationPaused] = mark+strings.Repeat(" ", macSize+markSpare), "true"
	err = validation.ValidateAnnotationsSize(annotations)
	if err == nil && isTooLarge(mark) {
		err = errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("cannot put a hold on %s: its %d resourceRefs make a mark of %d bytes, and with its other annotations that is too much: %w; shorten "+
			"these, or divide what it composes between several XRs, and back up again", xp.String(u), len(h.Refs), len(mark), err)
	}
	annotations[Annotation] = mark
	u.SetAnnotations(annotations)

	return &h, nil
}

// saveComposed saves what an XR composes and depends on, and nothing of other objects.
func (h *Hold) saveComposed(u *unstructured.Unstructured, earlier *Hold) error {
	if !xp.IsComposite(u) {
		h.Failing, h.Required = "", nil

		return nil
	}
	var err error
	if h.Refs, err = xp.CompositeFrom(u).SavedRefs(); err != nil {
		return err // It names the XR.
	}
	if kinds := KindsOf(h.Refs); kinds > MaxKinds {
		return fmt.Errorf("cannot put a hold on %s: it lists objects of %d kinds, each of which would be listed at each poll, and %d are supported; "+
			"divide what it composes between several XRs, and back up again", xp.String(u), kinds, MaxKinds)
	}
	h.ComposedConditions, h.Environments = xp.SavedConditions(u, h.Refs), xp.SavedEnvironments(u)
	if earlier != nil {
		h.Failing = earlier.Failing // Crossplane could not report that during a hold.
	}

	return nil
}

// pin pins u, which is about to be created. The hold keeps its setting from before any hold.
func (h *Hold) pin(u *unstructured.Unstructured, earlier *Hold) error {
	inst := xp.Instance{Unstructured: u}
	h.Composition, h.Revision = NameOf(inst.Composition()), NameOf(inst.Revision())
	if earlier != nil {
		h.Paused, h.UpdatePolicy, h.Pinned = earlier.Paused, earlier.UpdatePolicy, earlier.Pinned
	} else if xp.HasAnnotation(u, xp.AnnotationPaused) {
		h.Paused = new(xp.Annotation(u, xp.AnnotationPaused))
	}
	// Without a revision nothing is composed yet, and there is nothing to pin. A hold from before
	// the first revision did not pin.
	if !h.Pinned {
		h.Pinned, h.UpdatePolicy = inst.Revision() != "", nil
		if policy, ok := inst.UpdatePolicy(); ok {
			h.UpdatePolicy = &policy
		}
	}
	if !h.Pinned {
		return nil
	}

	return inst.SetUpdatePolicy(xp.UpdateManual)
}

// saveOriginals saves the policies and status settings of u, which is about to be created, in the
// hold, and changes u. earlier is the hold of the backup; nil for none.
func (h *Hold) saveOriginals(u *unstructured.Unstructured, earlier *Hold) error {
	observe := h.Observes
	h.Observes, h.Policies = false, nil
	switch {
	case earlier != nil && earlier.Observes && xp.OnlyObserves(u):
		h.Observes, h.Policies = true, earlier.Policies
	case observe && xp.MayWrite(u):
		h.Observes = true
		_, _, err := unstructured.NestedStringSlice(u.Object, "spec", fieldPolicies)
		h.Policies, _ = xp.ManagementPolicies(u)
		if err == nil {
			err = unstructured.SetNestedStringSlice(u.Object, []string{xp.PolicyObserve}, "spec", fieldPolicies)
		}
		if err != nil {
			return fmt.Errorf("cannot make %s observe only: %w", xp.String(u), err)
		}
	}
	if earlier != nil {
		earlier.returnStatus(u)
	}
	if len(h.Status) == 0 {
		return nil
	}
	if own, ok := u.GetAnnotations()[xp.AnnotationRestoreStatus]; ok {
		h.RestoreStatus = &own
	}
	xp.Annotate(u, xp.AnnotationRestoreStatus, "true")

	return nil
}

// markSpare is how many bytes a mark may grow while it is on, by times and managers.
const markSpare = 2*maxManagers + 1<<10

// MaxKinds is the highest number of kinds that an XR's composed resources may have. Each kind costs
// a request per poll, and a user who can write an XR can list any kind.
const MaxKinds = 256

// KindsOf returns the number of kinds of what refs name.
func KindsOf(refs []xp.Ref) int {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, r := range refs {
		kinds[r.GroupVersionKind()] = true
	}

	return len(kinds)
}
