//go:build matrix

package e2e

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// TestMatrixRealtime restores while Crossplane does not run, and starts it long after: until then
// all is held and the operation names the cause, and then all is adopted.
func TestMatrixRealtime(t *testing.T) {
	for version, release := range map[stack.Version]string{
		stack.V1: build.CrossplaneV1, stack.V2: build.CrossplaneV2, stack.V20: build.CrossplaneV20, stack.V24: build.CrossplaneV24,
	} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s := newSuite(t, version)
			n := s.few(t, s.source, drill.Platform{Namespace: "down"}, 4)
			s.backUp(t, s.source, n)
			s.loseSource(t, n)
			must(t, s.target.Stop(stack.Crossplane))
			s.deployment(t, release, 0)
			must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
			must(t, drill.AwaitOperations(ctx, s.target, n.Namespace))
			s.wantStuck(t, n.Namespace, func(ctx context.Context) ([]unstructured.Unstructured, error) { return n.Composites(ctx, s.target) },
				"no replica of Crossplane (Deployment crossplane-system/crossplane) is ready", "kubectl -n crossplane-system")
			s.deployment(t, release, 1)
			must(t, s.target.Start(ctx, stack.Crossplane))
			s.awaitCompleted(t, n.Namespace)
			s.settle(t, n)
			s.wantSound(t, n)
		})
	}
}

// newFleets backs scenes up in a source that is lost, and starts a target without their platforms.
func newFleets(t *testing.T, version stack.Version, args []string, shapes ...*shape) *suite {
	t.Helper()
	ctx := t.Context()
	o := stack.Options{Name: "source", Crossplane: version, Plugin: true, VeleroArgs: oftener}
	s := newStageOf(t, o)
	var err error
	s.source, err = stack.NewCluster(ctx, s.host, o)
	must(t, err)
	for _, n := range shapes {
		must(t, n.Install(ctx, s.source, ""))
	}
	must(t, s.source.RestartVelero(ctx))
	for _, n := range shapes {
		must(t, n.Make(ctx, s.source))
	}
	for _, n := range shapes {
		s.store(t, n)
	}
	must(t, s.source.Destroy())
	o.Name, o.CrossplaneArgs = "target", args
	s.target, err = stack.NewCluster(ctx, s.host, o)
	must(t, err)

	return s
}

// TestMatrixCircuitBreaker restores XRs of thirty resources each, whose many events open the
// circuit breaker, so that Crossplane misses that they are unpaused. Crossplane v2.4 has one event
// where earlier versions have one for each reference, so there its breaker opens after fewer.
func TestMatrixCircuitBreaker(t *testing.T) {
	for version, c := range map[stack.Version]struct {
		release string
		args    []string
	}{
		stack.V2:  {release: build.CrossplaneV2, args: []string{"--circuit-breaker-burst=100", "--circuit-breaker-refill-rate=1"}}, // The defaults.
		stack.V24: {release: build.CrossplaneV24, args: []string{"--circuit-breaker-burst=20", "--circuit-breaker-refill-rate=0.1"}},
	} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			n := fleets("v2", "hives", "thirty", 6)
			n.reason = "The plugin requests a reconcile for each event that the circuit breaker drops."
			s := newFleets(t, version, c.args, n)
			must(t, n.Install(t.Context(), s.target, ""))
			must(t, s.target.RestartVelero(t.Context()))
			s.deployment(t, c.release, 1)
			t.Run("Adopted", func(t *testing.T) { s.testCircuitBreaker(t, n) })
			t.Run("EventLost", func(t *testing.T) { s.testLost(t, n) })
		})
	}
}

// testCircuitBreaker restores XRs while their circuit breakers are open.
func (s *suite) testCircuitBreaker(t *testing.T, n *shape) {
	ctx := t.Context()
	must(t, n.StartRestore(ctx, s.target))
	open := map[string]bool{}
	must(t, s.target.Wait(ctx, 10*time.Minute, "the restore to end", func(ctx context.Context) error {
		xrs, err := s.fleetsOf(ctx, n)
		for _, u := range xrs {
			if stack.HasCondition(&u, "Responsive", "False") == nil {
				open[u.GetName()] = true
			}
		}
		_, endErr := ended(ctx, s.target, n.Name)

		return errors.Join(err, endErr)
	}))
	if len(open) == 0 {
		t.Error("no circuit breaker was open, so this test proves nothing")
	}
	s.testRestored(t, n)
	s.wantSettled(t, n)
}

// testLost is the control: an open circuit breaker, which lets one event pass every 30 s, drops the
// event that an XR is unpaused. Crossplane does not catch up later. It takes another event.
func (s *suite) testLost(t *testing.T, n *shape) {
	ctx := t.Context()
	// Functions make Crossplane reconcile an XR again after a while, by default a minute, without
	// any event; a paused XR is reconciled only once more.
	must(t, s.annotate(ctx, n, pauseAnnotation, "true"))
	s.eventually(t, "Crossplane to have no requeue left", s.after(time.Now(), 75*time.Second))
	for round := range 2 {
		must(t, s.annotate(ctx, n, "example.org/round", strconv.Itoa(round)))
		// Crossplane must not merge the event that passes with the ones after it.
		s.eventually(t, "the changes to be noticed, or dropped", s.after(time.Now(), 3*time.Second))
	}
	must(t, s.annotate(ctx, n, pauseAnnotation, nil))
	s.eventually(t, "Crossplane to have had the time for a reconcile without an event", s.after(time.Now(), 35*time.Second))
	if err := s.caughtUp(ctx, n); err == nil {
		t.Fatal("no event was lost, so nothing proves that the plugin must ask")
	}
	s.eventually(t, "Crossplane to reconcile on request", func(ctx context.Context) error {
		err := s.caughtUp(ctx, n)
		if err != nil {
			err = errors.Join(err, s.annotate(ctx, n, "crossplane.io/reconcile-requested-at", time.Now().Format(time.RFC3339Nano)))
		}

		return err
	})
}

// annotate sets an annotation on all XRs of a scene.
func (s *suite) annotate(ctx context.Context, n *shape, key string, value any) error {
	xrs, err := s.fleetsOf(ctx, n)
	for _, u := range xrs {
		err = errors.Join(err, drill.Patch(ctx, s.target, &u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}))
	}

	return err
}

// caughtUp returns an error if the condition Synced of an XR still reports a pause.
func (s *suite) caughtUp(ctx context.Context, n *shape) error {
	xrs, err := s.fleetsOf(ctx, n)
	for _, u := range xrs {
		err = errors.Join(err, stack.HasCondition(&u, "Synced", "True"))
	}

	return err
}
