package backupitem

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Bounds of a memory, in bytes of what it holds as it is written. In memory it is several times that. The heaviest object is about as long as an XR of 3,000
// references, which is more than can be restored.
const (
	heaviest = 512 << 10
	heavy    = 6 << 20
)

// A memory holds the objects that were read last, up to a number and a weight: a tenant's objects can be a thousand times as long as others.
type memory struct {
	objects *lru.Cache
	weight  atomic.Int64
}

type weighed struct {
	*unstructured.Unstructured

	weight int
}

func newMemory(most int) *memory {
	m := &memory{}
	m.objects = lru.NewWithEvictionFunc(most, func(_ lru.Key, value any) {
		m.weight.Add(-int64(value.(weighed).weight)) //nolint:forcetypeassert // Nothing else is put in.
	})

	return m
}

func (m *memory) get(id xp.ID) (*unstructured.Unstructured, bool) {
	value, ok := m.objects.Get(id)
	w, _ := value.(weighed)

	return w.Unstructured, ok
}

// put remembers an object, unless it is too long.
func (m *memory) put(u *unstructured.Unstructured) {
	id, w := xp.RefTo(u).ID(), weighed{Unstructured: u, weight: weightOf(u.Object, heaviest)}
	m.objects.Remove(id)
	if w.weight > heaviest {
		return
	}
	m.weight.Add(int64(w.weight))
	m.objects.Add(id, w)
	for m.weight.Load() > heavy && m.objects.Len() > 1 {
		m.objects.RemoveOldest()
	}
}

// weightOf returns about how long a value is when it is written, and something more than the most if it is longer than that.
func weightOf(v any, most int) int {
	const least = 4
	weight := least
	switch v := v.(type) {
	case string:
		weight += len(v)
	case map[string]any:
		for key, value := range v {
			if weight += len(key) + weightOf(value, most-weight); weight > most {
				break
			}
		}
	case []any:
		for _, value := range v {
			if weight += weightOf(value, most-weight); weight > most {
				break
			}
		}
	}

	return weight
}
