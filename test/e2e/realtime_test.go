package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// eventSources returns XRs of thirty resources each.
func eventSources(count int, release string, opens bool) *eventSource {
	n := &eventSource{shape: fleets("v2", "hives", "thirty", count), release: release, opens: opens}
	n.reason = "The plugin requests a reconcile for each event that the circuit breaker drops."

	return n
}

// fleets returns a scene of XRs that have their own kind.
func fleets(dir, name, shapes string, count int) *shape {
	size := map[string]int{"few": 3, "thirty": 30}[shapes] + 1
	if dir != "v2" {
		size++ // The claim.
	}

	return &shape{Scene: drill.Scene{Name: name, Dir: filepath.Join("testdata", dir, shapes), Count: count, Size: size * count, Drift: true}}
}

// testRealtime makes Crossplane, which does not poll, miss events. The event sources are restored with the
// default circuit breaker; nil if the version has no breaker.
func testRealtime(t *testing.T, version stack.Version, release string, hives *eventSource) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	dir := drill.Platform{Crossplane: version}.Dir()
	s := newSuite(t, version)
	down := s.few(t, s.source, drill.Platform{Namespace: "down"}, 4)
	killed := s.few(t, s.source, drill.Platform{Namespace: "killed"}, 4)
	early, bare := fleets(dir, "early", "few", 1), fleets(dir, "bare", "few", 1)
	early.reason = "An XR is restored long after its XRD."
	shapes := []*shape{early, bare}
	if hives != nil {
		shapes = append(shapes, hives.shape)
	}
	s.makeScenes(t, shapes...)
	s.backUp(t, s.source, down)
	s.backUp(t, s.source, killed)
	for _, n := range shapes {
		s.store(t, n)
	}
	s.loseSource(t, down, killed)
	first := s.target
	s.testBeginsWithoutCrossplane(t, down, release)

	second, err := stack.NewCluster(ctx, s.host, stack.Options{Name: "second", Crossplane: version, Plugin: true, VeleroArgs: oftener, CrossplaneArgs: argsFor(hives)})
	must(t, err)
	s.target = second
	s.restoreDefinitions(t, early, bare)
	began := time.Now()
	var paused time.Time
	if hives != nil {
		must(t, hives.Install(ctx, second, ""))
		must(t, second.RestartVelero(ctx))
		t.Run("CircuitBreaker", func(t *testing.T) { s.testCircuitBreaker(t, hives) })
		paused = s.pauseAll(t, hives.shape)
	}
	s.target = first
	t.Run("CrossplaneDown", func(t *testing.T) { s.testCrossplaneDown(t, down, release) })
	t.Run("CrossplaneKilled", func(t *testing.T) { s.testCrossplaneKilled(t, killed) })
	s.target = second
	s.awaitIdle(t, began)
	t.Run("XRDEarly", func(t *testing.T) {
		t.Run("VeleroAlone", func(t *testing.T) { s.testEarlyAlone(t, bare, true) })
		t.Run("WithPlugin", func(t *testing.T) { s.testEarly(t, early) })
	})
	if hives != nil {
		t.Run("EventLost", func(t *testing.T) { s.testLost(t, hives, paused) })
	}
}

func argsFor(hives *eventSource) []string {
	if hives == nil {
		return nil
	}

	return breakerDefaults
}

// makeScenes creates the objects of scenes in the source.
func (s *suite) makeScenes(t *testing.T, shapes ...*shape) {
	t.Helper()
	for _, n := range shapes {
		must(t, n.Install(t.Context(), s.source, ""))
	}
	must(t, s.source.RestartVelero(t.Context()))
	for _, n := range shapes {
		must(t, n.Make(t.Context(), s.source))
	}
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
  selector:
    matchLabels: {app: crossplane}
  template:
    metadata:
      labels: {app: crossplane}
    spec:
      containers:
      - {name: crossplane, image: "registry.invalid/crossplane:v%[1]s"}
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

// testBeginsWithoutCrossplane restores all items while Crossplane does not run.
func (s *suite) testBeginsWithoutCrossplane(t *testing.T, n *tenant, release string) {
	t.Helper()
	must(t, s.target.Stop(stack.Crossplane))
	s.deployment(t, release, 0)
	must(t, n.StartRestore(t.Context(), s.target, n.Namespace, n.Namespace))
	must(t, drill.AwaitOperations(t.Context(), s.target, n.Namespace))
}

// testCrossplaneDown starts Crossplane long after a restore: until then all is held and the
// operation names the cause, and then all is adopted.
func (s *suite) testCrossplaneDown(t *testing.T, n *tenant, release string) {
	const why, cure = "no replica of Crossplane (Deployment crossplane-system/crossplane) is ready", "kubectl -n crossplane-system"
	s.wantStuck(t, n.Namespace, func(ctx context.Context) ([]unstructured.Unstructured, error) { return n.Composites(ctx, s.target) }, why, cure)
	s.deployment(t, release, 1)
	must(t, s.target.Start(t.Context(), stack.Crossplane))
	s.awaitCompleted(t, n.Namespace)
	s.settle(t, n)
	s.wantSound(t, n)
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
			if linesWith(details, words...) == 0 {
				return fmt.Errorf("velero's output lacks %q:\n%s", words, details)
			}
			if mark := u.GetAnnotations()[annotationHold]; !hasAll(mark, words) {
				return fmt.Errorf("the mark of %s lacks %q: %s", u.GetName(), words, mark)
			}
			if !hasWarning(events, u.GetName(), words) {
				return fmt.Errorf("no Event about %s has %q", u.GetName(), words)
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

// testCrossplaneKilled kills Crossplane when the first XR is unpaused.
func (s *suite) testCrossplaneKilled(t *testing.T, n *tenant) {
	ctx := t.Context()
	var once sync.Once
	done := make(chan error, 1)
	point, err := s.target.Check(ctx, n.Namespace, checked(), func(_ context.Context, a stack.Admission) {
		if a.Old != nil && a.New.GetKind() == n.CompositeKind() && drill.Held(a.New) && paused(a.Old) && !paused(a.New) {
			once.Do(func() { done <- s.target.Kill(stack.Crossplane) })
		}
	})
	must(t, err)
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(2 * time.Minute):
		t.Fatal("no XR was unpaused")
	}
	must(t, drill.AwaitOperations(ctx, s.target, n.Namespace))
	xrs, err := n.Composites(ctx, s.target)
	must(t, err)
	free := 0
	for _, u := range xrs {
		if !drill.Held(&u) {
			t.Errorf("XR %s is adopted without Crossplane", u.GetName())
		}
		if !paused(&u) {
			free++
		}
	}
	t.Logf("Crossplane was killed with %d of %d XRs unpaused", free, len(xrs))
	must(t, point.Remove(ctx))
	must(t, s.target.Start(ctx, stack.Crossplane))
	s.awaitCompleted(t, n.Namespace)
	s.settle(t, n)
	s.wantSound(t, n)
}

// wantSettled expects a scene to be unchanged after every MR was reconciled again.
func (s *suite) wantSettled(t *testing.T, n *shape) {
	t.Helper()
	now, err := s.cloud.Journal(t.Context(), 0)
	must(t, err)
	s.testSettled(t, n, now[len(now)-1].Seq)
}

// fleetsOf lists a scene's XRs.
func (s *suite) fleetsOf(ctx context.Context, n *shape) ([]unstructured.Unstructured, error) {
	kind, namespace := "Fleet", n.Name
	if s.version.IsV1() {
		kind, namespace = "XFleet", ""
	}

	return list(ctx, s.target, schema.GroupVersionKind{Group: n.Name + ".example.org", Version: "v1alpha1", Kind: kind}, namespace, "")
}

// restoreDefinitions restores scenes' XRDs and Compositions, and waits for the XRDs.
func (s *suite) restoreDefinitions(t *testing.T, shapes ...*shape) {
	t.Helper()
	ctx := t.Context()
	for _, n := range shapes {
		name := n.Name + "-definitions"
		must(t, drill.Platform{}.StartRestore(ctx, s.target, name, n.Name, "--include-cluster-resources=true",
			"--include-resources", "compositeresourcedefinitions.apiextensions.crossplane.io,compositions.apiextensions.crossplane.io"))
		s.awaitCompleted(t, name)
		must(t, n.Offered(ctx, s.target))
	}
	must(t, s.target.RestartVelero(ctx))
}

// awaitIdle waits until Crossplane has had the time to stop watching kinds without objects.
// Versions before v1.20.0 do so each minute.
func (s *suite) awaitIdle(t *testing.T, since time.Time) {
	t.Helper()
	s.eventually(t, "the XRDs to have been there for long", s.after(since, 75*time.Second))
}

// testEarlyAlone restores an XR without the plugin, long after its XRD. synced is whether
// Crossplane must reconcile it.
func (s *suite) testEarlyAlone(t *testing.T, n *shape, synced bool) {
	ctx := t.Context()
	must(t, s.target.UsePlugin(ctx, false))
	must(t, n.StartRestore(ctx, s.target))
	s.awaitCompleted(t, n.Name)
	if synced {
		s.eventually(t, "the XR to be reconciled", func(ctx context.Context) error { return s.synced(ctx, n) })
	} else {
		s.awaitSilence(t, n)
	}
	must(t, s.target.UsePlugin(ctx, true))
}

// silence is much longer than Crossplane needs to reconcile.
const silence = 30 * time.Second

// awaitSilence expects Crossplane not to reconcile the XR, for much longer than it needs.
func (s *suite) awaitSilence(t *testing.T, n *shape) {
	t.Helper()
	began := time.Now()
	s.eventually(t, "the XR not to be reconciled", func(ctx context.Context) error {
		xrs, err := s.fleetsOf(ctx, n)
		if err == nil && len(xrs) == 0 {
			began = time.Now()
			err = errors.New("there is none")
		}
		if err != nil {
			return err
		}
		if s.synced(ctx, n) == nil {
			return stack.Never(errors.New("it was, so this test proves nothing"))
		}
		if age := time.Since(began); age < silence {
			return fmt.Errorf("it was not for %s", age)
		}

		return nil
	})
}

// synced returns nil if Crossplane has set a Synced condition on all of the scene's XRs.
func (s *suite) synced(ctx context.Context, n *shape) error {
	xrs, err := s.fleetsOf(ctx, n)
	if err != nil {
		return err
	}
	if len(xrs) == 0 {
		return errors.New("there is none")
	}
	for _, u := range xrs {
		if stack.HasCondition(&u, "Synced", "True") != nil && stack.HasCondition(&u, "Synced", "False") != nil {
			return fmt.Errorf("%s has no condition Synced", u.GetName())
		}
	}

	return nil
}

// testEarly restores an XR with the plugin, long after its XRD.
func (s *suite) testEarly(t *testing.T, n *shape) {
	must(t, n.StartRestore(t.Context(), s.target))
	s.testRestored(t, n)
	s.wantSettled(t, n)
}
