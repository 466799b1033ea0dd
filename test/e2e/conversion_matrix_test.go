//go:build matrix

package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestMatrixConversionV1(t *testing.T) { testConversion(t, stack.V1, "v1.20") }
