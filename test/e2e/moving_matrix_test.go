//go:build matrix

package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixMovingV2(t *testing.T) { testMoving(t, stack.V2, true) }

func TestMatrixMovingV1(t *testing.T) { testMoving(t, stack.V1, true) }
