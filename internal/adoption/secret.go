package adoption

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// takeSecret plans to make u the controller of the Secret that it publishes its connection details
// in, and reports whether that is to do. Crossplane takes control of one without a controller only
// if what it publishes differs (crossplane internal/controller/apiextensions/composite/api.go,
// PublishConnection), and a claim refuses to read one that its XR does not control. One that was
// live before the restore can be like that.
func (t *tree) takeSecret(u *unstructured.Unstructured) bool {
	s := t.snapshot.looseSecret(u)
	if s == nil {
		return false
	}
	t.plan.Change = takeControl(u, s)

	return true
}

// causeSecret is the cause of what waits for a connection secret.
const causeSecret = "its connection secret is missing"

// missingSecret says why u, which is held, waits for its connection secret; "" if it doesn't.
// Whoever publishes in it makes another if there is none, and what the cloud tells only once, or a
// function has made up, is lost. Who may not read Secrets waits if the restore is known to have
// left this one out.
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

// lostSecret says of a connection secret which the backup has that it is missing, or why that is
// unknown, and by which command it comes back, "" if the same restore brings it.
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

// checkSecret waits for the connection secret of the XR, if that is in the backup.
func (t *tree) checkSecret(u *unstructured.Unstructured) {
	if why := cmp.Or(t.snapshot.missingSecret(u, t.hold), t.snapshot.missingStored(u, t.hold)); why != "" {
		t.wait(false, "%s: %s", xp.String(u), why)
		t.plan.Causes[len(t.plan.Causes)-1] = u.GetKind() + " " + causeSecret
	}
}

// looseSecret returns the Secret that u publishes its connection details in, if nothing controls
// that; else nil.
func (s *Snapshot) looseSecret(u *unstructured.Unstructured) *unstructured.Unstructured {
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

// takeControl makes u the controller of s, under the name of who has written the data of s, if it
// is a Secret: whoever publishes it has made u its owner. Of one without data that is who has made
// it.
func takeControl(u, s *unstructured.Unstructured) Change {
	return Change{Target: s, Patch: controllerRefPatch(u, s), Step: "make " + xp.String(u) + " its controller again", Manager: publisherOf(s)}
}

// publisherOf returns under which name the data of a connection secret were written; "" if that is
// not known, or if it is none.
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
