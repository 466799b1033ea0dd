package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// shapesOfInputs are restores of one namespace whose databases have their passwords in Secrets in another, where the provider has made them. It makes another
// one where there is none, and the database that exists gets that.
func shapesOfInputs() map[string]*shape {
	of := func(name string) drill.Scene {
		return drill.Scene{Dir: "passwords", Count: 2, Size: 6, Store: name + "-store", RestoreArgs: []string{"--include-namespaces", name}}
	}

	return map[string]*shape{
		"passwords": {
			reason: "A managed resource waits for the Secret that its provider reads, and nobody makes another password.", Scene: of("passwords"), target: "target.yaml",
			restoring: bringInputs, check: wantPasswords,
		},
		"rotated": {
			reason: "Let go without it, a provider changes the password of a database.", Scene: of("rotated"), target: "target.yaml",
			restoring: forceWithoutInputs, check: wantRotated,
		},
	}
}

// awaitInputsMissing waits until each database of a scene is held because of the Secret that its provider reads, and its XR says so, and returns how these come
// back.
func (s *suite) awaitInputsMissing(t *testing.T, n *shape) []string {
	t.Helper()
	commands := map[string]bool{}
	s.eventually(t, "the databases of "+n.Name+" to say what they wait for", func(ctx context.Context) error {
		databases, err := list(ctx, s.target, schema.GroupVersionKind{Group: "cloud.example.org", Version: "v1alpha1", Kind: "Database"}, "", "")
		if err != nil {
			return err
		}
		found := 0
		for _, u := range databases {
			if !strings.HasPrefix(u.GetName(), n.Name+"-") {
				continue
			}
			found++
			var mark struct {
				Inputs []struct {
					By string `json:"by"`
				} `json:"inputs"`
			}
			if err := json.Unmarshal([]byte(u.GetAnnotations()[annotationHold]), &mark); err != nil || len(mark.Inputs) != 1 {
				return fmt.Errorf("%s is not held because of its password: %v", u.GetName(), u.GetAnnotations())
			}
			commands[mark.Inputs[0].By] = true
		}
		if found != n.Count {
			return fmt.Errorf("there are %d databases", found)
		}
		r, err := get(ctx, s.target, schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Restore"}, "velero", n.Name)
		if err == nil && drill.Phase(r) != "WaitingForPluginOperations" {
			err = fmt.Errorf("the Restore is %s", drill.Phase(r))
		}
		if err != nil {
			return err
		}

		return s.explains(ctx, n, n.Store+"/")
	})

	return slices.Sorted(maps.Keys(commands))
}

// bringInputs does what the holds say.
func bringInputs(t *testing.T, s *suite, n *shape) {
	t.Helper()
	commands := s.awaitInputsMissing(t, n)
	want := "velero restore create --from-backup " + n.Name + " --include-namespaces " + n.Store + " --include-resources secrets"
	if !slices.Equal(commands, []string{want}) {
		t.Errorf("The passwords come back by %q, not %q", commands, want)
	}
	for _, c := range commands {
		_, err := s.target.Velero(t.Context(), strings.Fields(c)[1:]...)
		must(t, err)
	}
}

// forceWithoutInputs lets go what waits for a password.
func forceWithoutInputs(t *testing.T, s *suite, n *shape) {
	t.Helper()
	s.awaitInputsMissing(t, n)
	r := command(t, s.target, "release", "--restore", n.Name, "--force", "--yes")
	if said := r.stdout + r.stderr; r.code != 0 || !strings.Contains(said, "makes another password than the one that is in use") {
		t.Errorf("release --force does not say what comes of it: %+v", r)
	}
}

// rotations returns what of a scene was updated in the cloud since it was backed up.
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

// wantPasswords wants a scene to be what it was, also in the cloud.
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
		t.Errorf("%s\nThat was so of %v of %d, and made or deleted were %v", n.reason, rotated, n.Count, changes)
	}
}
