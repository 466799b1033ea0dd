package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// One observation serves all operations of a round; the next round observes again.
func TestProgressObservesOncePerRound(t *testing.T) {
	x, y, z := xptest.XR("x"), xptest.XR("y"), xptest.XR("z")
	w := &fakeAdopter{plans: map[xp.ID]adoption.Plan{
		xp.RefTo(x).ID(): {Total: 1}, xp.RefTo(y).ID(): {Total: 2, Adopted: 1},
	}}
	a := pollWith(w)
	poll := func(seconds int, name string, total int64) {
		t.Helper()
		a.now = at(seconds)
		p, err := a.Progress("XOrder.v1alpha1.example.org//"+name, restoreOf(nil))
		if err != nil || p.NTotal != total {
			t.Errorf("at %d s, %s: got total %d, error %v; want total %d", seconds, name, p.NTotal, err, total)
		}
	}
	const selector = "velero.io/restore-name=monday "
	poll(30, "x", 1)
	poll(30, "y", 2)
	poll(34, "x", 1)
	if diff := cmp.Diff([]string{selector + "XOrder x"}, w.asked); diff != "" {
		t.Errorf("one read must serve all operations of a poll: -want, +asked:\n%s", diff)
	}

	w.plans = map[xp.ID]adoption.Plan{xp.RefTo(z).ID(): {Total: 3}}
	poll(34, "z", 3)
	poll(34, "x", 1)
	if diff := cmp.Diff([]string{selector + "XOrder x", selector + "XOrder z"}, w.asked); diff != "" {
		t.Errorf("an unrelated operation needs its own read and must keep the earlier results: -want, +asked:\n%s", diff)
	}

	w.plans = map[xp.ID]adoption.Plan{xp.RefTo(x).ID(): {Total: 4}}
	poll(38, "x", 1)
	poll(43, "x", 4)
	if len(w.asked) != 3 {
		t.Errorf("a poll after 5 s must read again; asked %v", w.asked)
	}
}

// An object whose hold another writer may have removed is observed for its own operation only.
func TestProgressObservesUnproven(t *testing.T) {
	w := &fakeAdopter{plans: planFor(adoption.Plan{Done: true, Unproven: true})}
	a := pollWith(w)
	progress := func() velero.OperationProgress {
		t.Helper()
		p, err := a.Progress(operation, restoreOf(nil))
		if err != nil {
			t.Fatal(err)
		}

		return p
	}
	if _, err := a.Progress("XOrder.v1alpha1.example.org//y", restoreOf(nil)); err != nil {
		t.Fatal(err)
	}
	w.plans = planFor(adoption.Plan{Failed: reason.Message{Text: "it has lost something"}, Lost: true})
	if p := progress(); p.Err != "it has lost something" || !p.Completed || len(w.asked) != 2 {
		t.Errorf("the poll must report the lost hold; got %+v, asked %v", p, w.asked)
	}
	w.plans = planFor(adoption.Plan{Done: true, Unproven: true})
	if _, err := a.Progress("XOrder.v1alpha1.example.org//z", restoreOf(nil)); err != nil {
		t.Fatal(err)
	}
	if p := progress(); p.Err != "it has lost something" || len(w.asked) != 3 {
		t.Errorf("a later poll must keep the failure; got %+v, asked %v", p, w.asked)
	}
}

// A round of many operations can take longer than results last.
func TestProgressObservesOnceForManyOperations(t *testing.T) {
	w := &fakeAdopter{plans: planFor(adoption.Plan{Total: 1})}
	a := pollWith(w)
	for n := range 20 {
		a.now = at(n)
		if _, err := a.Progress(operation, restoreOf(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.asked) != 1 {
		t.Errorf("operations in quick succession must share one poll; asked %v", w.asked)
	}
}

func TestProgressDoesNotRememberAFailure(t *testing.T) {
	w := &fakeAdopter{err: errAPI}
	a := pollWith(w)
	_, _ = a.Progress(operation, restoreOf(nil))
	w.err, w.plans = nil, planFor(adoption.Plan{Done: true})
	if p, err := a.Progress(operation, restoreOf(nil)); err != nil || !p.Completed {
		t.Errorf("a failure must not outlast its cause; got %+v, %v", p, err)
	}
}
