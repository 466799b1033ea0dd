package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Stored is the Secret that an XR, a claim or an MR has published with a secret store. The store
// refuses an object whose UID is not on the Secret, even if nothing changes (crossplane-runtime v1
// pkg/connection, SecretToWriteMustBeOwnedBy), and a claim refuses a Secret that is not its XR's.
type Stored struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID is the UID of the object in the backup.
	UID types.UID `json:"uid"`
	// By is the command that restores the Secret, if the restore leaves it out.
	By string `json:"by,omitempty"`
}

// Ref returns the reference to the Secret.
func (s *Stored) Ref() xp.Ref {
	return xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: s.Namespace, Name: s.Name}
}

// stored returns the Secret that a held object has published with a secret store.
func (f *observedObject) stored() []xp.Ref {
	if f.hold == nil || f.hold.Stored == nil {
		return nil
	}

	return []xp.Ref{f.hold.Stored.Ref()}
}

// takeStored plans to write the current UID of u on the Secret that u has published with a secret
// store. ok is false if that is not needed.
func (s *Snapshot) takeStored(u *unstructured.Unstructured, h *Hold) (c Change, ok bool) {
	if h.Stored == nil || h.Stored.UID == "" || h.Stored.UID == u.GetUID() { // A Secret without a UID could be any object's.
		return Change{}, false
	}
	secret := s.Get(h.Stored.Ref())
	if secret == nil || secret.GetDeletionTimestamp() != nil || !isStoredBefore(secret, h) {
		return Change{}, false
	}

	return Change{
		Target: secret, Step: "write the UID of " + xp.String(u) + " on it, which may publish in it again", Manager: publisherOf(secret),
		Patch: map[string]any{"metadata": map[string]any{
			"resourceVersion": secret.GetResourceVersion(), "labels": map[string]any{xp.LabelOwnerUID: string(u.GetUID())},
		}},
	}, true
}

// isStoredBefore reports whether the Secret has the UID that the held object had in the backup.
func isStoredBefore(s *unstructured.Unstructured, h *Hold) bool {
	return xp.Label(s, xp.LabelOwnerUID) == string(h.Stored.UID)
}

// takeStored plans the same for an XR or a claim, and reports whether it is needed.
func (t *tree) takeStored(u *unstructured.Unstructured, h *Hold) bool {
	c, ok := t.snapshot.takeStored(u, h)
	if ok {
		t.plan.Change = c
	}

	return ok
}

// missingStored returns why u, which is held, waits for its Stored Secret; zero if it does not.
func (s *Snapshot) missingStored(u *unstructured.Unstructured, h *Hold) reason.Message {
	if h.Stored == nil || s.secretless || h.ownPause() || !xp.IsPaused(u) {
		return reason.Message{}
	}
	r := h.Stored.Ref()
	why, unknown := s.isUnknown(r)
	secret := s.Get(r)
	switch {
	case unknown && h.Stored.By == "":
		return reason.ConnectionSecretMissing.Messagef("its connection %s needs its current UID, and can't be read: %s; run this with the right to list "+
			"Secrets", r, why)
	case secret == nil || secret.GetDeletionTimestamp() != nil:
		return lostSecret(r, h.Stored.By, why, unknown)
	case xp.OwnsStored(u, secret) || isStoredBefore(secret, h):
		return reason.Message{}
	default:
		return reason.ConnectionSecretForeign.Messagef("its connection %s belongs to another object: its label %s is %q, so the secret store refuses this one; "+
			"if the Secret is its own, set the label to %s", r, xp.LabelOwnerUID, xp.Label(secret, xp.LabelOwnerUID), u.GetUID())
	}
}
