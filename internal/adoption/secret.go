package adoption

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	t.plan.Change = TakeControl(u, s)

	return true
}

// missingSecret returns why u, which is held, waits for its connection secret; zero if it does not
// wait. If the Secret is missing its publisher creates another, without what the cloud returns only
// once or a function has generated. If Secrets can't be read, it waits only if the restore left
// this one out.
func (s *Snapshot) missingSecret(u *unstructured.Unstructured, h *Hold) reason.Message {
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

// TakeControl returns the Change that makes u the controller of s. If s is a Secret the patch has
// the name of the manager of its data: that one published it, and made u its owner.
func TakeControl(u, s *unstructured.Unstructured) Change {
	return Change{Target: s, Patch: controllerRefPatch(u, s), Step: "make " + xp.String(u) + " its controller again", Manager: publisherOf(s)}
}

// publisherOf returns the manager of the data of a connection secret, or of its type if it has no
// data; "" if not known, or if s is no connection secret.
func publisherOf(s *unstructured.Unstructured) string {
	if !xp.IsConnectionSecret(s) {
		return ""
	}
	for _, path := range managedPaths(s) {
		fields := [][]string{path}
		if of := managersOf(entriesOf(s), fields); len(of) > 0 {
			return writerOf(s, of, fields)
		}
	}

	return ""
}

// An Input is a Secret that the provider of a held MR reads.
type Input struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Stored means that the backup has the Secret. By is the command that restores it, if the
	// restore leaves it out.
	Stored bool   `json:"stored,omitempty"`
	By     string `json:"by,omitempty"`
	// Was is the name of the Secret in the backup, which has the UID of an XR in it; "" if it is the
	// same.
	Was string `json:"was,omitempty"`
}

// Ref returns the reference to the Secret.
func (i Input) Ref() xp.Ref {
	return xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: i.Namespace, Name: i.Name}
}

// ReasonInput returns the reason of the hold of an MR whose provider reads a missing Secret.
// Without it a provider that generates passwords makes another one, and changes that of a live
// database (upjet's PasswordGenerator); others fail.
func ReasonInput(in Input) string {
	return reason.InputSecretMissing.Messagef("restored from a backup; %s", in.Missing()).String()
}

// missingInput returns why u, which is held, waits for a Secret of its provider; zero if it does
// not.
func (s *Snapshot) missingInput(u *unstructured.Unstructured, h *Hold) reason.Message {
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

// Missing returns the consequence of the missing Secret, and the next step.
func (i Input) Missing() string {
	is := "which its provider reads"
	if state, ok := xp.StateIn(i.Name); ok {
		is = "in which " + state.Keeper + " keeps its " + state.What
	}

	return fmt.Sprintf("%s, %s, is missing: %s; %s", i.Ref(), is, i.Without(), i.Next())
}

// Without returns the consequence of the missing Secret.
func (i Input) Without() string {
	if state, ok := xp.StateIn(i.Name); ok {
		return "without it " + state.Again
	}

	return "without it the provider fails, or generates another password than the one in use"
}

// Next returns how to get the Secret back.
func (i Input) Next() string {
	switch {
	case i.Was != "":
		return "its name comes from the UID of an XR, which has changed, and in the backup it is " + i.Was + ". Restore that, if it is missing, and copy it to " +
			i.Name
	case i.By != "":
		return "the restore has left it out; restore it: " + i.By
	case i.Stored:
		return "it was not restored; restore again"
	case xp.IsStateSecret(i.Name):
		return "it is not in the backup; restore it from another one, or, if that may happen, release this with --force"
	default:
		return "it is not in the backup; create it, with what the external resource has"
	}
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
