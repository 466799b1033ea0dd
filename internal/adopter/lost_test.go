package adopter

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// appliedBy sets the last manager in managedFields.
func appliedBy(manager string) xptest.Option {
	return func(u *unstructured.Unstructured) {
		xptest.Field([]any{map[string]any{
			"manager": manager, "operation": "Apply", "apiVersion": u.GetAPIVersion(), "time": laterAt, "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:size": map[string]any{}}},
		}}, "metadata", "managedFields")(u)
	}
}

// unheld returns a restored object whose hold a user has removed.
func unheld(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	return xptest.With(u, append([]xptest.Option{xptest.Labelled("velero.io/restore-name", "monday"), xptest.Created(cameAt)}, o...)...)
}

// lostTree returns an XR whose hold a user has removed, and that has composed new resources.
func lostTree() (objects []*unstructured.Unstructured, xr *unstructured.Unstructured) {
	x := xptest.XR("x")
	resource := xptest.Annotated(xp.AnnotationResourceName, "bucket")
	back := unheld(xptest.MR("b", xptest.ControlledBy(x), resource))
	anew := xptest.MR("b-new", xptest.ControlledBy(x), resource, xptest.Created(laterAt))
	xr = unheld(xptest.XR("x", xptest.Refs(anew), xptest.Reconciled(), appliedBy("argocd-controller")))

	return []*unstructured.Unstructured{back, anew, xr, apiserver.Restored(xptest.Revision(xptest.RevisionName, x))}, xr
}

// An XR with new composed resources looks adopted. The loss is reported once in the log and in an
// Event, and by the operation.
func TestAdoptReportsLosses(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, xr := lostTree()
		s := apiserver.NewServer(objects...)
		a := newFastAdopter(s)
		log, hook := logtest.NewNullLogger()
		a.log = log
		for range 2 {
			p := adoptWith(t, a, hold.Unverified, xr)
			for _, want := range []string{"XOrder x", `"argocd-controller" (Apply, ` + laterAt + ")", "composed: Bucket b-new", "what was restored: Bucket b;"} {
				if !strings.Contains(p.Failed.String(), want) || p.Done {
					t.Errorf("the operation must fail and name %s; got %+v", want, p)
				}
			}
		}
		if told := s.WrittenEvents(); len(told) != 1 || !strings.HasPrefix(told[0], "Warning AdoptionStopped x: ") {
			t.Errorf("the Events are %v", told)
		}
		logged := slices.DeleteFunc(hook.AllEntries(), func(e *logrus.Entry) bool { return !strings.Contains(e.Message, "Bucket b-new") })
		if patches := s.Requests("patch"); len(logged) != 1 || len(patches) > 0 {
			t.Errorf("logged %d times, patched %v", len(logged), patches)
		}
	})
}

// An object that no controller has reconciled yet is held again, and then adopted as usual.
func TestAdoptHoldsAgain(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, claim, xr, child := apiserver.RestoredTree()
		objects[0], objects[1], objects[2] = unheld(claim, appliedBy("argocd-controller")), unheld(xr, appliedBy("argocd-controller")), signed(child)
		s := apiserver.NewServer(objects...)
		seen := map[xp.ID]bool{xp.RefTo(child).ID(): true}
		simulateCrossplaneExcept(s, func(u *unstructured.Unstructured) bool {
			id := xp.RefTo(u).ID()
			seen[id] = seen[id] || xp.IsPaused(u)

			return !seen[id]
		})
		if p := adoptWith(t, newFastAdopter(s), testKey, xr); !p.Done || p.Adopted != 2 {
			t.Errorf("the XR must be adopted at last; got %+v", p)
		}
		want := []string{"xorders /c", "xorders /x", "xorders /c", "orderclaims team-a/o", "xorders /x", "orderclaims team-a/o", "xorders /x"}
		xptest.Same(t, want, s.Requests("patch"), "the XR gets its hold back, and then the claim")
		said := strings.Join(s.WrittenEvents(), "\n")
		for _, name := range []string{"x", "o"} {
			if !strings.Contains(said, "Warning Held "+name+": another writer had removed its hold, which was put on again before Crossplane reconciled it: the last to write it was "+
				`"argocd-controller"`) {
				t.Errorf("the Events must name the writer; they are:\n%s", said)
			}
		}
		for _, own := range []*unstructured.Unstructured{xr, child} {
			got := s.Get(t, apiserver.XOrders, "", own.GetName())
			if !cmp.Equal(got.Object["spec"], own.Object["spec"]) || len(got.GetAnnotations()) > len(own.GetAnnotations()) {
				t.Errorf("no part of the hold may be left: %v", got.Object)
			}
		}
	})
}

// An ended operation costs no list.
func TestAdoptJudgesRequestedObjects(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, xr := lostTree()
		other := unheld(xptest.XR("other", xptest.Refs(xptest.Object("v1", "ConfigMap", xptest.Namespace, "c")), xptest.Reconciled()))
		heldXR := apiserver.Restored(xptest.XR("held", xptest.NeverComposed()))
		s := apiserver.NewServer(append(objects, other, heldXR)...)
		a := newFastAdopter(s)
		plans, err := a.Adopt(t.Context(), hold.Unverified, apiserver.Monday, selector, xp.RefTo(heldXR))
		if p := plans[xp.RefTo(xr).ID()]; err != nil || !p.Unproven || s.Count("list", "buckets "+selector) > 0 {
			t.Errorf("the poll must not list composed resources before it needs them: %+v, %v, %v", p, err, s.Requests("list"))
		}
		if p := adoptWith(t, a, hold.Unverified, xr); !p.Lost || p.Unproven {
			t.Errorf("the poll must list the composed resources: %+v", p)
		}
		lists := strings.Join(s.Requests("list"), "\n") + "\n"
		if !strings.Contains(lists, "buckets "+selector+"\nbuckets \n") || strings.Contains(lists, "configmaps") {
			t.Errorf("the poll must list the kind and no other:\n%s", lists)
		}
	})
}

// An object that this process has released is adopted, and costs nothing more.
func TestAdoptTrustsWhatItHasReleased(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, _, xr, _ := apiserver.RestoredTree()
		s := apiserver.NewServer(objects...)
		simulateCrossplane(s)
		a := newFastAdopter(s)
		for range 2 {
			if p := adoptWith(t, a, hold.Unverified, xr); !p.Done || p.Unproven {
				t.Errorf("got %+v", p)
			}
		}
		if n := s.Count("list", "buckets "); n > 0 {
			t.Errorf("buckets were listed whole %d times, although all of them were restored", n)
		}
	})
}

// managedPause is an XR without its mark whose pause managedFields prove to be this plugin's.
func managedPause(o ...xptest.Option) *unstructured.Unstructured {
	return unheld(xptest.XR("x", append(o, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.SeenPaused(), xptest.Policy(xp.UpdateManual), xptest.JSON(
		`{"metadata":{"managedFields":[{"manager":"velero-plugin-for-crossplane","operation":"Update","fieldsType":"FieldsV1",
		"fieldsV1":{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":{}}},"f:spec":{"f:compositionUpdatePolicy":{}}}}]}}`))...))
}

// An admission policy can remove a mark whenever it is written. The pause of the hold remains, and
// managedFields show whose it is.
func TestAdoptReportsRemovedMarks(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		x := managedPause()
		s := apiserver.NewServer(x, apiserver.Restored(xptest.Revision(xptest.RevisionName, x)))
		s.PrependReactor("patch", "xorders", func(action clienttesting.Action) (bool, runtime.Object, error) {
			now := s.Get(t, apiserver.XOrders, "", "x")
			if patch, ok := action.(clienttesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), `"managedFields":`) {
				now = xptest.With(now, xptest.Without("metadata", "managedFields"))
			}

			return true, s.Put(apiserver.XOrders, now), nil
		})
		for range 2 {
			if p := adopt(t, s, x); p.Done || !strings.Contains(waiting(p), string(reason.ChangeUndone)) {
				t.Errorf("the plan must wait until the other writer removes the mark; got %+v", p)
			}
		}
	})
}

// An object that can't be marked does not stay paused: it goes on when all is restored, as with a
// mark.
func TestAdoptGoesOnWithoutAMark(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Reconciled())
	paused := managedPause(xptest.Refs(bucket))
	for name, want := range map[string]bool{"Whole": true, "Missing": false} {
		t.Run(name, func(t *testing.T) {
			xptest.Bubble(t, func(t *testing.T) {
				s := apiserver.NewServer(paused, apiserver.Restored(xptest.Revision(xptest.RevisionName, paused)))
				if want {
					s.Put(apiserver.Buckets, apiserver.Restored(bucket))
				}
				simulateCrossplane(s)
				s.PrependReactor("list", "xorders", func(clienttesting.Action) (bool, runtime.Object, error) {
					if u := s.Get(t, apiserver.XOrders, "", "x"); xp.HasAnnotation(u, hold.Annotation) {
						s.Put(apiserver.XOrders, xptest.With(u, xptest.Without("metadata", "annotations", hold.Annotation)))
					}

					return false, nil, nil
				})
				var p adoption.Plan
				for range 3 {
					p = adopt(t, s, paused)
				}
				u := s.Get(t, apiserver.XOrders, "", "x")
				policy, _ := xp.Instance{Unstructured: u}.UpdatePolicy()
				if free := !xp.IsPaused(u) && policy == ""; p.Done != want || free != want {
					t.Errorf("Crossplane would create a missing composed resource again, and nothing else may wait\ngot %+v\n%v", p, u.Object)
				}
			})
		})
	}
}

// An object that has lost something fails even if nothing of its hold is left, whoever removed it.
func TestAdoptTakesOffWhatIsLeftOfALoss(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, x := lostTree()
		back, anew := objects[0], objects[1]
		unpaused := xptest.Without("metadata", "annotations", xp.AnnotationPaused)
		objects[2] = xptest.With(apiserver.Restored(xptest.With(x, xptest.Refs(back))), xptest.Refs(anew), xptest.Reconciled(), unpaused)
		s := apiserver.NewServer(objects...)
		if p := adopt(t, s, x); p.Done || !strings.Contains(p.Failed.String(), "because another writer had removed its annotation crossplane.io/paused") {
			t.Errorf("the operation must fail: %+v", p)
		}
		if u := s.Get(t, apiserver.XOrders, "", "x"); xp.HasAnnotation(u, hold.Annotation) {
			t.Errorf("no part of the hold may be left: %v", u.GetAnnotations())
		}
	})
}
