//go:build matrix

package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixActivationV24(t *testing.T) { testActivation(t, stack.V24) }
