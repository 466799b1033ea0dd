package adoption

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A scenario is the state of an MR in the backup, and what happens to it.
type scenario struct {
	// hold is its hold, besides the one for its connection secret.
	hold Hold
	// status is its status, of which a restore restores the requested part.
	status map[string]any
	// cloud is the ID of its external resource; "" if that is gone.
	cloud string
	// fails means that its provider can't reach the cloud, as before the backup.
	fails bool
	// fix is a user's fix in the end; nil if there is none.
	fix xptest.Option
	// allowed means that a user lets its provider create the external resource.
	allowed bool
}

// draw draws the scenario of an MR of an XR, and returns the MR with its user's settings.
func (m *model) draw(mr, xr *unstructured.Unstructured) *unstructured.Unstructured {
	f := &scenario{cloud: mr.GetName(), fails: m.chance(8)}
	m.scenarios[xp.RefTo(mr).ID()] = f
	own := mr.GetAnnotations()[xp.AnnotationPaused] == "true"
	f.status = map[string]any{"atProvider": map[string]any{"id": f.cloud}}
	was := xptest.With(mr, xptest.Field(f.status, "status"), xptest.Field([]any{}, "status", "conditions"))
	m.setCondition(was, xp.ConditionReady, []string{"True", "False"}[m.random.IntN(2)], "")
	switch {
	case own:
		m.setCondition(was, xp.ConditionSynced, "False", xp.ReasonReconcilePaused)
	case f.fails:
		m.setCondition(was, xp.ConditionSynced, "False", "ReconcileError")
	default:
		m.setCondition(was, xp.ConditionSynced, "True", "ReconcileSuccess")
	}
	f.status, _, _ = unstructured.NestedMap(was.Object, "status")
	m.was[xp.RefTo(xr).ID()] = append(m.was[xp.RefTo(xr).ID()], was)
	f.hold.Status = xp.NeededStatus(was)
	if own || f.fails {
		return mr
	}
	if m.chance(5) {
		f.hold.Observes = true
		if m.chance(2) {
			policies(`["*"]`)(mr)
		}
	}
	switch {
	case m.chance(8):
		f.hold.Identity = xp.Unknown
		xptest.Without("metadata", "annotations", xp.AnnotationExternalName)(mr)
		if !m.lost(xr) {
			f.fix = xptest.Annotated(xp.AnnotationExternalName, f.cloud)
		}
	case m.chance(8) && f.hold.Observes:
		f.cloud = ""
		if !m.lost(xr) {
			f.fix, f.allowed = policies(`["*"]`), true
		}
	}

	return mr
}

// lost reports whether nothing fixes an MR of an XR, so that the XR can't be adopted.
func (m *model) lost(xr *unstructured.Unstructured) bool {
	lost := m.chance(3)
	m.stuck[xp.RefTo(xr).ID()] = m.stuck[xp.RefTo(xr).ID()] || lost

	return lost
}

// restored returns an MR as the restore creates it, with the requested status.
func (m *model) restored(own *unstructured.Unstructured) *unstructured.Unstructured {
	f := m.scenarios[xp.RefTo(own).ID()]
	if !m.quarantine && !xp.Publishes(own) && !f.hold.Observes && f.hold.Identity == "" && len(f.hold.Status) == 0 {
		return own.DeepCopy()
	}
	f.hold.Quarantine, f.hold.ByHand = m.quarantine, m.byHand
	u := heldFor(own, f.hold)
	if len(f.hold.Status) > 0 {
		u.Object["status"] = xptest.With(u, xptest.Field(f.status, "status")).Object["status"]
	}
	u.SetGeneration(1)
	if f.fix != nil {
		m.managed[xp.RefTo(own).ID()] = xptest.With(own, f.fix)
		m.pending = append(m.pending, func() { m.change(xptest.With(m.objects[xp.RefTo(own).ID()], f.fix)) })
	}

	return u
}

// forget makes an XR come from a backup without this plugin: an MR that could not be reconciled
// then blocks it.
func (m *model) forget(xr xp.ID) {
	for _, was := range m.was[xr] {
		f := m.scenarios[xp.RefTo(was).ID()]
		m.unsaved[xr] = m.unsaved[xr] || f.fails && !xp.IsPaused(was)
	}
	delete(m.was, xr)
}

// hasLost reports whether an MR stays held for good, unless it has another controller.
func (f *scenario) hasLost() bool {
	return f.fix == nil && (f.hold.Identity != "" || f.cloud == "")
}

// reactToMR makes a provider reconcile an MR once.
func (m *model) reactToMR(mr *unstructured.Unstructured) *unstructured.Unstructured {
	f := m.scenarios[xp.RefTo(mr).ID()]
	next := mr.DeepCopy()
	name := mr.GetAnnotations()[xp.AnnotationExternalName]
	switch found := name != "" && name == f.cloud; {
	case xp.IsPaused(mr):
		m.setCondition(next, xp.ConditionSynced, "False", xp.ReasonReconcilePaused)
	case f.fails:
		m.setCondition(next, xp.ConditionSynced, "False", "ReconcileError")
	case !found && !xp.MayCreate(mr):
		m.setCondition(next, xp.ConditionSynced, "False", "ReconcileError")
	case !found && !f.allowed:
		m.failf("%s creates a second external resource", xp.String(mr))
	default:
		f.cloud = name
		m.setCondition(next, xp.ConditionSynced, "True", "ReconcileSuccess")
		if !m.chance(4) {
			m.setCondition(next, xp.ConditionReady, "True", "Available")
		}
	}
	if reflect.DeepEqual(mr, next) {
		return mr
	}

	return next
}

// setCondition sets one condition of an object.
func (m *model) setCondition(u *unstructured.Unstructured, condition, status, reason string) {
	said := map[string]any{"type": condition, "status": status, "reason": reason}
	if m.modern {
		said["observedGeneration"] = u.GetGeneration()
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	at := len(list)
	for i, entry := range list {
		if c, ok := entry.(map[string]any); ok && c["type"] == condition {
			at = i
		}
	}
	xptest.Field(append(append(list[:at:at], said), list[min(at+1, len(list)):]...), "status", "conditions")(u)
}

// functions read what an XR composes and its own status, and leave out resources whose conditions
// are worse than before.
func (m *model) functions(xr *unstructured.Unstructured) {
	id := xp.RefTo(xr).ID()
	for _, was := range m.was[id] {
		if lacks := xp.TrueConditionsOf(was).Missing(m.objects[xp.RefTo(was).ID()]); len(lacks) > 0 {
			m.failf("%s leaves out what comes after %s, which is not %v any more", xp.String(xr), xp.String(was), lacks)
		}
	}
	if _, ok, _ := unstructured.NestedString(xr.Object, "status", "address"); m.addressed[id] && !ok {
		m.failf("%s has forgotten what its functions have written", xp.String(xr))
	}
}
