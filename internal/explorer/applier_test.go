package explorer

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// applierSteps are the steps of a user or tool with the manifest of an XR or claim, at any time: an
// apply that gives metadata.annotations up, which removes those that the manifest lacks, or one
// that replaces the object.
func (w *world) applierSteps(s *state, emit func(step)) {
	if !w.applied || s.holdRemoved && !w.often {
		return
	}
	for i := range s.objects {
		if o := &s.objects[i]; !o.live || o.mark == 0 || i != theClaim && !w.isXR(i) {
			continue
		}
		next := *s
		o := &next.objects[i]
		o.mark, o.paused, next.holdRemoved = 0, w.paused.has(nodeOf(i)), true
		emit(step{label: label{applier, "takes the hold off", int8(i)}, next: next})
		if o.policy != unset && !w.manual.has(nodeOf(i)) {
			o.policy = unset
			w.newGeneration(o)
			emit(step{label: label{applier, "replaces", int8(i)}, next: next})
		}
	}
}

// investigate makes the plugin judge what is not held. No object counts as released by the current
// process, as if each poll had its own.
func (w *world) investigate(snapshot *adoption.Snapshot) {
	yes := func(xp.Ref) bool { return true }
	snapshot.Investigate(adoption.Investigation{
		Requester: adoption.Requester{Restore: theRestore.Namespace + "/" + theRestore.Name}, Label: theRestore.Name, Requested: func(xp.ID) bool { return true }, Listed: yes, Whole: yes,
		Released: func(types.UID) bool { return false },
		Unmarked: func(types.UID) bool { return false },
	})
}

// setManagers sets the manager of the composition update policy, and a transition time of the
// conditions after the creation.
func (w *world) setManagers(u *unstructured.Unstructured, i instance, o *object) {
	if o.policy == manual && (i == theClaim || !w.manual.has(nodeOf(i))) {
		fields := map[string]any{}
		at := fields
		for _, name := range (xp.Instance{Unstructured: u}).UpdatePolicyPath() {
			next := map[string]any{}
			at["f:"+name], at = next, next
		}
		xptest.Field([]any{map[string]any{
			"manager": hold.FieldManager, "operation": "Update", "apiVersion": u.GetAPIVersion(), "fieldsType": "FieldsV1", "fieldsV1": fields,
		}}, "metadata", "managedFields")(u)
	}
	list, ok, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if !ok {
		return
	}
	for _, c := range list {
		if m, is := c.(map[string]any); is {
			m["lastTransitionTime"] = noon.Format("2006-01-02T15:04:05Z07:00")
		}
	}
	xptest.Field(list, "status", "conditions")(u)
}

// isReported reports whether the plugin reports a loss: in an operation, or as the error of an
// item.
func (w *world) isReported(s *state) bool {
	if !w.judged {
		return false
	}
	v := view{objects: s.objects, revisions: s.revisions, revised: s.revised}
	for i := range v.objects {
		if !v.objects[i].live {
			v.objects[i] = object{}
		}
	}
	w.planFor(s)

	return s.reported || s.applied && s.ownerReported || w.losses[v]
}

// mayFail returns the error of an item, nil if it is expected.
func (w *world) mayFail(err error) error {
	if err != nil && (w.applied || w.git) && reason.CodeOf(err) == reason.XRNotHeld {
		return nil
	}

	return err
}

// If nothing judges what is not held, losses stay unreported.
func TestExplorerFindsHoldsTakenOff(t *testing.T) {
	t.Parallel()
	for _, r := range []rules{v120, v23, after7627} {
		w := flat(r).vary(takenOff, variant{"not judged", func(w *world) { w.judged = false }})
		x, err := explore(w, orphaned|unsettled)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []damage{orphaned, unsettled} {
			if _, ok := x.found[d]; !ok {
				t.Errorf("%s: the explorer did not find that %s", w, damages[d])
			}
		}
	}
}
