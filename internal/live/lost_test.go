package live

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	cameAt  = "2026-01-02T11:00:00Z"
	laterAt = "2026-01-02T11:05:00Z"
)

func created(at string) xptest.Option { return xptest.Field(at, "metadata", "creationTimestamp") }

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
	return xptest.With(u, append([]xptest.Option{xptest.Labelled("velero.io/restore-name", "monday"), created(cameAt)}, o...)...)
}

// lostTree returns an XR whose hold a user has removed, and that has composed new resources.
func lostTree() (objects []*unstructured.Unstructured, xr *unstructured.Unstructured) {
	x := xptest.XR("x")
	resource := xptest.Annotated(xp.AnnotationResourceName, "bucket")
	back := unheld(xptest.MR("b", xptest.ControlledBy(x), resource))
	anew := xptest.MR("b-new", xptest.ControlledBy(x), resource, created(laterAt))
	xr = unheld(xptest.XR("x", xptest.Refs(anew), xptest.Reconciled(), appliedBy("argocd-controller")))

	return []*unstructured.Unstructured{back, anew, xr, restored(xptest.Revision(xptest.RevisionName, x))}, xr
}

// A user who replaces an object also removes the label of its restore.
func TestAdoptJudgesWhatWasReplaced(t *testing.T) {
	objects, xr := lostTree()
	for name, tc := range map[string]struct {
		began string
		lost  bool
	}{"Since": {began: cameAt, lost: true}, "Before": {began: laterAt}} {
		var all []*unstructured.Unstructured
		for _, u := range objects {
			if xp.RefTo(u) == xp.RefTo(xr) {
				u = xptest.With(u, xptest.Without("metadata", "labels"))
			}
			all = append(all, u)
		}
		began, err := time.Parse(time.RFC3339, tc.began)
		if err != nil {
			t.Fatal(err)
		}
		by := adoption.Requester{Restore: monday.Restore, Started: began}
		plans, err := newFastAdopter(newServer(all...)).Adopt(t.Context(), adoption.Unverified, by, selector, xp.RefTo(xr))
		if err != nil {
			t.Fatal(err)
		}
		if p := plans[xp.RefTo(xr).ID()]; p.Lost != tc.lost {
			t.Errorf("%s: got %+v", name, p)
		}
	}
}

// An XR with new composed resources looks adopted. The loss is reported once in the log and in an
// Event, and by the operation.
func TestAdoptReportsLosses(t *testing.T) {
	objects, xr := lostTree()
	s := newServer(objects...)
	a := newFastAdopter(s)
	log, hook := logtest.NewNullLogger()
	a.log = log
	for range 2 {
		plans, err := a.Adopt(t.Context(), adoption.Unverified, monday, selector, xp.RefTo(xr))
		if err != nil {
			t.Fatal(err)
		}
		p := plans[xp.RefTo(xr).ID()]
		for _, want := range []string{"XOrder x", `"argocd-controller" (Apply, ` + laterAt + ")", "composed: Bucket b-new", "what was restored: Bucket b;"} {
			if !strings.Contains(p.Failed.String(), want) || p.Done {
				t.Errorf("the operation must fail and name %s; got %+v", want, p)
			}
		}
	}
	if told := s.writtenEvents(); len(told) != 1 || !strings.HasPrefix(told[0], "Warning AdoptionStopped x: XOrder x was reconciled without its hold") {
		t.Errorf("the Events are %v", told)
	}
	logged := 0
	for _, e := range hook.AllEntries() {
		if strings.Contains(e.Message, "Bucket b-new") {
			logged++
		}
	}
	if patches := s.requests("patch"); logged != 1 || len(patches) > 0 {
		t.Errorf("logged %d times, patched %v", logged, patches)
	}
}

// An object that no controller has reconciled yet is held again, and then adopted as usual.
func TestAdoptHoldsAgain(t *testing.T) {
	objects, claim, xr, child := restoredTree()
	for n, u := range objects {
		if id := xp.RefTo(u).ID(); id == xp.RefTo(xr).ID() || id == xp.RefTo(claim).ID() {
			own := map[xp.ID]*unstructured.Unstructured{xp.RefTo(xr).ID(): xr, xp.RefTo(claim).ID(): claim}
			objects[n] = unheld(own[id], appliedBy("argocd-controller"))
		}
	}
	key := adoption.Key(strings.Repeat("k", adoption.KeySize))
	for _, u := range objects {
		if xp.HasAnnotation(u, adoption.AnnotationHold) {
			if err := key.Sign(u, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := newServer(objects...)
	seen := map[xp.ID]bool{xp.RefTo(child).ID(): true}
	simulateCrossplaneExcept(s, func(u *unstructured.Unstructured) bool {
		id := xp.RefTo(u).ID()
		seen[id] = seen[id] || xp.IsPaused(u)

		return !seen[id]
	})
	plans, err := newFastAdopter(s).Adopt(t.Context(), key, monday, selector, xp.RefTo(xr))
	if err != nil {
		t.Fatal(err)
	}
	if p := plans[xp.RefTo(xr).ID()]; !p.Done || p.Adopted != 2 {
		t.Errorf("the XR must be adopted at last; got %+v", p)
	}
	want := []string{"xorders /c", "xorders /x", "xorders /c", "orderclaims team-a/o", "xorders /x", "orderclaims team-a/o", "xorders /x"}
	if diff := cmp.Diff(want, s.requests("patch")); diff != "" {
		t.Errorf("the XR gets its hold back, and then the claim: -want, +requested:\n%s", diff)
	}
	said := strings.Join(s.writtenEvents(), "\n")
	for _, name := range []string{"x", "o"} {
		if !strings.Contains(said, "Warning Held "+name+": another writer had removed its hold, which was put on again before Crossplane reconciled it: the last to write it was "+
			`"argocd-controller"`) {
			t.Errorf("the Events must name the writer; they are:\n%s", said)
		}
	}
	for _, own := range []*unstructured.Unstructured{xr, child} {
		got := s.get(t, xorders, "", own.GetName())
		if !cmp.Equal(got.Object["spec"], own.Object["spec"]) || len(xptest.With(got).GetAnnotations()) > len(own.GetAnnotations()) {
			t.Errorf("no part of the hold may be left: %v", got.Object)
		}
	}
}

// An ended operation costs no list.
func TestAdoptJudgesRequestedObjects(t *testing.T) {
	objects, xr := lostTree()
	other := unheld(xptest.XR("other", xptest.Refs(xptest.Object("v1", "ConfigMap", xptest.Namespace, "c")), xptest.Reconciled()))
	heldXR := restored(xptest.XR("held", xptest.NeverComposed()))
	s := newServer(append(objects, other, heldXR)...)
	a := newFastAdopter(s)
	plans, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(heldXR))
	if err != nil {
		t.Fatal(err)
	}
	lists := s.requests("list")
	if p := plans[xp.RefTo(xr).ID()]; !p.Unproven || slices.ContainsFunc(lists, func(l string) bool { return strings.HasPrefix(l, "buckets") }) {
		t.Errorf("the poll must not list composed resources before it needs them: %+v, %v", p, lists)
	}
	plans, err = a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if err != nil {
		t.Fatal(err)
	}
	if p := plans[xp.RefTo(xr).ID()]; !p.Lost || p.Unproven {
		t.Errorf("the poll must list the composed resources: %+v", p)
	}
	var more []string
	for _, l := range s.requests("list") {
		if strings.HasPrefix(l, "buckets") || strings.HasPrefix(l, "configmaps") {
			more = append(more, l)
		}
	}
	if diff := cmp.Diff([]string{"buckets " + selector, "buckets "}, more[:min(2, len(more))]); diff != "" || slices.ContainsFunc(more, func(l string) bool {
		return strings.HasPrefix(l, "configmaps")
	}) {
		t.Errorf("the poll must list the kind and no other: %v", more)
	}
}

// An object that this process has released is adopted, and costs nothing more.
func TestAdoptTrustsWhatItHasReleased(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	s := newServer(objects...)
	simulateCrossplane(s)
	a := newFastAdopter(s)
	for range 2 {
		plans, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
		if p := plans[xp.RefTo(xr).ID()]; err != nil || !p.Done || p.Unproven {
			t.Errorf("got %+v, %v", p, err)
		}
	}
	if n := len(slices.DeleteFunc(s.requests("list"), func(l string) bool { return l != "buckets " })); n > 0 {
		t.Errorf("buckets were listed whole %d times, although all of them were restored", n)
	}
}

// Who has written an MR that is not held is read only where it matters.
func TestAdoptReportsLossesOfMRs(t *testing.T) {
	mr := unheld(xptest.MR("b", xptest.Annotated(xp.AnnotationCreateSucceeded, laterAt), appliedBy("argocd-controller")))
	observing := unheld(xptest.MR("o", xptest.JSON(`{"spec":{"managementPolicies":["Observe"]},"metadata":{"managedFields":[{"manager":"velero-plugin-for-crossplane",
		"operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:managementPolicies":{}}}}]}}`)))
	s := newServer(mr, observing)
	a := newFastAdopter(s)
	plans := map[xp.ID]adoption.Plan{}
	for _, u := range []*unstructured.Unstructured{mr, observing} {
		found, err := a.Adopt(t.Context(), adoption.Unverified, monday, selector, xp.RefTo(u))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(plans, found)
	}
	if p := plans[xp.RefTo(mr).ID()]; !strings.Contains(p.Failed.String(), "argocd-controller") {
		t.Errorf("got %+v", p)
	}
	_, left, _ := unstructured.NestedFieldNoCopy(s.get(t, buckets, "", "o").Object, "spec", "managementPolicies")
	if p := plans[xp.RefTo(observing).ID()]; !p.Done || left {
		t.Errorf("no part of the hold may be left; got %+v, %t", p, left)
	}
}

// An admission policy can remove a mark whenever it is written. The pause of the hold remains, and
// managedFields show whose it is.
func TestAdoptReportsRemovedMarks(t *testing.T) {
	x := xptest.XR("x")
	paused := unheld(xptest.With(x, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.SeenPaused(), xptest.JSON(`{"metadata":{"managedFields":[
		{"manager":"velero-plugin-for-crossplane","operation":"Update","fieldsV1":{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":{}}}}}]}}`)))
	s := newServer(paused, restored(xptest.Revision(xptest.RevisionName, x)))
	s.PrependReactor("patch", "xorders", func(action clienttesting.Action) (bool, runtime.Object, error) {
		now := s.get(t, xorders, "", "x")
		if patch, ok := action.(clienttesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), `"managedFields":`) {
			now = xptest.With(now, xptest.Without("metadata", "managedFields"))
		}

		return true, s.put(xorders, now), nil
	})
	for range 2 {
		plans, err := newFastAdopter(s).Adopt(t.Context(), adoption.Unverified, monday, selector, xp.RefTo(x))
		if err != nil {
			t.Fatal(err)
		}
		p := plans[xp.RefTo(x).ID()]
		if p.Done || !strings.Contains(strings.Join(reason.Strings(p.Waiting), "; "), "another writer has undone a change") {
			t.Errorf("the plan must wait until the other writer removes the mark; got %+v", p)
		}
	}
}

// An object that can't be marked does not stay paused: it goes on when all is restored, as with a
// mark.
func TestAdoptGoesOnWithoutAMark(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Reconciled())
	x := xptest.XR("x", xptest.Refs(bucket))
	paused := unheld(xptest.With(x, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.SeenPaused(), xptest.Policy(xp.UpdateManual), xptest.JSON(
		`{"metadata":{"managedFields":[{"manager":"velero-plugin-for-crossplane","operation":"Update","fieldsType":"FieldsV1",
		"fieldsV1":{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":{}}},"f:spec":{"f:compositionUpdatePolicy":{}}}}]}}`)))
	cases := map[string]struct {
		reason string
		back   []*unstructured.Unstructured
		want   bool
	}{
		"Whole":   {reason: "All composed resources are back.", back: []*unstructured.Unstructured{restored(bucket)}, want: true},
		"Missing": {reason: "Crossplane would create the missing composed resource again.", back: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(append(tc.back, paused, restored(xptest.Revision(xptest.RevisionName, x)))...)
			simulateCrossplane(s)
			s.PrependReactor("list", "xorders", func(clienttesting.Action) (bool, runtime.Object, error) {
				if u := s.get(t, xorders, "", "x"); xp.HasAnnotation(u, adoption.AnnotationHold) {
					s.put(xorders, xptest.With(u, xptest.Without("metadata", "annotations", adoption.AnnotationHold)))
				}

				return false, nil, nil
			})
			var p adoption.Plan
			for range 3 {
				plans, err := newFastAdopter(s).Adopt(t.Context(), adoption.Unverified, monday, selector, xp.RefTo(x))
				if err != nil {
					t.Fatal(err)
				}
				p = plans[xp.RefTo(x).ID()]
			}
			u := s.get(t, xorders, "", "x")
			policy, _ := xp.Instance{Unstructured: u}.UpdatePolicy()
			if free := !xp.IsPaused(u) && policy == ""; p.Done != tc.want || free != tc.want {
				t.Errorf("%s\ngot %+v\n%v", tc.reason, p, u.Object)
			}
		})
	}
}

// An object that has lost something fails even if nothing of its hold is left, whoever removed it.
func TestAdoptTakesOffWhatIsLeftOfALoss(t *testing.T) {
	objects, x := lostTree()
	back, anew := objects[0], objects[1]
	unpaused := xptest.Without("metadata", "annotations", xp.AnnotationPaused)
	objects[2] = xptest.With(restored(xptest.With(x, xptest.Refs(back))), xptest.Refs(anew), xptest.Reconciled(), unpaused)
	s := newServer(objects...)
	plans, err := newFastAdopter(s).Adopt(t.Context(), adoption.Unverified, monday, selector, xp.RefTo(x))
	if err != nil {
		t.Fatal(err)
	}
	if p := plans[xp.RefTo(x).ID()]; p.Done || !strings.Contains(p.Failed.String(), "because another writer had removed its annotation crossplane.io/paused") {
		t.Errorf("the operation must fail: %+v", p)
	}
	if u := s.get(t, xorders, "", "x"); xp.HasAnnotation(u, adoption.AnnotationHold) {
		t.Errorf("no part of the hold may be left: %v", u.GetAnnotations())
	}
}
