package e2e

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

const exchangeName = "velero-plugin-for-crossplane-exchange"

// testExchanged restores the objects that the first restore could not adopt, because Argo CD had
// created the instances before and still applies them. It starts from the state that testUnguarded
// has left.
func (s *suite) testExchanged(t *testing.T, n *tenant) {
	ctx := t.Context()
	a := s.syncs(t, n)
	root, err := build.Root()
	must(t, err)
	must(t, s.target.ApplyFiles(ctx, filepath.Join(root, "example", "rbac", "exchange.yaml")))
	as, backup := s.account(t, "velero", exchangeName).kubeconfig, s.download(t, n.Namespace)
	s.awaitNamed(t, n)
	s.share(t, n)
	anew := s.anew(t, n)
	exchange := func(args ...string) run {
		return commandAs(t, s.target, as, append([]string{"exchange", "--backup", backup}, args...)...)
	}
	var names []string
	listed := ""
	for i := range n.size {
		name := n.Namespace + "/" + n.Name(i)
		if r := exchange(name, "--dry-run"); r.code == 0 {
			names, listed = append(names, name), listed+r.stdout
		} else if r.code != 3 || !strings.Contains(r.stdout, "REFUSED: ") {
			t.Fatalf("exchange --dry-run of %s ended with %d:\n%s%s", name, r.code, r.stdout, r.stderr)
		}
	}
	if len(names) == 0 || len(anew) == 0 || strings.Count(listed, "its external resource stays") != 1 || strings.Count(listed, "DELETED") != len(anew) {
		t.Fatalf("of what was created again, %v, it lists:\n%s", anew, listed)
	}
	since, err := n.Record(ctx, s.target, s.cloud)
	must(t, err)
	before := s.wishesAndPauses(t, n)
	if r := exchange(names...); r.code != 2 || !strings.Contains(r.stderr, "--dry-run") {
		t.Errorf("unconfirmed, exchange ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	if diff := gocmp.Diff(before, s.wishesAndPauses(t, n)); diff != "" {
		t.Errorf("unconfirmed, exchange has changed something:\n%s", diff)
	}
	s.killExchange(t, since.Seq, "exchange", "--backup", backup, names[0], "--yes")
	if r := exchange(append(names, "--yes")...); r.code != 0 {
		t.Fatalf("exchange ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	} else {
		t.Logf("exchange:\n%s%s", r.stdout, r.stderr)
	}
	again := n.Namespace + "-again"
	must(t, n.StartRestore(ctx, s.target, again, n.Namespace))
	s.awaitCompleted(t, again)
	s.settle(t, n)
	a.end()
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	if got.Adopted != got.Total || got.Orphans+got.Duplicates+got.Holds > 0 {
		t.Errorf("after the exchange: %+v", got)
	}
	made, deleted := s.journalSince(t, since.Seq)
	if diff := gocmp.Diff(slices.Sorted(maps.Keys(anew)), deleted); diff != "" || len(made) > 0 {
		t.Errorf("the exchange has made %v; deleted, -confirmed, +deleted:\n%s", made, diff)
	}
	s.wantNoWrongMessage(t, n)
	v := s.validate(t, 0, "-n", n.Namespace)
	if v.Summary.Adopted != got.Total {
		t.Errorf("validate reports %d of %d as adopted", v.Summary.Adopted, got.Total)
	}
}

// awaitNamed waits until all XRs and MRs are ready: those that a restore has created, and those
// that Crossplane has composed again beside them.
func (s *suite) awaitNamed(t *testing.T, n *tenant) {
	t.Helper()
	s.eventually(t, "all that was composed again to be ready", func(ctx context.Context) error {
		xrs, err := n.Composites(ctx, s.target)
		if err != nil {
			return err
		}
		managed, err := n.Managed(ctx, s.target)
		if err != nil {
			return err
		}
		for _, u := range append(xrs, managed...) {
			if err := errors.Join(stack.HasCondition(&u, "Synced", "True"), stack.HasCondition(&u, "Ready", "True")); err != nil {
				return err
			}
		}

		return nil
	})
}

// share makes one of the new buckets manage the external resource of the backup's bucket, as if
// external-names followed from names.
func (s *suite) share(t *testing.T, n *tenant) {
	t.Helper()
	const externalName = "crossplane.io/external-name"
	ctx := t.Context()
	managed, err := n.Managed(ctx, s.target)
	must(t, err)
	for _, u := range managed {
		own := u.GetAnnotations()[externalName]
		slot := drill.Slot{
			Instance: cmp.Or(u.GetLabels()["crossplane.io/claim-name"], u.GetLabels()["crossplane.io/composite"]),
			Resource: u.GetAnnotations()["crossplane.io/composition-resource-name"],
		}
		old, ok := n.before.Slots[slot]
		if u.GetKind() != "Bucket" || !ok || n.before.External[own] {
			continue
		}
		since, err := n.Record(ctx, s.target, s.cloud)
		must(t, err)
		must(t, drill.Patch(ctx, s.target, &u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{externalName: old.ExternalName}}}))
		s.eventually(t, "the provider to observe what both manage", func(ctx context.Context) error {
			entries, err := s.cloud.Journal(ctx, since.Seq, api.Read)
			if err == nil && !slices.ContainsFunc(entries, func(e api.Entry) bool { return e.ID == old.ExternalName && strings.Contains(e.ManagedBy, u.GetName()) }) {
				err = errors.New("it has not")
			}

			return err
		})
		must(t, s.cloud.Delete(ctx, api.Bucket, own))
		t.Logf("%s %s manages %s, as %s of the backup does", u.GetKind(), u.GetName(), old.ExternalName, old.Name)

		return
	}
	t.Fatal("there is no bucket that was composed again")
}

// anew returns the external resources that did not exist when the tenant was backed up.
func (s *suite) anew(t *testing.T, n *tenant) map[string]bool {
	t.Helper()
	now, err := n.Record(t.Context(), s.target, s.cloud)
	must(t, err)
	anew := map[string]bool{}
	for id := range now.External {
		if !n.before.External[id] {
			anew[id] = true
		}
	}

	return anew
}

// wishesAndPauses returns the annotations and the spec of claims and XRs.
func (s *suite) wishesAndPauses(t *testing.T, n *tenant) map[string]any {
	t.Helper()
	instances, err := n.Instances(t.Context(), s.target)
	must(t, err)
	xrs, err := n.Composites(t.Context(), s.target)
	must(t, err)
	all := map[string]any{}
	for _, u := range append(instances, xrs...) {
		all[u.GetKind()+"/"+u.GetName()] = map[string]any{"annotations": u.GetAnnotations(), "spec": u.Object["spec"]}
	}

	return all
}

// killExchange kills a command after the first external resource was deleted.
func (s *suite) killExchange(t *testing.T, since int64, args ...string) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	ended := make(chan error, 1)
	go func() {
		_, _, _, err := s.target.Plugin(ctx, "", args...)
		ended <- err
	}()
	s.eventually(t, "an external resource to be deleted", func(ctx context.Context) error {
		entries, err := s.cloud.Journal(ctx, since, api.Delete)
		if err == nil && len(entries) == 0 {
			err = errors.New("none is")
		}

		return err
	})
	kill()
	select {
	case err := <-ended:
		t.Logf("killed: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the command does not end")
	}
}

// journalSince returns the ids that the cloud has created, and those that it has deleted.
func (s *suite) journalSince(t *testing.T, since int64) (made, deleted []string) {
	t.Helper()
	entries, err := s.cloud.Journal(t.Context(), since, api.Create, api.Delete)
	must(t, err)
	for _, e := range entries {
		switch {
		case e.Status >= http.StatusBadRequest:
		case e.Op == api.Create:
			made = append(made, e.ID)
		default:
			deleted = append(deleted, e.ID)
		}
	}
	slices.Sort(deleted)

	return made, deleted
}
