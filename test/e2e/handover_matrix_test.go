//go:build matrix

package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixHandoverV2(t *testing.T) { testHandover(t, stack.V2, true) }

func TestMatrixHandoverV1(t *testing.T) { testHandover(t, stack.V1, true) }
