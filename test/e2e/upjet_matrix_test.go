//go:build matrix

package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// TestMatrixUpjetV1 is TestUpjetV2 with MRs that are cluster-scoped, which a claim composes or which a backup has to select.
func TestMatrixUpjetV1(t *testing.T) {
	t.Parallel()
	alone, with := upjetScenes("v1.20")
	for _, n := range append(alone, with[0], with[2]) {
		n.BackupArgs = selected(n.Name)
	}
	testUpjet(t, newUpjet(t, stack.V1), alone, with)
}
