package adoption

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// react makes Crossplane and the providers reconcile some objects once. It reports whether anything
// changed.
func (m *model) react() bool {
	reacted := false
	for _, id := range m.order {
		u := m.objects[id]
		next := u
		switch {
		case m.chance(3):
			// Its controller is busy.
		case m.missed[id]:
			// Its controller has lost the event.
		case xp.IsClaim(u):
			next = m.reactToClaim(u)
		case xp.IsComposite(u):
			next = m.reactToXR(u)
		case xp.IsManaged(u):
			next = m.reactToMR(u)
		}
		if next != u {
			reacted = true
			m.change(next)
		}
	}

	return reacted
}

// reactToClaim copies a claim's annotations and policy to its XR, as crossplane's
// claim/syncer_ssa.go does.
func (m *model) reactToClaim(claim *unstructured.Unstructured) *unstructured.Unstructured {
	if xp.IsPaused(claim) {
		return m.withCondition(claim, xptest.SeenPaused())
	}
	xr := m.objects[m.root.ID()]
	if next := copySettings(claim, xr); !reflect.DeepEqual(xr, next) {
		m.change(next)
	}

	m.reconciled[xp.RefTo(claim).ID()] = claim.GetGeneration()

	return m.withCondition(claim, xptest.Reconciled())
}

// withCondition returns u with a condition, or u itself if it has that already.
func (m *model) withCondition(u *unstructured.Unstructured, condition xptest.Option) *unstructured.Unstructured {
	next := xptest.With(u, condition)
	if m.modern {
		xptest.OfGeneration(u.GetGeneration())(next)
	}
	if now, _ := xp.ConditionOf(u, xp.ConditionSynced); now != (xp.Condition{}) {
		if then, _ := xp.ConditionOf(next, xp.ConditionSynced); now == then {
			return u
		}
	}

	return next
}

func copySettings(claim, xr *unstructured.Unstructured) *unstructured.Unstructured {
	xr = xr.DeepCopy()
	for key, value := range claim.GetAnnotations() {
		xptest.Annotated(key, value)(xr)
	}
	if policy, ok := (xp.Instance{Unstructured: claim}).UpdatePolicy(); ok {
		xptest.Policy(policy)(xr)
	}

	return xr
}

func (m *model) reactToXR(xr *unstructured.Unstructured) *unstructured.Unstructured {
	if xp.IsPaused(xr) {
		return m.withCondition(xr, xptest.SeenPaused())
	}
	c := xp.CompositeFrom(xr)
	held, err := HoldOf(xr)
	if err != nil {
		m.failf("%v", err)
	}
	// A released claim copies its policy to its XR, which is adopted by then.
	_, claimed := c.ClaimRef()
	if policy, _ := c.UpdatePolicy(); held != nil && held.Pinned && policy != xp.UpdateManual && !claimed {
		m.failf("%s is reconciled under another revision before it is adopted", xp.String(xr))
	}
	m.functions(xr)
	refs, _ := c.ResourceRefs()
	for _, r := range refs {
		u := m.objects[r.ID()]
		if u == nil {
			m.failf("%s composes a second %s", xp.String(xr), r)

			return xr
		}
		switch o, ok := xp.Controller(u); {
		case !ok:
			m.change(xptest.With(u, xptest.ControlledBy(xr)))
		case o.UID != xr.GetUID():
			m.failf("%s composes a second %s", xp.String(xr), r)
		}
	}

	m.reconciled[xp.RefTo(xr).ID()] = xr.GetGeneration()

	return m.withCondition(xr, xptest.Reconciled())
}
