package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// shapesOfSecrets returns restores of one namespace whose trees publish in another, which such a
// restore does not include. Each database has a connection detail that the cloud returns only once.
func shapesOfSecrets() map[string]*shape {
	of := func(name string) drill.Scene {
		return drill.Scene{
			Dir: "secrets", Count: 2, Size: 14, Store: name + "-store", BackupArgs: []string{"--include-namespaces", name}, RestoreArgs: []string{"--include-namespaces", name},
		}
	}
	forced := of("forced")
	forced.RestoreArgs = append(forced.RestoreArgs, "--exclude-namespaces", forced.Store)

	return map[string]*shape{
		"reached": {
			reason: "A restore of a namespace includes the connection secrets of its trees in another.", Scene: of("reached"), target: "target.yaml", last: addDetails,
			check: wantReached,
		},
		"withheld": {
			reason: "A publisher waits for its connection secret, which a restore leaves out, until another restore brings it.", Scene: of("withheld"), last: addDetails,
			restoring: bringSecrets,
		},
		"forced": {
			reason: "Released without it, a provider publishes again, and a detail that the cloud returns only once is lost.", Scene: forced, target: "target.yaml", last: addDetails,
			restoring: forceWithout("another would be published without it"), check: wantPublishedAgain,
		},
	}
}

// awaitSecretsMissing waits until each database and XR of a scene is held because of its connection
// Secret or the one that its provider reads. It returns the commands that restore the Secrets.
func (s *suite) awaitSecretsMissing(t *testing.T, n *shape) []string {
	t.Helper()
	commands := map[string]bool{}
	s.eventually(t, "the databases of "+n.Name+" to name the Secrets that they wait for", func(ctx context.Context) error {
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
				SecretBy string `json:"secretBy"`
				Inputs   []struct {
					By string `json:"by"`
				} `json:"inputs"`
			}
			err := json.Unmarshal([]byte(markOf(&u)), &mark)
			by := mark.SecretBy
			if len(mark.Inputs) == 1 {
				by = mark.Inputs[0].By
			}
			if err != nil || by == "" {
				return fmt.Errorf("%s is not held because of a Secret: %v", u.GetName(), u.GetAnnotations())
			}
			commands[by] = true
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

// explains returns an error unless the mark of each XR of a scene has the text.
func (s *suite) explains(ctx context.Context, n *shape, what string) error {
	xrs, err := list(ctx, s.target, schema.GroupVersionKind{Group: n.Name + ".example.org", Version: "v1alpha1", Kind: "XShop"}, "", "")
	if err != nil {
		return err
	}
	if len(xrs) != n.Count {
		return fmt.Errorf("there are %v", names(xrs))
	}
	for _, u := range xrs {
		if mark := u.GetAnnotations()[annotationHold]; !strings.Contains(mark, what) {
			return fmt.Errorf("the mark of %s does not name %s: %s", u.GetName(), what, mark)
		}
	}

	return nil
}

// bringSecrets runs the commands that the holds name.
func bringSecrets(t *testing.T, s *suite, n *shape) {
	t.Helper()
	commands := s.awaitSecretsMissing(t, n)
	want := "velero restore create --from-backup " + n.Name + " --include-namespaces " + n.Store + " --include-resources secrets"
	if !slices.Equal(commands, []string{want}) {
		t.Errorf("The secrets come back by %q, not %q", commands, want)
	}
	for _, c := range commands {
		_, err := s.target.Velero(t.Context(), strings.Fields(c)[1:]...)
		must(t, err)
	}
}

// forceWithout returns a function that releases objects without their Secrets, and expects the
// output to give the consequence.
func forceWithout(says string) func(t *testing.T, s *suite, n *shape) {
	return func(t *testing.T, s *suite, n *shape) {
		t.Helper()
		s.awaitSecretsMissing(t, n)
		r := command(t, s.target, "release", "--restore", n.Name, "--force", "--yes")
		if said := r.stdout + r.stderr; r.code != 0 || !strings.Contains(said, says) {
			t.Errorf("release --force does not give the consequence: %+v", r)
		}
	}
}

// wantReached expects a scene to be unchanged, except for the managers of each database's secret.
// The plugin restores its controller after both exist; two managers have written its data, and
// nothing records which of them is the owner.
func wantReached(t *testing.T, _ *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	without := func(p drill.Picture) drill.Picture {
		p = maps.Clone(p)
		for name, l := range p.Only("-database") {
			l.Managers = nil
			p[name] = l
		}

		return p
	}
	wantSame(t, n, without(n.picture), without(after))
}

// wantPublishedAgain is the control: without this loss the other scenes prove nothing.
func wantPublishedAgain(t *testing.T, _ *suite, n *shape, after drill.Picture, _ []api.Entry) {
	t.Helper()
	has := func(p drill.Picture) map[string]bool {
		keys := map[string]bool{}
		for name, l := range p.Only("-database") {
			data, _, _ := unstructured.NestedMap(map[string]any{"fields": l.Fields}, "fields", "data")
			_, root := data["root"]
			keys[name] = root
		}

		return keys
	}
	before, now := has(n.picture), has(after)
	if len(before) != n.Count || len(now) != n.Count {
		t.Errorf("The scene has the secrets %v, and had %v", now, before)
	}
	for name, root := range now {
		if root || !before[name] {
			t.Errorf("%s\nIt is not lost from %s", n.reason, name)
		}
	}
}
