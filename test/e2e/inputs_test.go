package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// shapesOfInputs returns restores of one namespace whose databases have their passwords in Secrets
// of another namespace, which the provider created. If the Secret is missing, the provider
// generates another password and sets it on the existing database.
func shapesOfInputs() map[string]*shape {
	of := func(name string) drill.Scene {
		return drill.Scene{Dir: "passwords", Count: 2, Size: 6, Store: name + "-store", RestoreArgs: []string{"--include-namespaces", name}}
	}

	return map[string]*shape{
		"passwords": {
			reason: "A managed resource waits for the Secret that its provider reads, and the provider generates no other password.", Scene: of("passwords"), target: "target.yaml",
			restoring: bringSecrets, check: wantPasswords,
		},
		"rotated": {
			reason: "Released without it, a provider changes the password of a database.", Scene: of("rotated"), target: "target.yaml",
			restoring: forceWithout("generates another password than the one in use"), check: wantRotated,
		},
	}
}

// rotations returns a scene's external resources that were updated since the backup.
func (s *suite) rotations(t *testing.T, n *shape) map[string]bool {
	t.Helper()
	entries, err := s.cloud.Journal(t.Context(), n.ledger.Seq, api.Update)
	must(t, err)
	rotated := map[string]bool{}
	for _, e := range entries {
		if id := string(e.Kind) + " " + e.ID; n.ledger.External[id] {
			rotated[id] = true
		}
	}

	return rotated
}

// wantPasswords expects a scene to be unchanged, also in the cloud.
func wantPasswords(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	if rotated := s.rotations(t, n); len(rotated) > 0 || len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v, %v", n.reason, rotated, changes)
	}
	wantSame(t, n, n.picture, after)
}

// wantRotated is the control: without this loss the other scene proves nothing.
func wantRotated(t *testing.T, s *suite, n *shape, _ drill.Picture, changes []api.Entry) {
	t.Helper()
	if rotated := s.rotations(t, n); len(rotated) != n.Count || len(changes) > 0 {
		t.Errorf("%s\nPasswords changed: %v of %d; created or deleted: %v", n.reason, rotated, n.Count, changes)
	}
}
