package backupitem

import (
	"fmt"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero backs up other items while an item's stored copy is written.
func TestCacheKeepsWhatItHas(t *testing.T) {
	res, xr := NewResolver(clusterOf()), xptest.XR("x", xptest.Annotated(xp.AnnotationMustInclude, "true"))
	res.remember(xr)
	xp.StripBackupMetadata(xr)
	if u, ok := res.remembered(xp.RefTo(xr)); !ok || !xp.HasAnnotation(u, xp.AnnotationMustInclude) {
		t.Errorf("a change of the item must not change what others read; got %v", u)
	}
}

// The cache is bounded, whatever tenants write.
func TestCacheIsBounded(t *testing.T) {
	cases := map[string]struct {
		reason string
		length int
		// objects are how many are added twice, and most how many stay.
		objects, most int
	}{
		"Light":    {reason: "The cache keeps the maximum number of small objects.", length: 1 << 10, objects: 2 * maxObjects, most: maxObjects},
		"Heavy":    {reason: "The cache keeps fewer large objects.", length: 250 << 10, objects: 50, most: maxCacheBytes / (250 << 10)},
		"TooLarge": {reason: "The cache does not keep an object above the size limit.", length: maxObjectBytes, objects: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			res := NewResolver(clusterOf())
			for round := range 2 {
				for n := range tc.objects {
					res.remember(xptest.XR(fmt.Sprint("x", n), xptest.Field([]any{strings.Repeat("x", tc.length-round)}, "spec", "long")))
					if res.read.Len()*tc.length > maxCacheBytes {
						t.Fatalf("%s\nthe cache has %d objects", tc.reason, res.read.Len())
					}
				}
			}
			if n := res.read.Len(); n > tc.most || (n == 0) != (tc.most == 0) {
				t.Errorf("%s\nthe cache has %d objects", tc.reason, n)
			}
			last := xptest.XR(fmt.Sprint("x", tc.objects-1))
			if _, ok := res.remembered(xp.RefTo(last)); ok != (tc.most > 0) {
				t.Errorf("%s\nthe cache has the last object: %v", tc.reason, ok)
			}
		})
	}
}
