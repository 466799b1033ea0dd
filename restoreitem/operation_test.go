package restoreitem

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
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

func (w *fakeAdopter) Adopt(_ context.Context, _ adoption.Key, by adoption.Requester, selector string, ref xp.Ref) (map[xp.ID]adoption.Plan, error) {
	w.asked, w.by = append(w.asked, selector+" "+ref.String()), by

	return w.plans, w.err
}

func (w *fakeAdopter) GiveUp(_ context.Context, _ adoption.Key, ref xp.Ref, reason string) error {
	w.gaveUp = append(w.gaveUp, ref.String()+": "+reason)

	return errors.Join(w.giveUpErr, w.err)
}

const operation = "XOrder.v1alpha1.example.org//x"

func planFor(p adoption.Plan) map[xp.ID]adoption.Plan {
	return map[xp.ID]adoption.Plan{xp.RefTo(xptest.XR("x")).ID(): p}
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
	base := velero.OperationProgress{OperationUnits: "composed resources", Updated: at(30)(), Started: began.Time}
	with := func(change func(*velero.OperationProgress)) velero.OperationProgress {
		p := base
		change(&p)

		return p
	}
	type want struct {
		Progress velero.OperationProgress
		Err      string
	}
	cases := map[string]struct {
		reason  string
		id      string
		adopter *fakeAdopter
		want    want
	}{
		"Waiting": {
			reason: "The description names the objects that the XR waits for.", id: operation,
			adopter: &fakeAdopter{plans: planFor(adoption.Plan{Adopted: 1, Total: 2, Waiting: []reason.Message{{Text: "Bucket b: it was not restored"}}})},
			want: want{Progress: with(func(p *velero.OperationProgress) {
				p.NCompleted, p.NTotal, p.Description = 1, 2, "1 of 2 composed resources adopted; waiting for Bucket b: it was not restored"
			})},
		},
		"Done": {
			reason: "Each composed resource is adopted, so the operation is complete.", id: operation, adopter: &fakeAdopter{plans: planFor(adoption.Plan{Done: true, Adopted: 2, Total: 2})},
			want: want{Progress: with(func(p *velero.OperationProgress) {
				p.Completed, p.NCompleted, p.NTotal, p.Description = true, 2, 2, "2 of 2 composed resources adopted"
			})},
		},
		"Failed": {
			reason:  "Waiting cannot solve this, so the operation fails with the reason.",
			id:      operation,
			adopter: &fakeAdopter{plans: planFor(adoption.Plan{Failed: reason.Message{Text: "it was not restored"}})},
			want: want{Progress: with(func(p *velero.OperationProgress) {
				p.Completed, p.Err, p.Description = true, "it was not restored", "0 of 0 composed resources adopted"
			})},
		},
		"Quarantine": {
			reason: "The restore must not wait for a user to end the quarantine.", id: operation, adopter: &fakeAdopter{plans: planFor(adoption.Plan{Total: 2, Quarantine: reason.Message{Text: "in quarantine"}})},
			want: want{Progress: with(func(p *velero.OperationProgress) { p.Completed, p.NTotal, p.Description = true, 2, "in quarantine" })},
		},
		"QuarantineOfAPart": {
			reason: "A composed resource in quarantine must not delay the restore either.", id: operation,
			adopter: &fakeAdopter{plans: planFor(adoption.Plan{Adopted: 1, Total: 2, Quarantine: reason.Message{Text: "b is in quarantine"}, Waiting: []reason.Message{{Text: "b is in quarantine"}}})},
			want: want{Progress: with(func(p *velero.OperationProgress) {
				p.Completed, p.NCompleted, p.NTotal, p.Description = true, 1, 2, "1 of 2 composed resources adopted; waiting for b is in quarantine"
			})},
		},
		"QuarantineMoving": {
			reason: "The restore waits for the parts that can be adopted without a user.", id: operation,
			adopter: &fakeAdopter{plans: planFor(adoption.Plan{Total: 2, Quarantine: reason.Message{Text: "b is in quarantine"}, Waiting: []reason.Message{{Text: "b is in quarantine"}, {Text: "c"}}, Moving: true})},
			want: want{Progress: with(func(p *velero.OperationProgress) {
				p.NTotal, p.Description = 2, "0 of 2 composed resources adopted; waiting for b is in quarantine; c"
			})},
		},
		"Ready": {
			reason: "A user releases it, so the restore does not wait.", id: operation,
			adopter: &fakeAdopter{plans: planFor(adoption.Plan{Adopted: 1, Total: 1, Ready: true, Waiting: []reason.Message{{Text: "XOrder x: it is ready"}}})},
			want: want{Progress: with(func(p *velero.OperationProgress) {
				p.Completed, p.NCompleted, p.NTotal, p.Description = true, 1, 1, "1 of 1 composed resources adopted; waiting for XOrder x: it is ready"
			})},
		},
		"TemporaryError": {
			reason: "Velero fails an operation on a Go error, so a temporary error becomes a description.", id: operation, adopter: &fakeAdopter{err: errAPI},
			want: want{Progress: with(func(p *velero.OperationProgress) { p.Description = "trying again: " + errAPI.Error() })},
		},
		"Unknown": {
			reason: "An XR without a plan is not done.", id: operation, adopter: &fakeAdopter{},
			want: want{Progress: with(func(p *velero.OperationProgress) { p.Description = "0 of 0 composed resources adopted" })},
		},
		"BadID": {
			reason: "An unreadable ID stays unreadable, so the operation fails.", id: "x", adopter: &fakeAdopter{},
			want: want{Progress: base, Err: `cannot read the operation ID "x" as "Kind.version.group/namespace/name"`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			restore.Status.StartTimestamp = &began
			p, err := pollWith(tc.adopter).Progress(tc.id, restore)
			got := want{Progress: p}
			if err != nil {
				got.Err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProgressOfARestoreThatHasNotBegun(t *testing.T) {
	p, err := pollWith(&fakeAdopter{}).Progress(operation, restoreOf(nil))
	if err != nil || !p.Started.IsZero() {
		t.Errorf("Started must be zero until Velero sets the start time; got %v, %v", p.Started, err)
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
	cases := map[string]struct {
		reason string
		plan   adoption.Plan
		want   string
	}{
		"Nothing": {reason: "While Crossplane adopts, a count is enough.", plan: adoption.Plan{Adopted: 3, Total: 4}, want: "3 of 4 composed resources adopted"},
		"Remarks": {
			reason: "The description keeps the remarks after the end.",
			plan:   adoption.Plan{Done: true, Remarks: []reason.Message{{Text: "XOrder x can't be reconciled"}}},
			want:   "0 of 0 composed resources adopted; XOrder x can't be reconciled",
		},
		"Held": {
			reason: "While the XR is held nothing is adopted, as validate says too.",
			plan:   adoption.Plan{Held: true, Adopted: 3, Total: 3, Waiting: []reason.Message{{Text: "a"}}}, want: "3 of 3 composed resources ready to be adopted; waiting for a",
		},
		"Done": {
			reason: "A complete plan no longer waits for anything.",
			plan:   adoption.Plan{Done: true, Adopted: 2, Total: 2, Waiting: []reason.Message{{Text: "a"}}}, want: "2 of 2 composed resources adopted",
		},
		"DoneWithNothing": {reason: "An MR or a claim composes no resources, so a count is useless.", plan: adoption.Plan{Done: true}, want: "not held"},
		"Few": {
			reason: "The description lists a few reasons in full.",
			plan:   adoption.Plan{Waiting: []reason.Message{{Text: "a"}, {Text: "b"}, {Text: "c"}}}, want: "waiting for a; b; c",
		},
		"Many": {
			reason: "The description counts reasons that do not fit.",
			plan:   adoption.Plan{Waiting: []reason.Message{{Text: "a"}, {Text: "b"}, {Text: "c"}, {Text: "d"}, {Text: "e"}}}, want: "waiting for a; b; c; and 2 more",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, describe(tc.plan)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	const stopped = "XOrder x: the Restore velero/monday stopped waiting: "
	type want struct {
		GaveUp []string
		Asked  int
		Err    error
	}
	cases := map[string]struct {
		reason  string
		adopter *fakeAdopter
		want    want
	}{
		"Waiting": {
			reason:  "Cancel gives the reason of the last poll and takes no step.",
			adopter: &fakeAdopter{plans: planFor(adoption.Plan{Total: 1, Waiting: []reason.Message{{Text: "Bucket b: it was not restored"}}})},
			want:    want{GaveUp: []string{stopped + "0 of 1 composed resources adopted; waiting for Bucket b: it was not restored"}, Asked: 1},
		},
		"API": {
			reason: "Without an answer from the API server Cancel explains the hold with known facts.", adopter: &fakeAdopter{err: errAPI},
			want: want{GaveUp: []string{stopped + "the API server did not answer"}, Asked: 1, Err: errAPI},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := pollWith(tc.adopter)
			if _, err := a.Progress(operation, restoreOf(nil)); err != nil {
				t.Fatal(err)
			}
			err := a.Cancel(operation, restoreOf(nil))
			got := want{Asked: len(tc.adopter.asked), Err: err}
			for _, g := range tc.adopter.gaveUp {
				got.GaveUp = append(got.GaveUp, g[:min(len(g), strings.Index(g+",", ","))])
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if err := pollWith(&fakeAdopter{}).Cancel("?", restoreOf(nil)); err == nil {
		t.Error("want an error for an unreadable ID")
	}
}

// After a poll, Cancel reports what the poll has found, and takes no further step.
func TestCancelTakesNoStepAfterAPoll(t *testing.T) {
	w := &fakeAdopter{plans: planFor(adoption.Plan{Total: 1})}
	a := pollWith(w)
	if _, err := a.Progress(operation, restoreOf(nil)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Cancel(operation, restoreOf(nil))); err != nil || len(w.asked) != 1 {
		t.Errorf("error %v, asked %v", err, w.asked)
	}
}

func TestAdoptIsReadyAtOnce(t *testing.T) {
	if ready, err := pollWith(&fakeAdopter{}).AreAdditionalItemsReady(nil, nil); !ready || err != nil {
		t.Errorf("Velero must not wait; got %v, %v", ready, err)
	}
}

func TestOperationID(t *testing.T) {
	cases := map[string]struct {
		reason string
		ref    xp.Ref
		want   string
	}{
		"Cluster": {reason: "The ID of a cluster-scoped XR has an empty namespace.", ref: xp.Ref{APIVersion: "example.org/v1", Kind: "X", Name: "a"}, want: "X.v1.example.org//a"},
		"Namespaced": {
			reason: "The ID of a namespaced XR or a claim has its namespace.",
			ref:    xp.Ref{APIVersion: "a.b.example.org/v1beta1", Kind: "X", Namespace: "n", Name: "a.b"}, want: "X.v1beta1.a.b.example.org/n/a.b",
		},
		"Core": {reason: "The core group has an empty name.", ref: xp.Ref{APIVersion: "v1", Kind: "X", Name: "a"}, want: "X.v1.//a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			id := operationID(tc.ref)
			if diff := cmp.Diff(tc.want, id); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			got, err := parseOperationID(id)
			if diff := cmp.Diff(tc.ref, got); err != nil || diff != "" {
				t.Errorf("%s\nerror %v, -want, +read:\n%s", tc.reason, err, diff)
			}
		})
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
