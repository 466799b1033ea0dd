package hold

import (
	"fmt"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

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
