package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// takeSecret plans to make u the controller of its connection secret, and reports whether that is
// needed. Crossplane takes control of a Secret without a controller only if it publishes other data
// (crossplane internal/controller/apiextensions/composite/api.go, PublishConnection), and a claim
// can't read a Secret that its XR does not control. An older Secret can need it, too.
func (t *tree) takeSecret(u *unstructured.Unstructured) bool {
	s := t.snapshot.uncontrolledSecret(u)
	if s == nil {
		return false
	}
	t.plan.Change = hold.TakeControl(u, s)

	return true
}

// missingSecret returns why u, which is held, waits for its connection secret; zero if it does not
// wait. If the Secret is missing its publisher creates another, without what the cloud returns only
// once or a function has generated. If Secrets can't be read, it waits only if the restore left
// this one out.
func (s *Snapshot) missingSecret(u *unstructured.Unstructured, h *hold.Hold) reason.Message {
	r, ok := xp.SecretRef(u)
	if !ok || !h.Secret || s.secretless || h.OwnPause() || !xp.IsPaused(u) || s.Has(r) {
		return reason.Message{}
	}
	switch why, unknown := s.isUnknown(r); {
	case unknown && h.SecretBy == "":
		return reason.Message{}
	case unknown:
		return reason.ConnectionSecretMissing.Messagef("the restore has left out its connection %s, and Secrets can't be read: %s. Without it another would be "+
			"published; restore it: %s, and run this with the right to list Secrets", r, why, h.SecretBy)
	case h.SecretBy != "":
		return reason.ConnectionSecretMissing.Messagef("the restore has left out its connection %s, and another would be published without it; restore it: %s",
			r, h.SecretBy)
	default:
		return reason.ConnectionSecretMissing.Messagef("its connection %s was not restored, and another would be published without it; restore again", r)
	}
}

// uncontrolledSecret returns the connection secret of u if it has no controller; else nil.
func (s *Snapshot) uncontrolledSecret(u *unstructured.Unstructured) *unstructured.Unstructured {
	r, ok := xp.SecretRef(u)
	if !ok {
		return nil
	}
	secret := s.Get(r)
	if secret == nil || !xp.IsConnectionSecret(secret) || secret.GetDeletionTimestamp() != nil {
		return nil
	}
	if _, controlled := xp.Controller(secret); controlled {
		return nil
	}

	return secret
}

// missingInput returns why u, which is held, waits for a Secret of its provider; zero if it does
// not.
func (s *Snapshot) missingInput(u *unstructured.Unstructured, h *hold.Hold) reason.Message {
	if s.secretless || h.OwnPause() || !xp.IsPaused(u) {
		return reason.Message{}
	}
	for _, in := range h.Inputs {
		switch why, unknown := s.isUnknown(in.Ref()); {
		case unknown:
			return reason.InputSecretMissing.Messagef("its provider reads %s, and Secrets can't be read: %s; %s; %s, and run this with the right to list Secrets",
				in.Ref(), why, in.Without(), in.Next())
		case !s.Has(in.Ref()):
			return reason.InputSecretMissing.Messagef("%s", in.Missing())
		}
	}

	return reason.Message{}
}

// Inputs returns the Secrets of any type that held objects wait for, which are those that providers
// read.
func (s *Snapshot) Inputs() []xp.Ref {
	var refs []xp.Ref
	for _, f := range s.observed {
		refs = append(refs, f.inputs()...)
	}

	return refs
}

// inputs returns the Secrets that the provider of an MR reads and that its hold waits for.
func (f *observedObject) inputs() []xp.Ref {
	if f.hold == nil || !f.marked {
		return nil
	}
	refs := make([]xp.Ref, 0, len(f.hold.Inputs))
	for _, in := range f.hold.Inputs {
		refs = append(refs, in.Ref())
	}

	return refs
}
