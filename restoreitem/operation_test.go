package restoreitem

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// fakeAdopter is an Adopter that returns the same plans or error until a test changes them.
type fakeAdopter struct {
	plans map[xp.ID]adoption.Plan
	// Errors of the calls; GiveUp returns both.
	err, giveUpErr error

	// asked are the selector and XR of each call of Adopt, and gaveUp the XR and reason of each
	// call of GiveUp.
	asked, gaveUp []string
	// by is who asked last.
	by adoption.Requester
}

func (w *fakeAdopter) Adopt(_ context.Context, _ hold.Key, by adoption.Requester, selector string, ref xp.Ref) (map[xp.ID]adoption.Plan, error) {
	w.asked, w.by = append(w.asked, selector+" "+ref.String()), by

	return w.plans, w.err
}

func (w *fakeAdopter) GiveUp(_ context.Context, _ hold.Key, ref xp.Ref, reason string) error {
	w.gaveUp = append(w.gaveUp, ref.String()+": "+reason)

	return errors.Join(w.giveUpErr, w.err)
}

const operation = "XOrder.v1alpha1.example.org//x"

func planFor(p adoption.Plan) map[xp.ID]adoption.Plan {
	return map[xp.ID]adoption.Plan{xp.RefTo(xptest.XR("x")).ID(): p}
}

func texts(all ...string) (messages []reason.Message) {
	for _, text := range all {
		messages = append(messages, reason.Message{Text: text})
	}

	return messages
}

func pollWith(w *fakeAdopter) *Adopt { return pollIn(live(), w) }

func pollIn(c *cluster, w *fakeAdopter) *Adopt {
	log, _ := logtest.NewNullLogger()
	a := NewAdopt(Crossplane(), c, w, log, Shared{})
	a.now = at(30)

	return a
}

func TestProgress(t *testing.T) {
	began := metav1.NewTime(at(0)())
	progress := func(completed bool, adopted, total int64, description string) velero.OperationProgress {
		return velero.OperationProgress{
			Completed: completed, NCompleted: adopted, NTotal: total, Description: description,
			OperationUnits: "composed resources", Updated: at(30)(), Started: began.Time,
		}
	}
	failed := progress(true, 0, 0, "0 of 0 composed resources adopted")
	failed.Err = "it was not restored"
	for name, tc := range map[string]struct {
		reason string
		plan   adoption.Plan
		err    error
		want   velero.OperationProgress
	}{
		"Waiting": {
			reason: "The description names the objects that the XR waits for.", plan: adoption.Plan{Adopted: 1, Total: 2, Waiting: texts("Bucket b: it was not restored")},
			want: progress(false, 1, 2, "1 of 2 composed resources adopted; waiting for Bucket b: it was not restored"),
		},
		"Done": {
			reason: "Each composed resource is adopted, so the operation is complete.", plan: adoption.Plan{Done: true, Adopted: 2, Total: 2},
			want: progress(true, 2, 2, "2 of 2 composed resources adopted"),
		},
		"Failed": {reason: "Waiting cannot solve this, so the operation fails with the reason.", plan: adoption.Plan{Failed: texts("it was not restored")[0]}, want: failed},
		"Quarantine": {
			reason: "The restore must not wait for a user to end the quarantine.", plan: adoption.Plan{Total: 2, Quarantine: texts("in quarantine")[0]},
			want: progress(true, 0, 2, "in quarantine"),
		},
		"QuarantineOfAPart": {
			reason: "A composed resource in quarantine must not delay the restore either.",
			plan:   adoption.Plan{Adopted: 1, Total: 2, Quarantine: texts("b is in quarantine")[0], Waiting: texts("b is in quarantine")},
			want:   progress(true, 1, 2, "1 of 2 composed resources adopted; waiting for b is in quarantine"),
		},
		"QuarantineMoving": {
			reason: "The restore waits for the parts that can be adopted without a user.",
			plan:   adoption.Plan{Total: 2, Quarantine: texts("b is in quarantine")[0], Waiting: texts("b is in quarantine", "c"), Moving: true},
			want:   progress(false, 0, 2, "0 of 2 composed resources adopted; waiting for b is in quarantine; c"),
		},
		"Ready": {
			reason: "A user releases it, so the restore does not wait.", plan: adoption.Plan{Adopted: 1, Total: 1, Ready: true, Waiting: texts("XOrder x: it is ready")},
			want: progress(true, 1, 1, "1 of 1 composed resources adopted; waiting for XOrder x: it is ready"),
		},
		"TemporaryError": {
			reason: "Velero fails an operation on a Go error, so a temporary error becomes a description.", err: errAPI,
			want: progress(false, 0, 0, "trying again: "+errAPI.Error()),
		},
		"Unknown": {reason: "An XR without a plan is not done.", want: progress(false, 0, 0, "0 of 0 composed resources adopted")},
	} {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			restore.Status.StartTimestamp = &began
			got, err := pollWith(&fakeAdopter{plans: planFor(tc.plan), err: tc.err}).Progress(operation, restore)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
	if _, err := pollWith(&fakeAdopter{}).Progress("x", restoreOf(nil)); err == nil {
		t.Error("an operation must fail if its ID can't be read")
	}
}

func TestProgressSelectsByALabelThatLabelsCanHave(t *testing.T) {
	w := &fakeAdopter{}
	restore := restoreOf(nil)
	restore.Name = strings.Repeat("r", 80)
	if _, err := pollWith(w).Progress(operation, restore); err != nil {
		t.Fatal(err)
	}
	value := strings.TrimPrefix(strings.Fields(w.asked[0])[0], velerov1.RestoreNameLabel+"=")
	if len(value) > 63 {
		t.Errorf("the label must have a long name shortened as Velero does; got %q", value)
	}
}

func TestDescribe(t *testing.T) {
	for want, plan := range map[string]adoption.Plan{
		"0 of 0 composed resources adopted; a":                         {Done: true, Remarks: texts("a")},
		"0 of 1 composed resources adopted; waiting for w; a; b":       {Total: 1, Waiting: texts("w"), Remarks: texts("a", "b")},
		"3 of 3 composed resources ready to be adopted; waiting for a": {Held: true, Adopted: 3, Total: 3, Waiting: texts("a")},
		"2 of 2 composed resources adopted":                            {Done: true, Adopted: 2, Total: 2, Waiting: texts("a")},
		"not held":                                                     {Done: true},
		"waiting for a; b; c; and 2 more":                              {Waiting: texts("a", "b", "c", "d", "e")},
	} {
		if got := describe(plan); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCancel(t *testing.T) {
	const stopped = "XOrder x: the Restore velero/monday stopped waiting: "
	for want, w := range map[string]*fakeAdopter{
		"0 of 1 composed resources adopted": {plans: planFor(adoption.Plan{Total: 1})},
		"the API server did not answer":     {err: errAPI},
	} {
		a := pollWith(w)
		if _, err := a.Progress(operation, restoreOf(nil)); err != nil {
			t.Fatal(err)
		}
		err := a.Cancel(operation, restoreOf(nil))
		if diff := cmp.Diff([]string{stopped + want}, w.gaveUp); diff != "" || len(w.asked) != 1 || !errors.Is(err, w.err) {
			t.Errorf("it must explain the hold with what is known, and take no step: asked %v, error %v, -want, +got:\n%s", w.asked, err, diff)
		}
	}
	if err := pollWith(&fakeAdopter{}).Cancel("?", restoreOf(nil)); err == nil {
		t.Error("want an error for an unreadable ID")
	}
}

func TestOperationID(t *testing.T) {
	for want, r := range map[string]xp.Ref{
		"X.v1.example.org//a":             {APIVersion: "example.org/v1", Kind: "X", Name: "a"},
		"X.v1beta1.a.b.example.org/n/a.b": {APIVersion: "a.b.example.org/v1beta1", Kind: "X", Namespace: "n", Name: "a.b"},
		"X.v1.//a":                        {APIVersion: "v1", Kind: "X", Name: "a"},
	} {
		if got, err := parseOperationID(operationID(r)); operationID(r) != want || got != r || err != nil {
			t.Errorf("got %s, read as %v, error %v, want %s", operationID(r), got, err, want)
		}
	}
	for _, id := range []string{"", "/", "//", "X/n/a", "X.v1/n/a", "X.v1.g/n/", "X.v1.g/n", "X.v1.g/n/a/b"} {
		if ref, err := parseOperationID(id); err == nil {
			t.Errorf("%q is no operation ID; got %v", id, ref)
		}
	}
}

// An ID identifies its object, and no ID makes the parser panic.
func FuzzOperationID(f *testing.F) {
	for _, s := range []string{operation, "X.v1.//a", "X.v1.g/n/a", "..//a", "X/n/a", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		ref, err := parseOperationID(id)
		if err != nil {
			return
		}
		if ref.Name == "" {
			t.Errorf("%q is no operation ID", id)
		}
		again, err := parseOperationID(operationID(ref))
		if strings.Contains(ref.GroupVersionKind().Group, "/") || ref.GroupVersionKind().Version == "" {
			return // This plugin does not write such an ID.
		}
		if diff := cmp.Diff(ref, again); err != nil || diff != "" {
			t.Errorf("%q: error %v, -read, +read again:\n%s", id, err, diff)
		}
	})
}

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

var errOdd = errors.New("there are two")

func TestProgressTimesOut(t *testing.T) {
	waiting := adoption.Plan{Adopted: 1, Total: 2, Waiting: []reason.Message{{Text: "Bucket b: it was not restored"}}, RestoredAt: at(0)()}
	with := func(change func(p *adoption.Plan)) adoption.Plan {
		p := waiting
		change(&p)

		return p
	}
	// A want is the result of a poll; Trying is what it tries again.
	type want struct {
		Completed, Failed, GaveUp bool
		Trying                    error
	}
	over, waits := want{Completed: true, Failed: true, GaveUp: true}, want{}
	for name, tc := range map[string]struct {
		reason string
		plan   adoption.Plan
		// began is the second in which the restore began, -1 if it has not.
		began             int
		timeout           string
		configErr, giveUp error
		want              want
	}{
		"Over":       {reason: "The timeout has passed since the last object arrived.", plan: waiting, timeout: "20s", want: over},
		"Before":     {reason: "The timeout has not passed yet.", plan: waiting, timeout: "31s", want: waits},
		"None":       {reason: "Without the setting only Velero's own timeout applies.", plan: waiting, want: waits},
		"LateObject": {reason: "The time starts at the last object.", plan: with(func(p *adoption.Plan) { p.RestoredAt = at(15)() }), timeout: "20s", want: waits},
		"SecondRestore": {
			reason: "Objects of an earlier restore get the full time of this one.", plan: with(func(p *adoption.Plan) { p.RestoredAt = at(0)().Add(-time.Hour) }),
			began: 15, timeout: "20s", want: waits,
		},
		"Unknown":     {reason: "Without a start time it cannot pass.", plan: with(func(p *adoption.Plan) { p.RestoredAt = time.Time{} }), began: -1, timeout: "20s", want: waits},
		"Done":        {reason: "A completed adoption counts even after it.", plan: with(func(p *adoption.Plan) { p.Done = true }), timeout: "20s", want: want{Completed: true}},
		"GiveUpFails": {reason: "The plugin gives up only if it can record why.", plan: waiting, timeout: "20s", giveUp: errAPI, want: want{GaveUp: true, Trying: errAPI}},
		"Unread":      {reason: "Adoption continues without the setting.", plan: waiting, configErr: errOdd, want: want{Trying: errOdd}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &fakeAdopter{plans: planFor(tc.plan), giveUpErr: tc.giveUp}
			a := pollIn(&cluster{config: map[string]string{"adoption-timeout": tc.timeout}, configErr: tc.configErr}, w)
			restore := restoreOf(nil)
			if tc.began >= 0 {
				began := metav1.NewTime(at(tc.began)())
				restore.Status.StartTimestamp = &began
			}
			p, err := a.Progress(operation, restore)
			got := want{Completed: p.Completed, Failed: strings.HasSuffix(p.Err, "release x [RestoreStopped]"), GaveUp: len(w.gaveUp) > 0}
			if tc.want.Trying != nil && strings.HasSuffix(p.Description, ": "+tc.want.Trying.Error()) {
				got.Trying = tc.want.Trying
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" || err != nil || !strings.HasPrefix(p.Description, "1 of 2 composed resources adopted") {
				t.Errorf("%s\ngot %+v, error %v, -want, +got:\n%s", tc.reason, p, err, diff)
			}
			for _, why := range w.gaveUp {
				if !strings.HasPrefix(why, "XOrder x: not adopted within 20s, the setting adoption-timeout of the Restore velero/monday: 1 of 2") {
					t.Errorf("the mark must name the reason; got %s", why)
				}
			}
		})
	}
}
