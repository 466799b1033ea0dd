package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// breakerDefaults are Crossplane's defaults for flags that the stack sets to other values.
var breakerDefaults = []string{"--circuit-breaker-burst=100", "--circuit-breaker-refill-rate=1"}

// An eventSource is a scene of XRs that cause many events at once.
type eventSource struct {
	*shape

	// release is the version that Crossplane's Deployment names.
	release string
	// opens is whether these XRs open the circuit breaker.
	opens bool
}

// testCircuitBreaker restores XRs whose many events open the circuit breaker, so that Crossplane
// misses that they are unpaused.
func (s *suite) testCircuitBreaker(t *testing.T, n *eventSource) {
	ctx := t.Context()
	s.deployment(t, n.release, 1)
	began := time.Now()
	must(t, n.StartRestore(ctx, s.target))
	open := map[string]bool{}
	must(t, s.target.Wait(ctx, 10*time.Minute, "the restore to end", func(ctx context.Context) error {
		xrs, err := s.fleetsOf(ctx, n.shape)
		if err != nil {
			return err
		}
		for _, u := range xrs {
			if stack.HasCondition(&u, "Responsive", "False") == nil {
				open[u.GetName()] = true
			}
		}
		r, err := get(ctx, s.target, schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Restore"}, "velero", n.Name)
		if err == nil && drill.Phase(r) != "Completed" && !strings.HasSuffix(drill.Phase(r), "Failed") {
			err = errors.New("its phase is " + drill.Phase(r))
		}

		return err
	}))
	t.Logf("the circuit breaker was seen open for %d of %d XRs; adopted after %s", len(open), n.Count, time.Since(began))
	if n.opens != (len(open) > 0) {
		t.Errorf("the circuit breaker was to open, so that this test proves something: %t", n.opens)
	}
	s.testRestored(t, n.shape)
	s.wantSettled(t, n.shape)
}

// pauseAll pauses the XRs of a scene and returns the time. Functions make Crossplane reconcile an
// XR again after a while, by default a minute, without any event; a paused XR is reconciled only
// once more.
func (s *suite) pauseAll(t *testing.T, n *shape) time.Time {
	t.Helper()
	must(t, s.annotate(t.Context(), n, "crossplane.io/paused", "true"))

	return time.Now()
}

// testLost is the control: an open circuit breaker, which lets one event pass every 30 s, drops the
// event that an XR is unpaused. Crossplane does not catch up later. It takes another event.
func (s *suite) testLost(t *testing.T, n *eventSource, paused time.Time) {
	ctx := t.Context()
	s.eventually(t, "Crossplane to have no requeue left", s.after(paused, 75*time.Second))
	const rounds = 3
	for round := range rounds {
		if round == rounds-1 {
			must(t, s.annotate(ctx, n.shape, "crossplane.io/paused", nil))

			break
		}
		must(t, s.annotate(ctx, n.shape, "example.org/round", strconv.Itoa(round)))
		// Crossplane must not merge the event that passes with the ones after it.
		s.eventually(t, "the changes to be noticed, or dropped", s.after(time.Now(), 3*time.Second))
	}
	since := time.Now()
	s.eventually(t, "Crossplane to have had the time for a reconcile without an event", s.after(since, 35*time.Second))
	lost, err := s.behind(ctx, n.shape)
	must(t, err)
	t.Logf("after %s Crossplane has not noticed that %d of %d XRs are unpaused", time.Since(since), len(lost), n.Count)
	if n.opens != (len(lost) > 0) {
		t.Fatalf("what was to be lost proves that the plugin must ask: %t", n.opens)
	}
	s.eventually(t, "Crossplane to reconcile on request", func(ctx context.Context) error {
		behind, err := s.behind(ctx, n.shape)
		if err == nil && len(behind) > 0 {
			err = errors.Join(fmt.Errorf("%d XRs are not reconciled", len(behind)),
				s.annotate(ctx, n.shape, "crossplane.io/reconcile-requested-at", time.Now().Format(time.RFC3339Nano)))
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

// after returns a condition that becomes true some time after another time.
func (s *suite) after(since time.Time, wait time.Duration) func(context.Context) error {
	return func(context.Context) error {
		if age := time.Since(since); age < wait {
			return fmt.Errorf("it was %s ago", age)
		}

		return nil
	}
}

// behind returns the XRs of a scene whose status conditions still report a pause.
func (s *suite) behind(ctx context.Context, n *shape) ([]unstructured.Unstructured, error) {
	xrs, err := s.fleetsOf(ctx, n)

	return slices.DeleteFunc(xrs, func(u unstructured.Unstructured) bool {
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")

		return !slices.ContainsFunc(conditions, func(entry any) bool {
			c, _ := entry.(map[string]any)

			return c["type"] == "Synced" && c["reason"] == "ReconcilePaused"
		})
	}), err
}
