package adoption

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// release ends the quarantines of what was restored, in any order. Until then nothing moves, whatever Crossplane and the providers say; it may be killed after
// any of them, and what is left is released later.
func (m *model) release() {
	if !m.quarantine {
		return
	}
	for range 3 {
		m.react()
		if m.step() || m.ask() {
			m.failf("something moves in quarantine")

			return
		}
	}
	for id, u := range m.objects {
		if h, err := HoldOf(u); (m.own[id] != nil || m.managed[id] != nil) && (err != nil || h == nil || !h.Quarantine || !xp.IsPaused(u)) {
			m.failf("%s is not in quarantine", xp.String(u))
		}
	}
	order := append([]xp.ID(nil), m.order...)
	m.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, id := range order {
		if p, ok := Consent(m.objects[id]); ok {
			m.change(xptest.Merge(m.objects[id], p))
		}
		if m.chance(3) {
			m.step()
			m.react()
		}
	}
	m.quarantine = false // What a later restore brings back is in none.
}
