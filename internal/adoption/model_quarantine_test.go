package adoption

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// release is a user who releases the restored objects in any order. It can be interrupted after
// each, and continue later.
func (m *model) release() {
	switch {
	case m.quarantine:
		m.checkQuarantine()
	case m.byHand:
		m.checkByHand()
	default:
		return
	}
	if m.fault != "" {
		return
	}
	order := append([]xp.ID(nil), m.order...)
	m.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, id := range order {
		if p, ok := Unverified.Consent(m.objects[id]); ok {
			m.change(xptest.Merge(m.objects[id], p))
		}
		if m.chance(3) {
			m.step()
			m.react()
		}
	}
	m.quarantine, m.byHand = false, false // What a later restore creates waits for no user.
}

// checkQuarantine fails if anything changes before a user agrees, whatever the controllers report.
func (m *model) checkQuarantine() {
	for range 3 {
		m.react()
		if m.step() || m.requestReconciles() {
			m.failf("something moves in quarantine")

			return
		}
	}
	for id, u := range m.objects {
		if h, err := HoldOf(u); (m.own[id] != nil || m.managed[id] != nil) && (err != nil || h == nil || !h.Quarantine || !xp.IsPaused(u)) {
			m.failf("%s is not in quarantine", xp.String(u))
		}
	}
}

// checkByHand fails unless every object gets as far as it can, none is released, and those that can
// be say so.
func (m *model) checkByHand() {
	m.run()
	w := m.snapshot()
	for id, own := range m.own {
		u := m.objects[id]
		if h, err := HoldOf(u); err != nil || h == nil || !h.ByHand || !xp.IsPaused(u) {
			m.failf("%s was let go", xp.String(u))
		}
		if !xp.IsComposite(own) || m.stuck[id] || m.unsaved[id] && !xp.IsPaused(own) {
			continue
		}
		if p := Next(w, xp.RefTo(u)); !p.Ready {
			m.failf("%s is not ready: %v", xp.String(u), p.Waiting)
		}
	}
	for id, mr := range m.managed {
		if h, err := HoldOf(m.objects[id]); err == nil && h != nil && h.ByHand && !h.Observes && !xp.IsPaused(m.objects[id]) {
			m.failf("%s was let go", xp.String(mr))
		}
	}
}
