package adoption

import (
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// checkStep checks the cluster when an XR is unpaused or loses its mark.
func (m *model) checkStep(change Change, after *unstructured.Unstructured) {
	if !xp.IsComposite(after) {
		return
	}
	if h, _ := HoldOf(after); h == nil {
		m.checkRelease(after)
	}
	if !xp.IsPaused(change.Target) || xp.IsPaused(after) {
		return
	}
	refs, _ := xp.CompositeFrom(after).ResourceRefs()
	for _, r := range refs {
		u := m.objects[r.ID()]
		if u == nil {
			m.failf("%s is unpaused though %s is missing", xp.String(after), r)

			return
		}
		if c, ok := xp.Controller(u); ok && c.UID != after.GetUID() {
			m.failf("%s is unpaused though %s is controlled by %s", xp.String(after), r, c.UID)
		}
		if h, _ := HoldOf(u); h != nil {
			m.failf("%s is unpaused before its child %s is adopted or released", xp.String(after), r)
		}
	}
}

// checkRelease checks the cluster when an XR loses its mark.
func (m *model) checkRelease(xr *unstructured.Unstructured) {
	id := xp.RefTo(xr).ID()
	if !xp.IsPaused(m.own[id]) && m.reconciled[id] == 0 {
		m.failf("%s is released before it was reconciled", xp.String(xr))
	}
	r, ok := xp.CompositeFrom(xr).ClaimRef()
	if !ok {
		return
	}
	if h, _ := HoldOf(m.objects[r.ID()]); h != nil || !xp.IsPaused(m.own[r.ID()]) && m.reconciled[r.ID()] == 0 {
		m.failf("%s is released before its claim was released and reconciled", xp.String(xr))
	}
}

// checkEnd checks the end: each object that can be adopted has its user's settings. The others are
// still held, with all XRs above them.
func (m *model) checkEnd() {
	above := map[xp.ID]bool{}
	for _, r := range m.xrs { // Children come first.
		refs, _ := xp.CompositeFrom(m.own[r.ID()]).ResourceRefs()
		above[r.ID()] = m.stuck[r.ID()] || m.unsaved[r.ID()] && !xp.IsPaused(m.own[r.ID()])
		for _, child := range refs {
			// An XR that its user had paused needs its children only to exist.
			above[r.ID()] = above[r.ID()] || above[child.ID()] && !xp.IsPaused(m.own[r.ID()])
		}
	}
	for id, own := range m.own {
		u := m.objects[id]
		h, err := HoldOf(u)
		if err != nil {
			m.failf("%v", err)
		}
		if above[id] || xp.IsClaim(own) && above[m.root.ID()] {
			if h == nil || !xp.IsPaused(u) {
				m.failf("%s can't be adopted and is not held", xp.String(u))
			}

			continue
		}
		if diff := cmp.Diff(asStored(own), asStored(xptest.With(u, xptest.Without("status")))); diff != "" {
			m.failf("%s lacks its own settings: -own, +now:\n%s", xp.String(u), diff)
		}
		if !xp.IsPaused(u) && m.reconciled[id] != u.GetGeneration() && (m.modern || m.reconciled[id] == 0) {
			m.failf("%s was not reconciled after its release", xp.String(u))
		}
		if refs, _ := xp.CompositeFrom(u).ResourceRefs(); !xp.IsPaused(u) {
			for _, r := range refs {
				if !xp.Controls(u, m.objects[r.ID()]) {
					m.failf("%s does not control %s", xp.String(u), r)
				}
			}
		}
	}
}

// checkManagedEnd checks the MRs at the end: each is released with its user's settings, whether its
// XR is adopted or not, unless its external resource is unknown.
func (m *model) checkManagedEnd() {
	for id, own := range m.managed {
		if h, _ := HoldOf(m.objects[id]); m.scenarios[id].hasLost() {
			if h == nil {
				m.failf("%s is released without a known external resource", xp.String(own))
			}

			continue
		}
		var now []*unstructured.Unstructured
		for _, u := range []*unstructured.Unstructured{own, m.objects[id]} {
			now = append(now, asStored(xptest.With(u, xptest.Without("status"), xptest.Without("metadata", "ownerReferences"))))
		}
		if diff := cmp.Diff(now[0], now[1]); diff != "" {
			m.failf("%s lacks its own settings: -own, +now:\n%s", xp.String(own), diff)
		}
	}
}
