//go:build matrix

package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixQuarantineV2(t *testing.T) { testQuarantine(t, stack.V2) }

func TestMatrixQuarantineV1(t *testing.T) { testQuarantine(t, stack.V1) }
