package restoreitem

import (
	"sync"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const mebibyte = 1 << 20

// rememberedLimit is how many bytes of remembered XRs the process keeps: it shares the memory of
// Velero's Pod. An XR of 20 composed resources takes about 1 KiB.
const rememberedLimit = 16 * mebibyte

// rememberedXRs are XRs of the backup, as JSON, until the first of their composed resources is
// restored. What exceeds the limit is not kept.
type rememberedXRs struct {
	mu      sync.Mutex
	encoded map[xp.ID][]byte
	size    int
	full    bool
}

// add reports whether there was room for the XR.
func (r *rememberedXRs) add(id xp.ID, encoded []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := r.size - len(r.encoded[id]) + len(encoded)
	if size > rememberedLimit {
		return false
	}
	if r.encoded == nil {
		r.encoded = map[xp.ID][]byte{}
	}
	r.encoded[id], r.size = encoded, size

	return true
}

// take returns an XR and forgets it.
func (r *rememberedXRs) take(id xp.ID) (encoded []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	encoded, ok = r.encoded[id]
	r.size -= len(encoded)
	delete(r.encoded, id)

	return encoded, ok
}

// isFirstLeftOut reports, once, that an XR was left out.
func (r *rememberedXRs) isFirstLeftOut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.full
	r.full = true

	return first
}
