package backupitem

import (
	"fmt"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The cache is bounded, whatever tenants write.
func TestCacheIsBounded(t *testing.T) {
	cases := map[string]struct {
		reason string
		length int
		most   int
	}{
		"Light":    {reason: "The cache keeps the maximum number of small objects.", length: 1 << 10, most: 100},
		"Heavy":    {reason: "The cache keeps fewer large objects.", length: 250 << 10, most: maxCacheBytes / (250 << 10)},
		"TooLarge": {reason: "The cache does not keep an object above the size limit.", length: maxObjectBytes},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newObjectCache(100)
			for round := range 2 { // An object that is added again counts once.
				for n := range 200 {
					m.put(xptest.XR(fmt.Sprint("x", n), xptest.Field([]any{strings.Repeat("x", tc.length-round)}, "spec", "long")))
				}
			}
			if n, weight := m.objects.Len(), m.size.Load(); n > tc.most || n < tc.most*9/10 || weight > maxCacheBytes || (n == 0) != (weight == 0) {
				t.Errorf("%s\nthe cache has %d objects, of the size %d", tc.reason, n, weight)
			}
			if _, ok := m.get(xp.RefTo(xptest.XR("x199")).ID()); ok != (tc.most > 0) {
				t.Errorf("%s\nthe cache has the last object: %v", tc.reason, ok)
			}
		})
	}
}
