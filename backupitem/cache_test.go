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
		"Light":    {reason: "Small ones are as many as they may be.", length: 1 << 10, most: 100},
		"Heavy":    {reason: "Of long ones there are fewer.", length: 250 << 10, most: maxCacheBytes / (250 << 10)},
		"Heaviest": {reason: "What is too long is not remembered.", length: maxObjectBytes},
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
				t.Errorf("%s\n%d are remembered, of a weight of %d", tc.reason, n, weight)
			}
			if _, ok := m.get(xp.RefTo(xptest.XR("x199")).ID()); ok != (tc.most > 0) {
				t.Errorf("%s\nthe last one is remembered: %v", tc.reason, ok)
			}
		})
	}
}
