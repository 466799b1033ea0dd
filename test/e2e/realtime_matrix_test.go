//go:build matrix

package e2e

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// seldom makes the provider poll thousands of MRs so seldom that it can keep up.
var seldom = []string{"--poll", "3m"}

// newEmptySuite starts a source without the example's platform.
func newEmptySuite(t *testing.T, options stack.Options) *suite {
	t.Helper()
	ctx := t.Context()
	set, err := build.Ensure(ctx, os.Stderr, stack.Programs(options)...)
	must(t, err)
	host, err := stack.NewHost(ctx, set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	s := &suite{host: host, cloud: api.NewClient(host.CloudURL()), version: options.Crossplane}
	s.source, err = stack.NewCluster(ctx, host, options)
	must(t, err)

	return s
}

func TestMatrixRealtimeV1(t *testing.T) { testRealtime(t, stack.V1, build.CrossplaneV1, nil) }

// A hundred XRs of thirty resources each are restored with Crossplane's default circuit breaker.
func TestMatrixCircuitBreaker(t *testing.T) {
	ctx := t.Context()
	s := newEmptySuite(t, stack.Options{Name: "source", Crossplane: stack.V2, Plugin: true, ProviderArgs: seldom})
	n := eventSources(100, build.CrossplaneV2, true)
	s.makeScenes(t, n.shape)
	must(t, s.source.Wait(ctx, 20*time.Minute, "3000 buckets", func(ctx context.Context) error {
		xrs, err := list(ctx, s.source, schema.GroupVersionKind{Group: "hives.example.org", Version: "v1alpha1", Kind: "Fleet"}, n.Name, "")
		for _, u := range xrs {
			err = errors.Join(err, stack.HasCondition(&u, "Ready", "True"))
		}

		return err
	}))
	s.store(t, n.shape)
	must(t, s.source.Destroy())
	var err error
	s.target, err = stack.NewCluster(ctx, s.host, stack.Options{
		Name: "target", Crossplane: stack.V2, Plugin: true, CrossplaneArgs: breakerDefaults, ProviderArgs: seldom,
	})
	must(t, err)
	must(t, n.Install(ctx, s.target, ""))
	must(t, s.target.RestartVelero(ctx))
	s.testCircuitBreaker(t, n)
}

// Crossplane 1.18 stops watching the XRs of an XRD that came back more than a minute before them.
// Only a restart makes it watch them again.
func TestMatrixRealtimeV118(t *testing.T) {
	ctx := t.Context()
	s := newEmptySuite(t, stack.Options{Name: "source", Crossplane: stack.V118, Plugin: true})
	early, bare := fleets("v1.20", "early", "few", 1), fleets("v1.20", "bare", "few", 1)
	early.reason = "An XR that Crossplane has no word for is held until it has."
	s.makeScenes(t, early, bare)
	s.store(t, early)
	s.store(t, bare)
	must(t, s.source.Destroy())

	var err error
	s.target, err = stack.NewCluster(ctx, s.host, stack.Options{Name: "target", Crossplane: stack.V118, Plugin: true})
	must(t, err)
	s.deployment(t, "v1.18.3", 1)
	s.restoreDefinitions(t, early, bare)
	s.awaitIdle(t, time.Now())
	t.Run("VeleroAlone", func(t *testing.T) { s.testEarlyAlone(t, bare, false) })
	t.Run("Named", func(t *testing.T) {
		must(t, early.StartRestore(ctx, s.target))
		s.wantStuck(t, early.Name, func(ctx context.Context) ([]unstructured.Unstructured, error) { return s.fleetsOf(ctx, early) },
			"Crossplane 1.18.3 stops watching", "kubectl -n crossplane-system rollout restart deployment/crossplane")
	})
	t.Run("Cured", func(t *testing.T) {
		must(t, s.target.Restart(ctx, stack.Crossplane))
		s.testRestored(t, early)
		s.wantSettled(t, early)
	})
}
