package adoption

import (
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
	t.plan.Change = takeControl(u, s)

	return true
}

// missingSecret returns why u, which is held, waits for its connection secret; zero if it does not
// wait. If the Secret is missing its publisher creates another, without what the cloud returns only
// once or a function has generated. If Secrets can't be read, it waits only if the restore left
// this one out.
func (s *Snapshot) missingSecret(u *unstructured.Unstructured, h *Hold) reason.Message {
	r, ok := xp.SecretRef(u)
	if !ok || !h.Secret || s.secretless || h.ownPause() || !xp.IsPaused(u) || s.Has(r) {
		return reason.Message{}
	}
	why, unknown := s.isUnknown(r)
	if unknown && h.SecretBy == "" {
		return reason.Message{}
	}

	return lostSecret(r, h.SecretBy, why, unknown)
}

// lostSecret returns the message for a connection secret that is missing, or unknown because of
// why. by is the command that restores it; "" if the same restore brings it.
func lostSecret(r xp.Ref, by, why string, unknown bool) reason.Message {
	switch {
	case unknown && by != "":
		return reason.ConnectionSecretMissing.Messagef("the restore has left out its connection %s, and Secrets can't be read: %s. Without it another would be "+
			"published; restore it: %s, and run this with the right to list Secrets", r, why, by)
	case by != "":
		return reason.ConnectionSecretMissing.Messagef("the restore has left out its connection %s, and another would be published without it; restore it: %s", r, by)
	default:
		return reason.ConnectionSecretMissing.Messagef("its connection %s was not restored, and another would be published without it; restore again", r)
	}
}

// checkSecret waits for the XR's connection secret, if the backup has it.
func (t *tree) checkSecret(u *unstructured.Unstructured) {
	if why := t.snapshot.missingSecret(u, t.hold); !why.IsZero() {
		t.wait(false, why.About(xp.String(u)))
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

// takeControl returns the Change that makes u the controller of s. If s is a Secret the patch has
// the name of the manager of its data: that one published it, and made u its owner.
func takeControl(u, s *unstructured.Unstructured) Change {
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
