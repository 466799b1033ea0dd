package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestCommandsV2(t *testing.T) { testCommands(t, stack.V2) }

// testCommands runs the plugin's commands as users and scripts do, on a cluster that was lost and
// is restored.
func testCommands(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	hooked, looked, left, kept := s.makeHooked(t), s.makeInspected(t), s.fillLeak(t), s.makeWard(t)
	tenants := append(tenantsOf(hooked), looked, left.gone, left.stopped, kept)
	var set []*tenant // Nothing differs on v1.
	if version == stack.V2 {
		set = s.makeSettled(t)
		tenants = append(tenants, set...)
	}
	s.loseSource(t, tenants...)
	t.Run("Inspect", func(t *testing.T) { s.testInspect(t, looked) })
	t.Run("Hooks", func(t *testing.T) { s.testHooks(t, hooked) })
	t.Run("Rights", func(t *testing.T) { s.testRights(t, hooked[0]) })
	t.Run("Jobs", func(t *testing.T) { s.testJobs(t, hooked[0]) })
	t.Run("Examples", func(t *testing.T) { s.testExamples(t, hooked[0]) })
	if version == stack.V2 {
		t.Run("Settings", func(t *testing.T) { s.testSettings(t, set) })
	}
	t.Run("Release", func(t *testing.T) { s.testRelease(t, left) })
	t.Run("Validate", func(t *testing.T) { s.testValidate(t, kept) })
}

// A run is the result of a command of the plugin.
type run struct {
	stdout, stderr string
	code           int
}

// command runs the plugin on a cluster as its administrator.
func command(t *testing.T, c *stack.Cluster, args ...string) run {
	t.Helper()

	return commandAs(t, c, "", args...)
}

// commandAs runs the plugin on a cluster as the user of a kubeconfig.
func commandAs(t *testing.T, c *stack.Cluster, kubeconfig string, args ...string) run {
	t.Helper()
	var r run
	var err error
	r.stdout, r.stderr, r.code, err = c.Plugin(t.Context(), kubeconfig, args...)
	must(t, err)

	return r
}
