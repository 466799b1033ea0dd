package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// fleets returns a scene of XRs that have their own kind.
func fleets(dir, name, shapes string, count int) *shape {
	size := map[string]int{"few": 3, "thirty": 30}[shapes] + 1
	if dir != "v2" {
		size++ // The claim.
	}

	return &shape{Scene: drill.Scene{Name: name, Dir: filepath.Join("testdata", dir, shapes), Count: count, Size: size * count, Drift: true}}
}

// deployment creates the chart's Deployment with a status: Crossplane is only a process here.
func (s *suite) deployment(t *testing.T, version string, ready int) {
	t.Helper()
	const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: crossplane
  namespace: crossplane-system
  labels: {app: crossplane, app.kubernetes.io/part-of: crossplane, helm.sh/chart: crossplane-%[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: crossplane}}
  template:
    metadata: {labels: {app: crossplane}}
    spec: {containers: [{name: crossplane, image: "registry.invalid/crossplane:v%[1]s"}]}
`
	objects, err := stack.Parse(fmt.Appendf(nil, manifest, strings.TrimPrefix(version, "v")))
	must(t, err)
	must(t, s.target.ApplyObjects(t.Context(), objects...))
	status := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "crossplane", "namespace": "crossplane-system"},
		"status": map[string]any{"replicas": int64(1), "readyReplicas": int64(ready), "availableReplicas": int64(ready)},
	}}
	must(t, s.target.ApplyStatus(t.Context(), status))
}

// wantStuck waits until a restore names each of the XRs, the cause and the cure: in Velero's
// output, in the mark of the XR, which stays held, and in an Event.
func (s *suite) wantStuck(t *testing.T, restore string, xrs func(ctx context.Context) ([]unstructured.Unstructured, error), words ...string) {
	t.Helper()
	s.eventually(t, "restore "+restore+" to name the cause", func(ctx context.Context) error {
		all, err := xrs(ctx)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return errors.New("there are no XRs")
		}
		details, err := s.target.Velero(ctx, "restore", "describe", restore, "--details")
		if err != nil {
			return err
		}
		events, err := list(ctx, s.target, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, eventNamespace(&all[0]), "")
		if err != nil {
			return err
		}
		for _, u := range all {
			words := append([]string{u.GetName()}, words...)
			if !paused(&u) || !drill.Held(&u) {
				return stack.Never(fmt.Errorf("%s is not held: %v", u.GetName(), u.GetAnnotations()))
			}
			if mark := markOf(&u); linesWith(details, words...) == 0 || !hasAll(mark, words) || !hasWarning(events, u.GetName(), words) {
				return fmt.Errorf("velero's output, the mark or the Events lack %q:\n%s\n%s\n%v", words, details, mark, events)
			}
		}

		return nil
	})
}

// eventNamespace returns the namespace of Events about an object.
func eventNamespace(u *unstructured.Unstructured) string {
	if u.GetNamespace() != "" {
		return u.GetNamespace()
	}

	return "default"
}

// hasWarning reports whether a warning about the named object has all of the words.
func hasWarning(events []unstructured.Unstructured, name string, words []string) bool {
	for _, e := range events {
		about, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
		message, _ := e.Object["message"].(string)
		if about == name && e.Object["type"] == "Warning" && hasAll(message, words) {
			return true
		}
	}

	return false
}

// wantSettled expects a scene to be unchanged after every MR was reconciled again.
func (s *suite) wantSettled(t *testing.T, n *shape) {
	t.Helper()
	s.testSettled(t, n, s.last(t))
}

// fleetsOf lists a scene's XRs.
func (s *suite) fleetsOf(ctx context.Context, n *shape) ([]unstructured.Unstructured, error) {
	kind, namespace := "Fleet", n.Name
	if s.version.IsV1() {
		kind, namespace = "XFleet", ""
	}

	return list(ctx, s.target, schema.GroupVersionKind{Group: n.Name + ".example.org", Version: "v1alpha1", Kind: kind}, namespace, "")
}

// after returns a condition that becomes true some time after another time.
func (s *suite) after(since time.Time, wait time.Duration) func(context.Context) error {
	return func(context.Context) error {
		if age := time.Since(since); age < wait {
			return fmt.Errorf("it was %s ago", age)
		}

		return nil
	}
}
