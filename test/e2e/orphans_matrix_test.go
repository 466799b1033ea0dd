//go:build matrix

package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixCompositionChangesV2(t *testing.T) {
	t.Parallel()
	testCompositionChanges(t, stack.V2)
}

func TestMatrixCompositionChangesV1(t *testing.T) {
	t.Parallel()
	testCompositionChanges(t, stack.V1)
}

// Crossplane v2.0 and stack.V2 delete owned objects in different ways (background, foreground).
func TestMatrixCompositionChangesV20(t *testing.T) {
	t.Parallel()
	testCompositionChanges(t, stack.V20)
}

// Crossplane v2.4 never deletes what it does not control.
func TestMatrixCompositionChangesV24(t *testing.T) {
	t.Parallel()
	testCompositionChanges(t, stack.V24)
}
