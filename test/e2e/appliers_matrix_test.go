//go:build matrix

package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testAppliers loses instances that an applier has created. It restores them while the same
// applier, or another that takes them over, applies them again.
func testAppliers(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	g := newGit(t)
	all := s.gitTenants(t, g,
		[2]applier{kubectlApply, kubectlApply}, [2]applier{kubectlServerSide, kubectlServerSide}, [2]applier{flux, flux}, [2]applier{argocd, argocd},
		[2]applier{argocdServerSide, argocdServerSide},
		[2]applier{kubectlApply, kubectlServerSide}, [2]applier{kubectlApply, kubectlAsArgocd}, [2]applier{kubectlApply, flux}, [2]applier{kubectlApply, argocd},
		[2]applier{kubectlApply, argocdServerSide}, [2]applier{kubectlServerSide, flux}, [2]applier{argocd, argocdServerSide},
	)
	s.backUpInGit(t, g, all)
	s.loseSource(t, tenantsInGit(all)...)
	s.testAppliedWhileHeld(t, g, all)
}

// testTouches changes objects that are held, in each way in which another writer can.
func testTouches(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	g := newGit(t)
	all := s.makeTouched(t, g, touches())
	s.backUpTouched(t, all)
	tenants := make([]*tenant, len(all))
	for i, d := range all {
		tenants[i] = d.tenant
	}
	s.loseSource(t, tenants...)
	// These policies are on by default since Kubernetes 1.36.
	must(t, s.target.AddArgs(stack.APIServer, "--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"))
	must(t, s.target.Restart(t.Context(), stack.APIServer))
	s.testTouched(t, g, all)
}
