//go:build matrix

package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// These tests run the same scenes on each version, with the same expectations unless the case
// differs. "make test" has some of them (v2.3, and those of claims on v1.20).

func TestMatrixCrossplaneV2(t *testing.T) { testCrossplane(t, stack.V2) }

func TestMatrixCrossplaneV1(t *testing.T) { testCrossplane(t, stack.V1) }

func TestMatrixCompatibilityV1(t *testing.T) { testCompatibility(t, stack.V1) }

func TestMatrixCompatibilityV2(t *testing.T) { testCompatibility(t, stack.V20) }

func TestMatrixWaysV2(t *testing.T) { testWays(t, stack.V2) }

func TestMatrixWaysV1(t *testing.T) { testWays(t, stack.V1) }

func TestMatrixTenantsV1(t *testing.T) { testTenants(t, stack.V1) }

func TestMatrixPlaceV2(t *testing.T) { testPlace(t, stack.V2) }

func TestMatrixPlaceV1(t *testing.T) { testPlace(t, stack.V1) }

func TestMatrixCommandsV1(t *testing.T) { testCommands(t, stack.V1) }

func TestMatrixRealtimeV2(t *testing.T) {
	testRealtime(t, stack.V2, build.CrossplaneV2, eventSources(6, build.CrossplaneV2, true))
}

// Crossplane v2.0 has no circuit breaker.
func TestMatrixRealtimeV20(t *testing.T) { testRealtime(t, stack.V20, build.CrossplaneV20, nil) }

// Crossplane v2.4 has one event where earlier versions have one for each reference, so more XRs are
// needed to open the circuit breaker.
func TestMatrixRealtimeV24(t *testing.T) {
	testRealtime(t, stack.V24, build.CrossplaneV24, eventSources(6, build.CrossplaneV24, false))
}

// TestMatrixCircuitBreakerV24 has a circuit breaker that opens after fewer events.
func TestMatrixCircuitBreakerV24(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newEmptySuite(t, stack.Options{Name: "source", Crossplane: stack.V24, Plugin: true})
	n := eventSources(6, build.CrossplaneV24, true)
	s.makeScenes(t, n.shape)
	s.store(t, n.shape)
	must(t, s.source.Destroy())
	var err error
	s.target, err = stack.NewCluster(ctx, s.host, stack.Options{
		Name: "target", Crossplane: stack.V24, Plugin: true, VeleroArgs: oftener,
		CrossplaneArgs: []string{"--circuit-breaker-burst=20", "--circuit-breaker-refill-rate=0.1"},
	})
	must(t, err)
	must(t, n.Install(ctx, s.target, ""))
	must(t, s.target.RestartVelero(ctx))
	t.Run("Adopted", func(t *testing.T) { s.testCircuitBreaker(t, n) })
	paused := s.pauseAll(t, n.shape)
	t.Run("EventLost", func(t *testing.T) { s.testLost(t, n, paused) })
}

func TestMatrixDefinitionsV1(t *testing.T) { testDefinitions(t, stack.V1, "v1.20") }

func TestMatrixDefinitionsV20(t *testing.T) { testDefinitions(t, stack.V20, "v2") }

func TestMatrixDefinitionsV24(t *testing.T) { testDefinitions(t, stack.V24, "v2") }

func TestMatrixIdentityV1(t *testing.T) { testIdentity(t, stack.V1, "v1.20") }

func TestMatrixIdentityV20(t *testing.T) { testIdentity(t, stack.V20, "v2") }

func TestMatrixIdentityV24(t *testing.T) { testIdentity(t, stack.V24, "v2") }

func TestMatrixAheadV2(t *testing.T) { testAhead(t, stack.V2, "v2", scenesInDoubt()) }

func TestMatrixAheadV1(t *testing.T) { testAhead(t, stack.V1, "v1.20", scenesInDoubt()) }

func TestMatrixAheadV20(t *testing.T) { testAhead(t, stack.V20, "v2", scenesInDoubt()) }

func TestMatrixAheadV24(t *testing.T) { testAhead(t, stack.V24, "v2", scenesInDoubt()) }

func TestMatrixUsagesV2(t *testing.T) { testUsages(t, stack.V2, "v2") }

func TestMatrixUsagesV1(t *testing.T) { testUsages(t, stack.V1, "v1.20") }

func TestMatrixUsagesV20(t *testing.T) { testUsages(t, stack.V20, "v2") }

func TestMatrixUsagesV24(t *testing.T) { testUsages(t, stack.V24, "v2") }

func TestMatrixConversionV2(t *testing.T) { testConversion(t, stack.V2, "v2") }

func TestMatrixConversionV20(t *testing.T) { testConversion(t, stack.V20, "v2") }

func TestMatrixConversionV24(t *testing.T) { testConversion(t, stack.V24, "v2") }

func TestMatrixActivationV20(t *testing.T) { testActivation(t, stack.V20) }

func TestMatrixPackagesV20(t *testing.T) { testPackages(t, stack.V20) }

func TestMatrixPackagesV24(t *testing.T) { testPackages(t, stack.V24) }

func TestMatrixAppliersV20(t *testing.T) { testAppliers(t, stack.V20) }

func TestMatrixTouchedV20(t *testing.T) { testTouches(t, stack.V20) }

func TestMatrixTouchedV24(t *testing.T) { testTouches(t, stack.V24) }

func TestMatrixPrunedV20(t *testing.T) { testPruned(t, stack.V20) }

func TestMatrixPrunedV24(t *testing.T) { testPruned(t, stack.V24) }

func TestMatrixGitChangesV20(t *testing.T) { testGitChanges(t, stack.V20) }

func TestMatrixGitChangesV24(t *testing.T) { testGitChanges(t, stack.V24) }

func TestMatrixGuardV1(t *testing.T) { testGuard(t, stack.V1) }

func TestMatrixGuardV20(t *testing.T) { testGuard(t, stack.V20) }

func TestMatrixGuardV24(t *testing.T) { testGuard(t, stack.V24) }

func TestMatrixAppliedFirstV20(t *testing.T) { testFirst(t, stack.V20) }

func TestMatrixAppliedFirstV24(t *testing.T) { testFirst(t, stack.V24) }

// testFirst is a part of TestCrossplane.
func testFirst(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	g := newGit(t)
	all := s.fillGitFirst(t, g)
	s.loseSource(t, all.tenants()...)
	s.testAppliedFirst(t, g, all)
}

func TestMatrixHelmV20(t *testing.T) { testHelm(t, stack.V20, "v2", "helm.m.crossplane.io") }

func TestMatrixHelmV24(t *testing.T) { testHelm(t, stack.V24, "v2", "helm.m.crossplane.io") }

func TestMatrixShapesV2(t *testing.T) { testShapes(t, stack.V2, "v2", shapesV2()) }

func TestMatrixShapesV1(t *testing.T) { testShapes(t, stack.V1, "v1.20", shapesV1()) }

func TestMatrixShapesV20(t *testing.T) { testShapes(t, stack.V20, "v2", shapesV2()) }

func TestMatrixCasesV20(t *testing.T) { testCases(t, stack.V20, "v2") }

func TestMatrixCasesV24(t *testing.T) { testCases(t, stack.V24, "v2") }

func TestMatrixShapesV24(t *testing.T) { testShapes(t, stack.V24, "v2", shapesV2()) }
