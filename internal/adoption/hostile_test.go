package adoption

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The API server allows 256 KiB of annotations. Its error names neither the longest one nor a next
// step.
func TestPutRefusesLargeMarks(t *testing.T) {
	var composed []*unstructured.Unstructured
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // It is the same each time.
	for range 30_000 {
		composed = append(composed, xptest.MR(fmt.Sprintf("environment-%016x", random.Uint64())))
	}
	for name, u := range map[string]*unstructured.Unstructured{
		"Refs":        xptest.XR("x", xptest.Refs(composed...)),
		"Annotations": xptest.XR("x", xptest.Refs(composed[:1000]...), xptest.Annotated("kubectl.kubernetes.io/last-applied-configuration", strings.Repeat("x", 254<<10))),
	} {
		_, err := Put(u, Hold{Restore: restoreName, Since: restoredAt})
		if err == nil || !strings.Contains(err.Error(), "cannot put a hold on XOrder x: its ") || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if _, err := Put(xptest.XR("x", xptest.Refs(composed[:10_000]...)), Hold{Restore: restoreName, Since: restoredAt}); err != nil {
		t.Errorf("a mark must fit 10,000 references: %v", err)
	}
}
