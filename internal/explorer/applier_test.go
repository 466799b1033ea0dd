package explorer

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// applierSteps are those of whoever has the manifest of an XR or a claim, at any time: an apply
// that gives metadata.annotations up, which takes those with it that the manifest does not have, or
// one that replaces the object.
func (w *world) applierSteps(s *state, emit func(step)) {
	if !w.applied || s.struck && !w.often {
		return
	}
	for i := range s.objects {
		if o := &s.objects[i]; !o.live || o.mark == 0 || i != theClaim && !w.isXR(i) {
			continue
		}
		next := *s
		o := &next.objects[i]
		o.mark, o.paused, next.struck = 0, w.paused.has(nodeOf(i)), true
		emit(step{label: label{applier, "takes the hold off", int8(i)}, next: next})
		if o.policy != unset && !w.manual.has(nodeOf(i)) {
			o.policy = unset
			w.respecify(o)
			emit(step{label: label{applier, "replaces", int8(i)}, next: next})
		}
	}
}

// inquire has the plugin judge what is not held. It never counts as released by the process that
// looks, as if each poll were another.
func (w *world) inquire(world *adoption.Snapshot) {
	yes := func(xp.Ref) bool { return true }
	world.Investigate(adoption.Investigation{
		Requester: adoption.Requester{Restore: theRestore.Namespace + "/" + theRestore.Name}, Label: theRestore.Name, Requested: func(xp.ID) bool { return true }, Listed: yes, Whole: yes,
		Released: func(types.UID) bool { return false },
		Unmarked: func(types.UID) bool { return false },
	})
}

// manage says who manages the composition update policy, and that Crossplane has spoken of an
// object since it was created.
func (w *world) manage(u *unstructured.Unstructured, i instance, o *object) {
	if o.policy == manual && (i == theClaim || !w.manual.has(nodeOf(i))) {
		fields := map[string]any{}
		at := fields
		for _, name := range (xp.Instance{Unstructured: u}).UpdatePolicyPath() {
			next := map[string]any{}
			at["f:"+name], at = next, next
		}
		xptest.Field([]any{map[string]any{
			"manager": adoption.FieldManager, "operation": "Update", "apiVersion": u.GetAPIVersion(), "fieldsType": "FieldsV1", "fieldsV1": fields,
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

// isNamed reports whether the plugin says that something was lost: in an operation, or in the error
// of an item.
func (w *world) isNamed(s *state) bool {
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

	return s.named || s.applied && s.told || w.losses[v]
}

// mayFail returns the error of an item, unless it is one that is to be expected.
func (w *world) mayFail(err error) error {
	if err != nil && (w.applied || w.git) && strings.Contains(err.Error(), "was created since this restore began and is not held") {
		return nil
	}

	return err
}

// Without a judgement of what is not held nobody notices what was lost.
func TestExplorerFindsHoldsTakenOff(t *testing.T) {
	t.Parallel()
	for _, r := range []rules{v120, v23, after7627} {
		w := flat(r).in(takenOff, way{"not judged", func(w *world) { w.judged = false }})
		x, err := explore(w, orphaned|unsettled)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []damage{orphaned, unsettled} {
			if _, ok := x.found[d]; !ok {
				t.Errorf("%s: it was not found that %s", w, damages[d])
			}
		}
	}
}
