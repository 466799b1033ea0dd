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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Hold is the content of the mark on a held object. An XR or a claim is paused and pinned to its
// CompositionRevision from its creation on. Times are in RFC 3339.
type Hold struct {
	// Format is the format of the mark (docs/dev/architecture.md); 0 means 1.
	Format int `json:"format,omitempty"`
	// Of is the object that the mark is on, as Kind.group/name; "" in early marks. A function can
	// copy all annotations of an XR to its composed resources.
	Of string `json:"of,omitempty"`
	// Restore is the Velero Restore that put the hold on, as namespace/name, and Since the time.
	Restore string `json:"restore"`
	Since   string `json:"since"`
	// Reason is why the hold is on, and the next step.
	Reason string `json:"reason"`
	// LastReported identifies the latest report, in an Event and the Reason, as internal/adoption
	// writes it; ReportedStart if there was only the first, and "" if there was none.
	LastReported string `json:"lastReported,omitempty"`
	// Polled is when the first poll wrote the mark. Velero polls a restore's operations when all
	// items are restored.
	Polled string `json:"polled,omitempty"`
	// Paused is the user's own value of crossplane.io/paused; nil if there was none.
	Paused *string `json:"paused,omitempty"`
	// Pinned means that the hold set the composition update policy to Manual. UpdatePolicy is the
	// policy before that; nil if there was none.
	Pinned       bool    `json:"pinned,omitempty"`
	UpdatePolicy *string `json:"compositionUpdatePolicy,omitempty"`
	// Composition and Revision are the names that the object referenced in the backup; "" for none.
	Composition string `json:"composition,omitempty"`
	Revision    string `json:"revision,omitempty"`
	// Unpaused is when the pause was removed for the adoption; "" before that.
	Unpaused string `json:"unpaused,omitempty"`
	// Clone is the live original that the object is a copy of; "" for none. Both would manage the
	// same external resources, so a user decides.
	Clone string `json:"cloneOf,omitempty"`
	// Quarantine means that nothing is done until a user ends the quarantine.
	Quarantine bool `json:"quarantine,omitempty"`
	// ByHand means that a user releases the object when it waits for nothing else.
	ByHand bool `json:"releaseByHand,omitempty"`
	// ByCommand means that the command hold put the hold on a live object. There is no Restore.
	ByCommand bool `json:"byCommand,omitempty"`
	// Refs are the XR's composed resources in the backup. A claim has none.
	Refs []xp.Ref `json:"resourceRefs,omitempty"`
	// ComposedConditions are the conditions that each of Refs had then; empty if not in the backup.
	ComposedConditions []xp.TrueConditions `json:"composedConditions,omitempty"`
	// Composed is Refs and ComposedConditions, packed, if an XR composes many. Key.HoldOf unpacks it,
	// HoldOf does not.
	Composed string `json:"composed,omitempty"`
	// Environments are the EnvironmentConfigs of the backup that the XR's pipeline names.
	Environments []string `json:"environmentConfigs,omitempty"`
	// Required is what the XR's CompositionRevision requires in the backup, from xp.Required.
	Required []string `json:"required,omitempty"`
	// Failing is why Crossplane could not reconcile the XR then, from FailingOf; "" if it could.
	Failing string `json:"failing,omitempty"`
	// Identity is why an MR must not be left to create an external resource; "" if it may.
	Identity xp.Identity `json:"identity,omitempty"`
	// Reported is what the provider of an MR had noted before the hold; nil if not known.
	Reported *Reported `json:"reported,omitempty"`
	// Observes means that the hold made an MR observe only. Policies are the managementPolicies
	// before that; empty if there were none.
	Observes bool     `json:"observes,omitempty"`
	Policies []string `json:"managementPolicies,omitempty"`
	// Settling is when this plugin noted that the provider of an observing MR found its external
	// resource or, with Lost, no longer finds it; "" before that.
	Settling string `json:"settling,omitempty"`
	Lost     bool   `json:"lost,omitempty"`
	// Secret means that the backup has the connection secret of an XR or MR. SecretBy is the command
	// that restores it, if the restore leaves it out. SecretWas is its name in the backup, if another.
	Secret    bool   `json:"secret,omitempty"`
	SecretBy  string `json:"secretBy,omitempty"`
	SecretWas string `json:"secretWas,omitempty"`
	// FromUID are the fields that a Composition has made from a UID; nil if there are none.
	FromUID *FromUID `json:"fromUID,omitempty"`
	// Inputs are the Secrets that the provider of an MR reads, that existed at the backup and were
	// missing at the restore.
	Inputs []Input `json:"inputs,omitempty"`
	// Owner is the XR that composed an MR, if the XR was live and not paused when the MR was
	// restored. Whether it still does shows when Crossplane makes it the controller.
	Owner *xp.Ref `json:"owner,omitempty"`
	// Status are the status fields that Velero was asked to restore. RestoreStatus is the user's
	// own value of the annotation that asks for it; nil if there was none.
	Status        []string `json:"status,omitempty"`
	RestoreStatus *string  `json:"restoreStatus,omitempty"`
	// Again means that the hold was put on again after another writer had removed it. Refs are then
	// what the XR listed at that time.
	Again bool `json:"again,omitempty"`
	// TakenOver means that another writer had created the XR, and it was given its Refs. Crossplane
	// can still write others until it has seen the pause.
	TakenOver bool `json:"takenOver,omitempty"`
	// Freed means that the object has its own settings back and can be reconciled, so only the mark
	// is left. Managers are the managers of these settings until then, from managersOf.
	Freed    bool             `json:"freed,omitempty"`
	Managers []map[string]any `json:"managers,omitempty"`
	// Fields are the managedFields of the backup, from packManagers.
	Fields string `json:"managedFields,omitempty"`
}

// ReasonSecret is the reason of the hold of an MR that publishes connection details. Its provider
// would publish before the Secret of the backup is restored. That Secret can have what the cloud
// returns only once, and Velero leaves an existing Secret as it is.
const ReasonSecret = "restored from a backup; its provider publishes no connection details until the Secret of the backup is restored [" +
	string(reason.AwaitingRestore) + "]"

const reasonRestored = "restored from a backup; Crossplane does not reconcile it until everything that it composes is restored [" +
	string(reason.AwaitingRestore) + "]"

// IsMarked reports whether u is an MR with a mark, readable or not.
func IsMarked(u *unstructured.Unstructured) bool {
	return xp.HasAnnotation(u, AnnotationHold) && xp.IsManaged(u)
}

// OwnPause reports whether a user had paused the held object.
func (h *Hold) OwnPause() bool { return h.Paused != nil && *h.Paused == "true" }

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
	earlier, err := HoldOf(u)
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
	annotations[AnnotationHold], annotations[xp.AnnotationPaused] = mark+strings.Repeat(" ", macSize+markSpare), "true"
	err = validation.ValidateAnnotationsSize(annotations)
	if err == nil && isTooLarge(mark) {
		err = errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("cannot put a hold on %s: its %d resourceRefs make a mark of %d bytes, and with its other annotations that is too much: %w; shorten "+
			"these, or divide what it composes between several XRs, and back up again", xp.String(u), len(h.Refs), len(mark), err)
	}
	annotations[AnnotationHold] = mark
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

// RemoveBackedUpHold removes a hold that u has from the backup, and gives u its own settings back,
// before u is created. It ignores a mark that can't be read.
func RemoveBackedUpHold(u *unstructured.Unstructured) error {
	h, err := HoldOf(u)
	if err != nil || h == nil {
		return nil //nolint:nilerr // A mark that can't be read is no hold.
	}
	returnAnnotation(u, AnnotationHold, nil)
	if h.Freed {
		return nil
	}
	returnAnnotation(u, xp.AnnotationPaused, h.Paused)
	h.returnStatus(u)
	h.ReturnPolicies(u)
	if !h.Pinned {
		return nil
	}

	return returnUpdatePolicy(u, h.UpdatePolicy)
}

// returnAnnotation gives u, which is about to be created, its own value of an annotation back; nil
// for none.
func returnAnnotation(u *unstructured.Unstructured, name string, own *string) {
	annotations := u.GetAnnotations()
	delete(annotations, name)
	if own != nil {
		annotations[name] = *own
	}
	u.SetAnnotations(annotations)
}

// returnUpdatePolicy is returnAnnotation for the composition update policy.
func returnUpdatePolicy(u *unstructured.Unstructured, own *string) error {
	if own == nil {
		xp.Instance{Unstructured: u}.RemoveUpdatePolicy()

		return nil
	}

	return xp.Instance{Unstructured: u}.SetUpdatePolicy(*own)
}

// Unpause returns the patch that lets Crossplane reconcile u, still pinned and marked.
func (k Key) Unpause(u *unstructured.Unstructured, h *Hold, now time.Time) map[string]any {
	p := patch(u, map[string]any{xp.AnnotationPaused: nil})
	after := *h
	after.Unpaused = now.UTC().Format(time.RFC3339) // The wait for Crossplane counts from here.
	after.Polled = cmp.Or(after.Polled, after.Unpaused)
	after.LastReported = cmp.Or(after.LastReported, ReportedStart) // A later change of the mark alone would make Crossplane reconcile it once more.
	after.keepPauseManagers(u)
	if policy, _ := (xp.Instance{Unstructured: u}).UpdatePolicy(); h.Pinned && policy != xp.UpdateManual {
		// A user has applied the manifest again, which removed the pin.
		after.repin(u, p)
	}
	set(p, k.mark(xp.RefTo(u), &after), "metadata", "annotations", AnnotationHold)

	return p
}

// MarkPatch returns the patch that writes the mark of the hold h on the live object u.
func (k Key) MarkPatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	return patch(u, map[string]any{AnnotationHold: k.mark(xp.RefTo(u), h)})
}

// PausePatch returns MarkPatch with the pause of the hold.
func (k Key) PausePatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	p := k.MarkPatch(u, h)
	set(p, "true", "metadata", "annotations", xp.AnnotationPaused)

	return p
}

// PutPatch returns the patch that puts a hold on a live object.
func (k Key) PutPatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	p := k.PausePatch(u, h)
	if inst := (xp.Instance{Unstructured: u}); h.Pinned {
		if policy, _ := inst.UpdatePolicy(); policy != xp.UpdateManual {
			set(p, xp.UpdateManual, inst.UpdatePolicyPath()...)
		}
	}

	return p
}

// ReleasePatch returns the patch that lifts the hold of u and gives the user's own settings back.
func ReleasePatch(u *unstructured.Unstructured, h *Hold) map[string]any {
	annotations := map[string]any{AnnotationHold: nil, xp.AnnotationPaused: nullable(h.Paused)}
	maps.Copy(annotations, withoutRequest(u.GetAnnotations()))
	if xp.HasAnnotation(u, xp.AnnotationMustRestore) {
		annotations[xp.AnnotationMustRestore] = nil // Velero 1.18.3 removes it, 1.18.1 does not.
	}
	p := patch(u, annotations)
	if h.Pinned {
		set(p, nullable(h.PolicyOf(u)), xp.Instance{Unstructured: u}.UpdatePolicyPath()...)
	}
	h.restoreOriginals(u, p)

	return p
}

// controllerRefPatch returns the patch that makes the live object u the controller of s. Other
// owner references of s stay.
func controllerRefPatch(u, s *unstructured.Unstructured) map[string]any {
	refs := slices.DeleteFunc(xp.Maps(s.Object, "metadata", "ownerReferences"), func(ref map[string]any) bool { return ref["uid"] == string(u.GetUID()) })
	refs = append(refs, map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName(), "uid": string(u.GetUID()), "controller": true, "blockOwnerDeletion": true,
	})
	p := versioned(s)
	set(p, refs, "metadata", "ownerReferences")

	return p
}

// versioned returns a merge patch without changes. The API server refuses it if u has changed since
// it was observed.
func versioned(u *unstructured.Unstructured) map[string]any {
	return map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()}}
}

// patch returns a merge patch of annotations.
func patch(u *unstructured.Unstructured, annotations map[string]any) map[string]any {
	p := versioned(u)
	set(p, annotations, "metadata", "annotations")

	return p
}

// nullable returns nil, which removes a field in a merge patch, for nil; else the string.
func nullable(s *string) any {
	if s == nil {
		return nil
	}

	return *s
}
