package restoreitem

import (
	"sync"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// maxRemembered is how many bytes of JSON of XRs are remembered: 20,000 XRs of 3 KiB. A tenant's can
// have 1.5 MiB each, and what they compose may never come.
const maxRemembered = 64 << 20

// rememberedXRs are XRs of the backup, as JSON, until the first of their composed resources is
// restored.
type rememberedXRs struct {
	mu   sync.Mutex
	xrs  map[xp.ID][]byte
	size int
}

// add remembers an XR. If there is no room, it forgets the longest ones.
func (r *rememberedXRs) add(id xp.ID, xr []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.xrs == nil {
		r.xrs = map[xp.ID][]byte{}
	}
	r.size += len(xr) - len(r.xrs[id])
	r.xrs[id] = xr
	for r.size > maxRemembered {
		for other, b := range r.xrs {
			if len(b) > len(r.xrs[id]) {
				id = other
			}
		}
		r.size -= len(r.xrs[id])
		delete(r.xrs, id)
	}
}

// take returns an XR and forgets it; nil if it is not known.
func (r *rememberedXRs) take(id xp.ID) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	xr := r.xrs[id]
	r.size -= len(xr)
	delete(r.xrs, id)

	return xr
}
