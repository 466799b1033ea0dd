package backupitem

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// cached returns the value that a cache has for a key. If it has none, it reads the value, and caches
// it unless that fails.
func cached[V any](c *lru.Cache, key lru.Key, read func() (V, error)) (V, error) {
	if value, ok := c.Get(key); ok {
		return value.(V), nil //nolint:forcetypeassert // A key has values of one type.
	}
	value, err := read()
	if err == nil {
		c.Add(key, value)
	}

	return value, err
}

// Bounds of an objectCache in bytes of JSON, which take several times that in memory. An object of
// maxObjectBytes is about as long as an XR of 3,000 references, which is more than can be restored.
const (
	maxObjectBytes = 512 << 10
	maxCacheBytes  = 6 << 20
)

// An objectCache has the objects that were read last, up to a number and a size. A tenant's objects
// can be a thousand times as long as others.
type objectCache struct {
	objects *lru.Cache
	size    atomic.Int64
}

type cachedObject struct {
	*unstructured.Unstructured

	size int
}

func newObjectCache(most int) *objectCache {
	m := &objectCache{}
	m.objects = lru.NewWithEvictionFunc(most, func(_ lru.Key, value any) {
		m.size.Add(-int64(value.(cachedObject).size)) //nolint:forcetypeassert // The cache has only these.
	})

	return m
}

func (c *objectCache) get(id xp.ID) (*unstructured.Unstructured, bool) {
	value, ok := c.objects.Get(id)
	w, _ := value.(cachedObject)

	return w.Unstructured, ok
}

// put adds an object, unless it is too long.
func (c *objectCache) put(u *unstructured.Unstructured) {
	id, w := xp.RefTo(u).ID(), cachedObject{Unstructured: u, size: sizeOf(u.Object, maxObjectBytes)}
	c.objects.Remove(id)
	if w.size > maxObjectBytes {
		return
	}
	c.size.Add(int64(w.size))
	c.objects.Add(id, w)
	for c.size.Load() > maxCacheBytes && c.objects.Len() > 1 {
		c.objects.RemoveOldest()
	}
}

// sizeOf returns about how long a value is as JSON, or something above most if it is longer than
// that.
func sizeOf(v any, most int) int {
	const least = 4
	weight := least
	switch v := v.(type) {
	case string:
		weight += len(v)
	case map[string]any:
		for key, value := range v {
			if weight += len(key) + sizeOf(value, most-weight); weight > most {
				break
			}
		}
	case []any:
		for _, value := range v {
			if weight += sizeOf(value, most-weight); weight > most {
				break
			}
		}
	}

	return weight
}
