package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// gitFirst are tenants that an applier creates in the target before they are restored: alone
// without the plugin, taken with it.
type gitFirst struct{ alone, taken *tenant }

func (s *suite) fillGitFirst(t *testing.T, g *git) gitFirst {
	t.Helper()
	made := func(namespace string) *tenant {
		n := s.applied(t, g, kubectlAsArgocd, drill.Platform{Namespace: namespace}, few)
		s.backUp(t, s.source, n)

		return n
	}

	return gitFirst{alone: made("firstalone"), taken: made("first")}
}

func (f gitFirst) tenants() []*tenant { return []*tenant{f.alone, f.taken} }

// testAppliedFirst fills a cluster from Git before Crossplane runs, and then from the backup.
func (s *suite) testAppliedFirst(t *testing.T, g *git, f gitFirst) {
	ctx := t.Context()
	must(t, s.target.Stop(stack.Crossplane))
	for _, n := range f.tenants() {
		must(t, g.kubectl(ctx, s.target, nil, nil, "create", "namespace", n.Namespace))
		must(t, g.apply(ctx, s.target, kubectlAsArgocd, n.manifests()))
	}
	must(t, s.target.UsePlugin(ctx, false))
	must(t, f.alone.StartRestore(ctx, s.target, f.alone.Namespace, f.alone.Namespace))
	must(t, drill.AwaitItems(ctx, s.target, f.alone.Namespace))
	must(t, s.target.UsePlugin(ctx, true))
	must(t, f.taken.StartRestore(ctx, s.target, f.taken.Namespace, f.taken.Namespace))
	must(t, drill.AwaitItems(ctx, s.target, f.taken.Namespace))
	must(t, s.target.Start(ctx, stack.Crossplane))

	// On v1 Crossplane creates other XRs for the claims, beside the restored ones.
	s.eventually(t, "Velero alone to do damage, without which the other proves nothing", func(ctx context.Context) error {
		got, err := f.alone.Compare(ctx, s.target, s.cloud, f.alone.before)
		if err == nil && (got.Creates < got.Total || got.Duplicates == 0) {
			err = fmt.Errorf("it has done: %+v", got)
		}

		return err
	})
	for name, m := range f.taken.managers {
		if s.version.IsV1() && strings.HasPrefix(name, "Environment/") {
			// Velero also restores the managers of a claim's status, but not the status.
			maps.DeleteFunc(m, func(manager string, _ []string) bool { return strings.HasSuffix(manager, " status") })
		}
	}
	s.awaitCompleted(t, f.taken.Namespace)
	s.settle(t, f.taken)
	s.wantSound(t, f.taken)
	must(t, g.apply(ctx, s.target, kubectlAsArgocd, f.taken.manifests()))
	s.settle(t, f.taken)
	s.wantSound(t, f.taken)
}
