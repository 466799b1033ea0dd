//go:build matrix

package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixStandbyV2(t *testing.T) { testStandby(t, stack.V2, true) }

func TestMatrixStandbyV1(t *testing.T) { testStandby(t, stack.V1, true) }
