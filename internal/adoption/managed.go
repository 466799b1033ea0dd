package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// nextForManaged plans for an MR that publishes connection details, and that no held XR composes.
func nextForManaged(u *unstructured.Unstructured, h *Hold) Plan {
	if h == nil {
		return Plan{Done: true}
	}

	return Plan{Change: letGo(u, h), Moving: true}
}

// letGo gives an MR that was held for its connection secret its own settings back. A plan is made when all items are restored.
func letGo(u *unstructured.Unstructured, h *Hold) Change {
	return Change{Target: u, Patch: giveBack(u, h), Step: "its connection secret is back; give its own settings back"}
}

// letGo plans the end of the hold of an MR and tells whether there is one.
func (t *tree) letGo(r xp.Ref, u *unstructured.Unstructured) bool {
	h, err := HoldOf(u)
	if err != nil || h == nil || h.Clone != "" || !IsMarked(u) {
		return false
	}
	// The refs in a mark are what somebody wrote into it. What the XR controls is its own; what nobody does has an operation of its own.
	switch c, controlled := xp.Controller(u); {
	case controlled && c.UID != t.xr.GetUID():
		return false
	case controlled:
		t.plan.Also = append(t.plan.Also, letGo(u, h))
	}
	t.wait(true, "%s: it was held until its connection secret was back", r)

	return true
}
