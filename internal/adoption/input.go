package adoption

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An Input is a Secret that the provider of a held MR reads.
type Input struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Stored says that the backup has it, and By by which command that comes back, if the restore
	// leaves it out.
	Stored bool   `json:"stored,omitempty"`
	By     string `json:"by,omitempty"`
}

// Ref names the Secret.
func (i Input) Ref() xp.Ref {
	return xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: i.Namespace, Name: i.Name}
}

// ReasonInput is why an MR is held whose provider reads a Secret that is not there: providers that
// make passwords make another one then, and change that of a database that is there (upjet's
// PasswordGenerator), and others fail.
func ReasonInput(in Input) string { return "restored from a backup; " + in.missing() }

// causeInput is the cause of what waits for a Secret that a provider reads.
const causeInput = "a Secret that its provider reads is missing"

// waitInput is why an MR is held that nobody has looked for the Secrets of.
const waitInput = "it is held until the Secrets that its provider reads are there"

// missingInput says why u, which is held, waits for a Secret that its provider reads; "" if it
// doesn't.
func (s *Snapshot) missingInput(u *unstructured.Unstructured, h *Hold) string {
	if s.secretless || h.ownPause() || !xp.IsPaused(u) {
		return ""
	}
	for _, in := range h.Inputs {
		if s.Has(in.Ref()) {
			continue
		}
		if why, unknown := s.isUnknown(in.Ref()); unknown {
			return fmt.Sprintf("whether %s is there, which its provider needs, can't be read: %s. If not, %s; %s, and run this with the right to list Secrets", in.Ref(),
				why, in.without(), in.next())
		}

		return in.missing()
	}

	return ""
}

// missing says what comes of it that the Secret is missing, and what to do.
func (i Input) missing() string {
	is := "which its provider reads, is missing"
	if i.isRelease() {
		is = "in which Helm keeps its release, is missing"
	}

	return fmt.Sprintf("%s, %s: %s; %s", i.Ref(), is, i.without(), i.next())
}

// isRelease reports whether it is one in which Helm keeps a release.
func (i Input) isRelease() bool { return xp.IsReleaseSecret(i.Name) }

// without is what comes of it that the Secret is missing.
func (i Input) without() string {
	if i.isRelease() {
		return "without it " + xp.InstalledAgain
	}

	return "without it the provider fails, or makes another password than the one that is in use"
}

// next says how the Secret comes back.
func (i Input) next() string {
	switch {
	case i.By != "":
		return "it is in the backup, and the restore has left it out; bring it back: " + i.By
	case i.Stored:
		return "it is in the backup, and was not restored; restore again"
	case i.isRelease():
		return "it is not in the backup; bring it back from another one, or, if the chart may be installed again, let this go with release --force"
	default:
		return "it is not in the backup; make it, with what the external resource has"
	}
}

// Inputs returns the Secrets of any type that somebody waits for: because providers read them, or
// because they were published with a secret store.
func (s *Snapshot) Inputs() []xp.Ref {
	var refs []xp.Ref
	s.each(func(f *observedObject) { refs = append(append(refs, f.inputs()...), f.stored()...) })

	return refs
}

// inputs are the Secrets that the provider of an MR reads and that its hold waits for.
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
