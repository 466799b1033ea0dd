package restoreitem

import (
	"encoding/json"
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A rememberedHolds has the holds that this process has put on items and not lifted. Velero asks
// after the operations of a restore first in the process that has restored it: then what has come
// back without its hold can be told from what had none. Most holds are alike, so tens of thousands
// take a few megabytes.
type rememberedHolds struct {
	mu   sync.Mutex
	by   map[uint64]*adoption.Hold
	same map[string]*adoption.Hold
}

var holdSeed = maphash.MakeSeed() //nolint:gochecknoglobals // It is a constant of the process.

// add remembers a hold as it was asked for, and as it is. Of that of an XR or claim the rest is in
// what it says itself.
func (m *rememberedHolds) add(r xp.Ref, managed bool, of adoption.Hold, h *adoption.Hold) {
	if of.Clone != "" {
		return // It has no operation.
	}
	kept := &adoption.Hold{Quarantine: of.Quarantine, ByHand: of.ByHand}
	if managed {
		of.Policies = h.Policies
		kept = &of
	}
	kept.Restore, kept.Since = "", ""
	b, err := json.Marshal(kept)
	if err != nil {
		return // It is one of this plugin's, and all can be.
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by, m.same = map[uint64]*adoption.Hold{}, map[string]*adoption.Hold{}
	}
	if like, ok := m.same[string(b)]; ok {
		kept = like
	} else {
		m.same[string(b)] = kept
	}
	m.by[maphash.Comparable(holdSeed, r.ID())] = kept
}

// get returns the hold of an object, nil if there is none.
func (m *rememberedHolds) get(id xp.ID) *adoption.Hold {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.by[maphash.Comparable(holdSeed, id)]
}

// drop forgets the hold of what it was lifted from.
func (m *rememberedHolds) drop(u *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, maphash.Comparable(holdSeed, xp.RefTo(u).ID()))
}

// Lifted is told of each step that an adoption has taken in this process.
func (ri *RequestedItems) Lifted(c adoption.Change) {
	if c.Target != nil && c.Lifts() {
		ri.held.drop(c.Target)
	}
}
