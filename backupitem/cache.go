package backupitem

import (
	"encoding/json"
	"maps"

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

// Bounds of the cache of objects in bytes of JSON, which take several times that in memory: a tenant's
// objects can be a thousand times as long as others. An object of maxObjectBytes is about as long as
// an XR of 3,000 references, which is more than can be restored.
const (
	maxObjectBytes = 512 << 10
	maxCacheBytes  = 6 << 20
)

// remember caches an object, unless it is too long, without what no caller reads: data,
// managedFields, and the status but for its conditions.
func (res *Resolver) remember(u *unstructured.Unstructured) {
	kept := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	for _, unread := range []string{"status", "data", "stringData", "binaryData"} {
		delete(kept.Object, unread)
	}
	keepConditions(kept, u)
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			metadata["annotations"] = maps.Clone(annotations) // Those of the stored copy are changed.
		}
		kept.Object["metadata"] = metadata
	}
	size := lengthOf(kept.Object)
	res.mu.Lock()
	defer res.mu.Unlock()
	if size > maxObjectBytes {
		res.read.Remove(xp.RefTo(u).ID())

		return
	}
	if res.readBytes += size; res.readBytes > maxCacheBytes {
		res.read.Clear()
		res.readBytes = size
	}
	res.read.Add(xp.RefTo(u).ID(), kept)
}

// remembered returns an object that the cache has.
func (res *Resolver) remembered(r xp.Ref) (*unstructured.Unstructured, bool) {
	value, _ := res.read.Get(r.ID())
	u, ok := value.(*unstructured.Unstructured)

	return u, ok
}

// lengthOf returns how long a value is in a backup.
func lengthOf(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // What can't be encoded can't be stored.
	}

	return len(b)
}
