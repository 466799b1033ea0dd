package adoption

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Hold is what the marker on a held XR or claim says. A held object is paused and pinned to a
// CompositionRevision from its creation on.
type Hold struct {
	// Format is how the mark is to be read, as docs/formats.md has it; 0 is 1.
	Format int `json:"format,omitempty"`
	// Of is the object that it is on, as Kind.group/name; "" in marks from before. A function can
	// copy all annotations of an XR onto what it composes.
	Of string `json:"of,omitempty"`
	// Restore is the Velero Restore that put the hold on, as namespace/name.
	Restore string `json:"restore"`
	// Since is when, in RFC 3339.
	Since string `json:"since"`
	// Reason is why the hold is on, and the next step, for a person.
	Reason string `json:"reason"`
	// LastReported says which Causes somebody was told of last, with the Reason and in an Event; ""
	// if nobody was.
	LastReported string `json:"told,omitempty"`
	// Polled is when that was written first, in RFC 3339: Velero asks after a restore's operations
	// when it has brought all back.
	Polled string `json:"polled,omitempty"`
	// Paused is the person's own value of crossplane.io/paused; nil if they had none.
	Paused *string `json:"paused,omitempty"`
	// Pinned says that the composition update policy was set to Manual, and UpdatePolicy which it
	// was before; nil if there was none.
	Pinned       bool    `json:"pinned,omitempty"`
	UpdatePolicy *string `json:"compositionUpdatePolicy,omitempty"`
	// Composition and Revision are the names of those that it followed when it was backed up; "" if
	// there were none.
	Composition string `json:"composition,omitempty"`
	Revision    string `json:"revision,omitempty"`
	// Unpaused is when Crossplane was let reconcile it, in RFC 3339; "" if it was not yet.
	Unpaused string `json:"unpaused,omitempty"`
	// Clone is the object that this one is a copy of, if that is alive: then both would manage the
	// same external resources, and what is done about it is up to a person.
	Clone string `json:"cloneOf,omitempty"`
	// Quarantine says that nothing is done about it until a person ends that.
	Quarantine bool `json:"quarantine,omitempty"`
	// ByHand says that a person lets it go when all that it waits for is there, and not the
	// restore.
	ByHand bool `json:"releaseByHand,omitempty"`
	// Refs is what the XR composed when it was backed up. A claim has none.
	Refs []xp.Ref `json:"resourceRefs,omitempty"`
	// ComposedConditions is how well each of them was then; empty if the backup doesn't say.
	ComposedConditions []xp.TrueConditions `json:"well,omitempty"`
	// Composed is both, packed, in the mark of an XR that composes many; "" if they are not, as in
	// every hold that was read.
	Composed string `json:"composed,omitempty"`
	// Environments are the EnvironmentConfigs of the backup that the XR's pipeline names.
	Environments []string `json:"environmentConfigs,omitempty"`
	// Required is what the XR's CompositionRevision requires in the backup, as xp.Required returns
	// it.
	Required []string `json:"required,omitempty"`
	// Failing is how Crossplane could not reconcile the XR then, as FailingOf returns it; "" if it
	// could.
	Failing string `json:"failing,omitempty"`
	// Identity is why an MR must not be left to create; "" if it may.
	Identity xp.Identity `json:"identity,omitempty"`
	// Observes says that an MR was made to observe only, and Policies what its managementPolicies
	// were before; empty if there were none.
	Observes bool     `json:"observes,omitempty"`
	Policies []string `json:"managementPolicies,omitempty"`
	// Settling is when it was noted that the provider of an MR that only observes has found its
	// external resource or, if it is Lost, does not find it any more, in RFC 3339; "" if it never
	// has.
	Settling string `json:"settling,omitempty"`
	Lost     bool   `json:"lost,omitempty"`
	// Secret says that the backup has the connection secret of an XR or MR, and SecretBy by which
	// command that comes back, if the restore leaves it out.
	Secret   bool   `json:"secret,omitempty"`
	SecretBy string `json:"secretBy,omitempty"`
	// Stored is what it has published with a secret store; nil if it has not.
	Stored *Stored `json:"stored,omitempty"`
	// Inputs are the Secrets that the provider of an MR reads, that there were when it was backed
	// up, and that were missing when it was restored.
	Inputs []Input `json:"inputs,omitempty"`
	// Owner is the XR that composed an MR, if it was at work when that came back: whether it still
	// does is not known before Crossplane makes it the controller.
	Owner *xp.Ref `json:"owner,omitempty"`
	// Status are the fields of the status that Velero was asked to restore, and RestoreStatus the
	// person's own value of the annotation that asks for it; nil if they had none.
	Status        []string `json:"status,omitempty"`
	RestoreStatus *string  `json:"restoreStatus,omitempty"`
	// Again says that it was put on again after somebody had taken it off, so that Refs are what
	// the XR listed then.
	Again bool `json:"again,omitempty"`
	// TakenOver says that somebody else had made the XR, which was given its Refs. Until Crossplane
	// has seen the pause it can write others.
	TakenOver bool `json:"takenOver,omitempty"`
	// Freed says that it has its own settings back and nothing keeps it from being reconciled, so
	// that only the mark is left to take off; Managers are who has managed these settings until
	// then, as Managers returns them.
	Freed    bool  `json:"freed,omitempty"`
	Managers []any `json:"managers,omitempty"`
	// Fields are the managedFields of the backup, as packManagers returns them.
	Fields string `json:"managedFields,omitempty"`
}

// ReasonSecret is why an MR that publishes connection details is held: a provider would publish
// before the Secret of the backup is there, which may have what the cloud told only once, and
// Velero leaves what exists as it is.
const ReasonSecret = "restored from a backup; its provider is kept from publishing connection details until the Secret of the backup is back. " +
	lifted

const reasonRestored = "restored from a backup; Crossplane is kept from reconciling this until everything it composes is back. " + lifted

// lifted is who lifts a hold, unless a person does.
const lifted = "The restore's operation lifts the hold"

// IsMarked reports whether u is an MR with the mark of a hold, readable or not.
func IsMarked(u *unstructured.Unstructured) bool {
	return xp.HasAnnotation(u, AnnotationHold) && xp.IsManaged(u) && !xp.IsComposite(u)
}

// ownPause reports whether a person had paused what is held.
func (h *Hold) ownPause() bool { return h.Paused != nil && *h.Paused == "true" }

// Put puts a hold on u, which is about to be created: an XR or a claim until it is adopted, or
// anything else that must not start to work by itself. Of the given hold it takes the Restore,
// Since, Clone, Quarantine, ByHand, Required, Failing, Identity, Observes, Secret, SecretBy,
// Stored, Inputs, Owner, Status and Reason; an empty Reason stands for that of an XR, and a
// quarantine has its own. The settings that it changes are kept in the marker. A marker that u
// brings along means that it was backed up while it was held: then that one has the person's own
// settings. It fails if the resourceRefs can't be read, with ErrNewer if that marker can't, and if
// the mark would be too large to be stored.
func Put(u *unstructured.Unstructured, of Hold) (*Hold, error) {
	h := &Hold{
		Of: markedOf(u), Restore: of.Restore, Since: of.Since, Clone: of.Clone, Quarantine: of.Quarantine, Secret: of.Secret, SecretBy: of.SecretBy,
		Stored: of.Stored, Inputs: of.Inputs, Owner: of.Owner, Reason: cmp.Or(of.Reason, reasonRestored),
	}
	h.awaitConsentOf(of)
	earlier, err := HoldOf(u)
	if errors.Is(err, ErrNewer) {
		return nil, fmt.Errorf("cannot put a hold on %s, which had one when it was backed up: %w; %s, and restore it again", xp.String(u), err, HowToRead)
	}
	if err != nil {
		// What can't be read is not this plugin's, or is damaged; what it brings along must come
		// back all the same.
		h.Reason += ". It had another mark that could not be read, and lost it: " + err.Error()
	}
	if earlier != nil && earlier.Freed {
		earlier = nil // It has its own settings.
	}
	if err := h.pin(u, earlier); err != nil {
		return nil, err
	}
	if xp.IsComposite(u) {
		if h.Refs, err = xp.CompositeFrom(u).SavedRefs(); err != nil {
			return nil, err
		}
		if kinds := kindsOf(h.Refs); kinds > maxKinds {
			return nil, fmt.Errorf("cannot put a hold on %s: it lists objects of %d kinds, each of which would be listed at each poll, and %d are supported; "+
				"divide what it composes between several XRs, and back up again", xp.String(u), kinds, maxKinds)
		}
		h.ComposedConditions, h.Failing, h.Environments = xp.SavedConditions(u, h.Refs), of.Failing, xp.SavedEnvironments(u)
		h.Required = of.Required
		if earlier != nil {
			h.Failing = earlier.Failing // While it was held nobody could say so.
		}
	}
	if err := h.saveOriginals(u, of, earlier); err != nil {
		return nil, err
	}
	h.Fields = packManagers(u)
	b, err := h.encode(xp.RefTo(u))
	if err != nil {
		return nil, err
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	dropRequest(annotations)
	annotations[AnnotationHold], annotations[xp.AnnotationPaused] = string(b)+strings.Repeat(" ", macSize+markSpare), "true"
	if err := validation.ValidateAnnotationsSize(annotations); err != nil {
		return nil, fmt.Errorf("cannot put a hold on %s: its %d resourceRefs make a mark of %d bytes, and with its other annotations that is too much: %w; shorten "+
			"these, or divide what it composes between several XRs, and back up again", xp.String(u), len(h.Refs), len(b), err)
	}
	annotations[AnnotationHold] = string(b)
	u.SetAnnotations(annotations)

	return h, nil
}

// pin pins u, which is about to be created, and has the hold keep what it had before, or before an
// earlier hold.
func (h *Hold) pin(u *unstructured.Unstructured, earlier *Hold) error {
	inst := xp.Instance{Unstructured: u}
	h.Composition, h.Revision = nameOf(inst.Composition()), nameOf(inst.Revision())
	if earlier != nil {
		h.Paused, h.UpdatePolicy, h.Pinned = earlier.Paused, earlier.UpdatePolicy, earlier.Pinned
	} else if xp.HasAnnotation(u, xp.AnnotationPaused) {
		h.Paused = new(xp.Annotation(u, xp.AnnotationPaused))
	}
	// Without a revision nothing was composed yet, so there is nothing to hold on to. A hold from
	// before the first revision did not pin.
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

// markSpare is by how many bytes a mark may grow while it is on: by times, and by who managed
// settings.
const markSpare = 2*maxManagers + 1<<10

// maxKinds is of how many kinds the objects can be that an XR composes. Each kind costs a request
// at each poll, and whoever can write an XR can list any.
const maxKinds = 256

func kindsOf(refs []xp.Ref) int {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, r := range refs {
		kinds[r.GroupVersionKind()] = true
	}

	return len(kinds)
}

// RemoveBackedUpHold takes a hold that u brings along from a backup off it, and gives it its own
// settings back, before it is created. A mark that can't be addRead is no hold.
func RemoveBackedUpHold(u *unstructured.Unstructured) error {
	h, err := HoldOf(u)
	if err != nil || h == nil {
		return nil //nolint:nilerr // It is not this plugin's.
	}
	annotations := u.GetAnnotations()
	delete(annotations, AnnotationHold)
	if h.Freed {
		u.SetAnnotations(annotations)

		return nil
	}
	delete(annotations, xp.AnnotationPaused)
	if h.Paused != nil {
		annotations[xp.AnnotationPaused] = *h.Paused
	}
	u.SetAnnotations(annotations)
	h.returnStatus(u)
	h.returnPolicies(u)
	if !h.Pinned {
		return nil
	}
	if h.UpdatePolicy == nil {
		xp.Instance{Unstructured: u}.RemoveUpdatePolicy()

		return nil
	}

	return xp.Instance{Unstructured: u}.SetUpdatePolicy(*h.UpdatePolicy)
}

// unpause is the patch that lets Crossplane reconcile u, still pinned and marked.
func (k Key) unpause(u *unstructured.Unstructured, h *Hold, now time.Time) map[string]any {
	annotations := map[string]any{xp.AnnotationPaused: nil}
	p := patch(u, annotations)
	after := *h
	after.Unpaused = now.UTC().Format(time.RFC3339) // How long Crossplane takes is told by it.
	after.Polled = cmp.Or(after.Polled, after.Unpaused)
	after.LastReported = cmp.Or(after.LastReported, heldNoticeStep) // To mark that later, by itself, is a change that has Crossplane reconcile it once more.
	after.leavePause(u)
	if policy, _ := (xp.Instance{Unstructured: u}).UpdatePolicy(); h.Pinned && policy != xp.UpdateManual {
		// Whoever has applied its manifest again has taken the pin off.
		after.repin(u, p)
	}
	if mark, err := k.mark(xp.RefTo(u), &after); err == nil {
		annotations[AnnotationHold] = mark
	}

	return p
}

// releasePatch is the patch that takes the hold off u and gives the person's own settings back.
func releasePatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	annotations := map[string]any{AnnotationHold: nil, xp.AnnotationPaused: nullable(h.Paused)}
	maps.Copy(annotations, withoutRequest(u))
	if xp.HasAnnotation(u, xp.AnnotationMustRestore) {
		annotations[xp.AnnotationMustRestore] = nil // Velero 1.18.3 takes it off, and 1.18.1 does not.
	}
	p := patch(u, annotations)
	if h.Pinned {
		maps.Copy(p, xp.Instance{Unstructured: u}.Field("compositionUpdatePolicy", nullable(h.policyOf(u))))
	}
	h.restoreOriginals(u, p)

	return p
}

// controllerRefPatch is the patch that makes the live owner u the controller of s, beside what
// other owners s has.
func controllerRefPatch(u, s *unstructured.Unstructured) map[string]any {
	refs, _, _ := unstructured.NestedSlice(s.Object, "metadata", "ownerReferences")
	refs = slices.DeleteFunc(refs, func(ref any) bool {
		m, ok := ref.(map[string]any)

		return ok && m["uid"] == string(u.GetUID())
	})
	refs = append(refs, map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName(), "uid": string(u.GetUID()), "controller": true, "blockOwnerDeletion": true,
	})

	return map[string]any{"metadata": map[string]any{"resourceVersion": s.GetResourceVersion(), "ownerReferences": refs}}
}

// Explain returns the patch that writes a reason, which says what to do next, into the hold that is
// on u, and with it what somebody was told.
func (k Key) Explain(u *unstructured.Unstructured, reason, told string) (map[string]any, error) {
	h, err := k.HoldOf(u)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, fmt.Errorf("cannot explain the hold of %s: it has none", xp.String(u))
	}

	return (&observedObject{Ref: xp.RefTo(u), version: u.GetResourceVersion(), key: k, hold: h}).explain(reason, told, time.Time{})
}

// explain is Explain for what is known.
func (f *observedObject) explain(reason, told string, now time.Time) (map[string]any, error) {
	h := *f.hold
	h.Reason, h.LastReported = reason, told
	if h.Polled == "" && !now.IsZero() {
		h.Polled = now.UTC().Format(time.RFC3339)
	}
	mark, err := f.key.mark(f.Ref, &h)
	if err != nil {
		return nil, err
	}

	return patch(f.identity(), map[string]any{AnnotationHold: mark}), nil
}

// patch is a merge patch of annotations that the API server refuses if u has changed since it was
// observed.
func patch(u *unstructured.Unstructured, annotations map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion(), "annotations": annotations}}
}

// nullable turns an unset string into the null that removes a field in a merge patch.
func nullable(s *string) any {
	if s == nil {
		return nil
	}

	return *s
}
