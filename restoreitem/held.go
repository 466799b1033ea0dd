package restoreitem

import (
	"encoding/json"
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A rememberedHolds has the holds that this process has put on items and not released. Velero first
// polls operations in the process that ran the restore, so that can distinguish an item that has
// lost its hold from one that had none. Most holds are equal, so tens of thousands take a few MB.
type rememberedHolds struct {
	mu   sync.Mutex
	by   map[uint64]*adoption.Hold
	same map[string]*adoption.Hold
}

var holdSeed = maphash.MakeSeed() //nolint:gochecknoglobals // It is constant in a process.

// add remembers a hold. Of an XR or claim only Quarantine and ByHand are needed, since its own
// fields have the rest.
func (m *rememberedHolds) add(r xp.Ref, managed bool, of adoption.Hold, h *adoption.Hold) {
	if of.Clone != "" {
		return // No operation releases a copy.
	}
	kept := &adoption.Hold{Quarantine: of.Quarantine, ByHand: of.ByHand}
	if managed {
		of.Policies = h.Policies
		kept = &of
	}
	kept.Restore, kept.Since = "", ""
	b, err := json.Marshal(kept)
	if err != nil {
		return // A hold of this plugin can always be marshaled.
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

// drop forgets the hold of an object that was released.
func (m *rememberedHolds) drop(u *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, maphash.Comparable(holdSeed, xp.RefTo(u).ID()))
}

// OnStep is called after each step of an adoption in this process.
func (ri *RequestedItems) OnStep(c adoption.Change) {
	if c.Target != nil && c.Lifts() {
		ri.held.drop(c.Target)
	}
}
