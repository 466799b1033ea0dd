package adoption

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

const causeSecret = "its connection secret is missing"

// missingSecret returns why u, which is held, waits for its connection secret; "" if it does not
// wait. If the Secret is missing its publisher creates another, without what the cloud returns only
// once or a function has generated. If Secrets can't be read, it waits only if the restore left
// this one out.
func (s *Snapshot) missingSecret(u *unstructured.Unstructured, h *Hold) string {
	r, ok := xp.SecretRef(u)
	if !ok || !h.Secret || s.secretless || h.ownPause() || !xp.IsPaused(u) || s.Has(r) {
		return ""
	}
	why, unknown := s.isUnknown(r)
	if unknown && h.SecretBy == "" {
		return ""
	}

	return lostSecret(r, h.SecretBy, why, unknown)
}

// lostSecret returns the message for a connection secret that is missing, or unknown because of
// why. by is the command that restores it; "" if the same restore brings it.
func lostSecret(r xp.Ref, by, why string, unknown bool) string {
	switch {
	case unknown && by != "":
		return fmt.Sprintf("its connection %s is in the backup and the restore has left it out, and whether it has come back can't be read: %s. If not, another "+
			"would be published, without what is only in that one; bring it back: %s, and run this with the right to list Secrets", r, why, by)
	case by != "":
		return fmt.Sprintf("its connection %s is in the backup and the restore has left it out; another would be published, without what is only in that one; bring "+
			"it back: %s", r, by)
	default:
		return fmt.Sprintf("its connection %s is in the backup and was not restored; another would be published, without what is only in that one; restore again", r)
	}
}

// checkSecret waits for the XR's connection secret, if the backup has it.
func (t *tree) checkSecret(u *unstructured.Unstructured) {
	if why := cmp.Or(t.snapshot.missingSecret(u, t.hold), t.snapshot.missingStored(u, t.hold)); why != "" {
		t.wait(false, "%s: %s", xp.String(u), why)
		t.plan.Causes[len(t.plan.Causes)-1] = u.GetKind() + " " + causeSecret
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
func publisherOf(s *unstructured.Unstructured) (manager string) {
	if !xp.IsConnectionSecret(s) {
		return ""
	}
	for _, path := range managedPaths(s) {
		fields := [][]string{path}
		of := managersOf(entriesOf(s), fields)
		if len(of) == 1 && writesAs(s, of[0], fields) {
			manager, _ = of[0]["manager"].(string)
		}
		if len(of) > 0 {
			break
		}
	}

	return manager
}
