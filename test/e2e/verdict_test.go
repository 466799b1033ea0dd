package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// measure makes the changes where nothing was restored, and waits for their known outcome.
func (s *suite) measure(t *testing.T, drifts []*changedTenant) {
	t.Helper()
	for _, d := range drifts {
		d.compose(t.Context(), s.source)
	}
	for _, d := range drifts {
		d.note(s.awaitOutcome(t.Context(), s.source, d, d.change.want))
	}
}

// testNotRestored checks the outcome of a change to an instance that was never restored.
func testNotRestored(t *testing.T, d *changedTenant) {
	t.Helper()
	if err := errors.Join(d.errs...); err != nil {
		t.Errorf("%s %v", d.change.reason, err)
	}
}

// awaitOutcome waits until the outcome of a change is the wanted one.
func (s *suite) awaitOutcome(ctx context.Context, c *stack.Cluster, d *changedTenant, want drill.Outcome) error {
	return c.Wait(ctx, time.Minute, "the wanted outcome of "+d.Namespace, func(ctx context.Context) error {
		got, err := d.Compare(ctx, c, s.cloud, d.before)
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			err = fmt.Errorf("-want, +got:\n%s", diff)
		}

		return err
	})
}

// restoreDrifts restores all from one backup, with one Restore for each change, and meanwhile
// ordered restores. It makes each change at its step, and waits until nothing changes any more.
func (s *suite) restoreDrifts(t *testing.T, backup string, drifts []*changedTenant, disorders []*orderedRestore) {
	t.Helper()
	ctx := t.Context()
	all := append(driftsOf(disorders), drifts...)
	defer s.check(t, all)()
	together := map[string][]*changedTenant{}
	for _, d := range drifts {
		name := strings.ToLower(modeOf(d) + d.change.name)
		together[name] = append(together[name], d)
		if d.step.name == before {
			d.compose(ctx, s.target)
		}
	}
	for name, some := range together {
		must(t, some[0].StartRestore(ctx, s.target, name, backup, "--include-namespaces", namespacesOf(some)))
	}
	restores := s.startOrders(t, backup, disorders)
	for name, some := range together {
		r, err := drill.AwaitRestore(ctx, s.target, name)
		if err == nil && drill.Phase(r) != "Completed" {
			details, _ := s.target.Velero(ctx, "restore", "describe", name, "--details")
			err = fmt.Errorf("restore %s is %s:\n%s", name, drill.Phase(r), details)
		}
		for _, d := range some {
			d.note(err)
			if d.step.name == after {
				d.compose(ctx, s.target)
			}
		}
	}
	for _, name := range restores {
		s.awaitCompleted(t, name)
	}
	s.settleDrifts(t, all, func(d *changedTenant) drill.Outcome { return d.change.want })
}

// check observes every change to the objects of the changed tenants, until the returned function is called.
func (s *suite) check(t *testing.T, drifts []*changedTenant) func() {
	t.Helper()
	p, err := s.target.Check(t.Context(), "drifts", checked(), func(ctx context.Context, a stack.Admission) {
		for _, d := range drifts {
			if d.has(a.New) {
				d.visit(ctx, s.target, s.cloud, a)
			}
		}
	})
	must(t, err)

	return func() { must(t, p.Remove(t.Context())) }
}

// settleDrifts waits for the wanted outcome of each, and until every MR was reconciled once more,
// so that further damage would show.
func (s *suite) settleDrifts(t *testing.T, drifts []*changedTenant, want func(d *changedTenant) drill.Outcome) {
	t.Helper()
	ctx := t.Context()
	for _, d := range drifts {
		d.note(s.awaitOutcome(ctx, s.target, d, want(d)))
	}
	var since int64
	for _, d := range drifts {
		now, err := d.Record(ctx, s.target, s.cloud)
		must(t, err)
		if since == 0 {
			since = now.Seq
		}
		d.note(d.AwaitReads(ctx, s.target, s.cloud, now, since))
	}
}

// testDrift checks that all was adopted under the old revision before the change had any effect,
// and that the change then had the same effect as without a restore.
func (s *suite) testDrift(t *testing.T, d *changedTenant) {
	t.Helper()
	ctx := t.Context()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := errors.Join(d.errs...); err != nil {
		t.Errorf("%s %v", d.step.reason, err)
	}
	if d.changed != (d.step.name != "") {
		t.Errorf("the restore never came to the step %s", d.step.name)
	}
	adopted := drill.Outcome{Adopted: 3, Total: 3, Holds: 1}
	if d.release == nil {
		t.Error("the hold was never taken off")
	} else if diff := cmp.Diff(adopted, *d.release); diff != "" {
		t.Errorf("%s When the hold was taken off: -want, +got:\n%s", d.step.reason, diff)
	}
	got, err := d.Compare(ctx, s.target, s.cloud, d.before)
	must(t, err)
	if diff := cmp.Diff(d.change.want, got); diff != "" {
		t.Errorf("%s %s In the end: -want, +got:\n%s", d.step.reason, d.change.reason, diff)
	}
	if foreground := s.version == stack.V2 || s.version == stack.V24; d.change.want.Deletes > 0 && d.foreground != foreground {
		t.Errorf("Crossplane deletes in the foreground: %v, so this version does not collect garbage in another way", d.foreground)
	}
	dead, err := d.DeadOwners(ctx, s.target)
	must(t, err)
	for _, o := range dead {
		t.Error(o)
	}
}
