package restoreitem

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// An untrusted backup decides how long a chain of owners is, and must not decide the depth of the
// stack.
func TestDryRunOfAChain(t *testing.T) {
	depth := func(t *testing.T, length int) int {
		t.Helper()
		var chain []*unstructured.Unstructured
		name := func(n int) string { return fmt.Sprintf("x%05d", n) }
		for n := range length {
			chain = append(chain, xptest.XR(name(n), xptest.ControlledBy(xptest.XR(name(n+1))), xptest.NeverComposed()))
		}
		deepest := 0
		stack := make([]uintptr, 100_000)
		cluster := &fakeDryRunCluster{cluster: &cluster{}, resources: func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
			deepest = max(deepest, runtime.Callers(0, stack))

			return anything(gvk)
		}}
		results, err := dryRunResults(t.Context(), packed(t, chain...), cluster, restoreOf(nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(results) != length {
			t.Fatalf("got %d results for %d items", len(results), length)
		}
		for i, f := range results {
			if want := name(length - 1 - i); f.Item.Name != want || (f.For == nil) != (i == length-1) {
				t.Errorf("result %d is that of %s for %v, want %s: an owner must come before its objects", i, f.Item, f.For, want)
			}
		}

		return deepest
	}
	if short, long := depth(t, 2), depth(t, 300); short != long {
		t.Errorf("the dry run of a chain of 300 is %d calls deep, and that of 2 is %d", long, short)
	}
}
