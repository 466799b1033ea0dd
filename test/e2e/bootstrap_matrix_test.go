//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// inGit is the number of instances that Git has. The backup has one more.
const inGit = 2

// fluxSteps is the file with the Kustomizations of the example.
const fluxSteps = "example/gitops/flux/steps/steps.yaml"

// TestMatrixBootstrapV2 loses a cluster, and brings another one up with Flux's kustomize-controller and
// the files of example/gitops.
func TestMatrixBootstrapV2(t *testing.T) {
	t.Parallel()
	s := begin(t, &suite{version: stack.V2, flux: true})
	set, err := build.Ensure(t.Context(), os.Stderr, "kubectl")
	must(t, err)
	n := s.few(t, s.source, drill.Platform{Namespace: "booted"}, inGit+1)
	s.remember(t, s.source, n)
	must(t, s.source.ApplyFiles(t.Context(), filepath.Join(repository(t), "example", "velero", "schedule.yaml")))
	backupWith(t, s.source, "nightly-1", "--from-schedule", "nightly")
	must(t, s.source.Destroy())
	b := &bootstrapped{suite: s, tenant: n, kubectl: set["kubectl"].Path}
	b.start(t, "target")

	if !t.Run("Restored", b.testRestored) {
		return // The rest needs the instances.
	}
	t.Run("Once", b.testOnce)
	must(t, s.target.Destroy())
	b.start(t, "first")
	t.Run("FirstStart", b.testFirstStart)
	t.Run("NoBackup", b.testNoBackup)
}

// A bootstrapped tenant is in a backup and in Git.
type bootstrapped struct {
	*suite
	*tenant

	git     *gitRepository
	kubectl string
	jobs    *jobRunner
}

// start starts a cluster in which only Flux, Velero and Crossplane run, with a repository of its own.
func (b *bootstrapped) start(t *testing.T, name string) {
	t.Helper()
	var err error
	b.target, err = stack.NewCluster(t.Context(), b.host, stack.Options{
		Name: name, Crossplane: b.version, Plugin: true, Flux: true, VeleroArgs: oftener,
	})
	must(t, err)
	b.git = newGitRepository(t)
	b.git.setInstances(t, b.tenant, inGit)
	b.git.files[fluxSteps] = strings.NewReplacer("timeout: 10m", "timeout: 5s", "retryInterval: 1m", "retryInterval: 2s").Replace(b.git.files[fluxSteps])
	b.jobs = runJobs(t, b.target, "velero", b.kubectl)
}

// push makes the files in Git a new revision, and applies the only object that a user applies.
func (b *bootstrapped) push(t *testing.T) string {
	t.Helper()
	revision := b.git.push(t, b.target)
	objects, err := stack.Parse([]byte(b.git.files["example/gitops/flux/cluster.yaml"]))
	must(t, err)
	must(t, b.target.ApplyObjects(t.Context(), objects...))

	return revision
}

// testRestored brings the cluster up. While what is restored is held, Flux must apply no instance.
func (b *bootstrapped) testRestored(t *testing.T) {
	ctx := t.Context()
	must(t, b.target.Stop(stack.CloudProvider))
	revision := b.push(t)
	b.eventually(t, "the Restore of the Job", func(context.Context) error {
		if len(restores(t, b.target)) == 0 {
			_, out := b.jobs.ran()

			return errors.New("there is none: " + out)
		}

		return nil
	})
	must(t, drill.AwaitItems(ctx, b.target, "bootstrap"))
	b.eventually(t, "Flux to wait for the Job", func(ctx context.Context) error {
		if _, err := kustomization(ctx, b.target, "restore"); err == nil || !strings.Contains(err.Error(), "Job/velero/bootstrap status: 'InProgress'") {
			return fmt.Errorf("it does not: %w", err)
		}

		return nil
	})
	if got, err := kustomization(ctx, b.target, "apps"); got != "" || err == nil {
		t.Errorf("Flux has applied %q while the instances are held", got)
	}
	held, err := b.Instances(ctx, b.target)
	must(t, err)
	for _, u := range held {
		if !drill.Held(&u) || appliedByFlux(u.GetManagedFields()) {
			t.Errorf("%s is not held, or Flux has applied it: %v %v", u.GetName(), u.GetAnnotations(), u.GetManagedFields())
		}
	}
	if len(held) != b.size {
		t.Errorf("%d instances are held, not %d", len(held), b.size)
	}
	uids := b.uids(t, b.tenant)
	must(t, b.target.Start(ctx, stack.CloudProvider))
	awaitApplied(t, b.target, revision)
	b.awaitCompleted(t, "bootstrap")
	b.settle(t, b.tenant)
	b.wantUntouched(t, uids)
	for i := range b.size {
		u, err := get(ctx, b.target, held[0].GroupVersionKind(), b.Namespace, b.Name(i))
		must(t, err)
		// Flux knows nothing of what only the backup has, and does not prune it.
		if want := i < inGit; appliedByFlux(u.GetManagedFields()) != want {
			t.Errorf("Flux has applied %s: %t, not %t", u.GetName(), !want, want)
		}
	}
	_, out := b.jobs.ran()
	wantMessage(t, "the Job", out, "restore.velero.io/bootstrap created")
}

func appliedByFlux(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "kustomize-controller" })
}

// wantUntouched checks that the cluster has the same objects and external resources as before.
func (b *bootstrapped) wantUntouched(t *testing.T, uids map[string]string) {
	t.Helper()
	got, err := b.Compare(t.Context(), b.target, b.cloud, b.before)
	must(t, err)
	if diff := cmp.Diff(drill.Outcome{Adopted: len(b.before.Slots), Total: len(b.before.Slots)}, got); diff != "" {
		t.Errorf("after the bootstrap: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(uids, b.uids(t, b.tenant)); diff != "" {
		t.Errorf("UIDs, -before, +after:\n%s", diff)
	}
}

// testOnce reconciles again: with the Restore there, with another Job in Git, and without the
// Restore, which Velero deletes with its backup.
func (b *bootstrapped) testOnce(t *testing.T) {
	uids, before := b.uids(t, b.tenant), restores(t, b.target)
	job, err := get(t.Context(), b.target, jobKind, "velero", "bootstrap")
	must(t, err)
	awaitApplied(t, b.target, b.push(t))
	const file = "example/gitops/restore/job.yaml"
	b.git.files[file] = strings.ReplaceAll(b.git.files[file], ":latest", ":newer")
	awaitApplied(t, b.target, b.push(t))
	if diff := cmp.Diff(before, restores(t, b.target)); diff != "" || len(before) != 1 {
		t.Errorf("Restores, -before, +after:\n%s", diff)
	}
	_, err = b.target.Velero(t.Context(), "restore", "delete", "bootstrap", "--confirm")
	must(t, err)
	b.eventually(t, "the Restore to be gone", func(context.Context) error {
		if left := restores(t, b.target); len(left) > 0 {
			return fmt.Errorf("there is %v", left)
		}

		return nil
	})
	awaitApplied(t, b.target, b.push(t))
	if left := restores(t, b.target); len(left) > 0 {
		t.Errorf("Flux has restored again: %v", left)
	}
	again, err := get(t.Context(), b.target, jobKind, "velero", "bootstrap")
	must(t, err)
	if ran, _ := b.jobs.ran(); ran != 1 || again.GetUID() != job.GetUID() {
		t.Errorf("%d Jobs have run, and the UID was %s and is %s", ran, job.GetUID(), again.GetUID())
	}
	b.wantUntouched(t, uids)
}

// uids returns the UIDs of the claims, XRs and MRs of a tenant in the target, by kind and name.
func (s *suite) uids(t *testing.T, n *tenant) map[string]string {
	t.Helper()
	uids := map[string]string{}
	for name, u := range s.all(t, s.target, n) {
		uids[name] = string(u.GetUID())
	}

	return uids
}

// testFirstStart brings up a cluster in which the switch says that this is a first start. It is
// also the control: without a restore Flux composes anew what the backup has.
func (b *bootstrapped) testFirstStart(t *testing.T) {
	ctx := t.Context()
	const first = "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: flux-system, name: bootstrap}\ndata: {bootstrap: first-start}\n"
	must(t, b.target.Apply(ctx, []byte(first)))
	since := b.last(t)
	awaitApplied(t, b.target, b.push(t))
	must(t, b.AwaitReady(ctx, b.target, inGit))
	created, err := b.cloud.Journal(ctx, since, api.Create)
	must(t, err)
	if want := len(b.before.Slots) / b.size * inGit; len(created) != want {
		t.Errorf("A first start has created %d external resources, not %d", len(created), want)
	}
	ids := map[string]bool{}
	for _, e := range created {
		ids[e.ID] = true
	}
	for id := range b.before.External {
		if ids[id] {
			t.Errorf("%s was there before", id)
		}
	}

	// The switch is removed, and the cluster must not be restored into.
	remove(t, b.target, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, stack.FluxNamespace, "bootstrap")
	awaitApplied(t, b.target, b.push(t))
	if got := restores(t, b.target); len(got) > 0 {
		t.Errorf("A first start has restored: %v", slices.Collect(maps.Keys(got)))
	}
	if ran, out := b.jobs.ran(); ran != 1 || !strings.Contains(out, "first-start-restores-nothing") {
		t.Errorf("%d Jobs have run:\n%s", ran, out)
	}
}

// testNoBackup asks for a restore of a Schedule without backups: the Job fails, and Flux applies no
// later revision of the instances.
func (b *bootstrapped) testNoBackup(t *testing.T) {
	ctx := t.Context()
	before, err := kustomization(ctx, b.target, "apps")
	must(t, err)
	remove(t, b.target, jobKind, "velero", "bootstrap")
	const file, job = "example/gitops/restore/restore.yaml", "example/gitops/restore/job.yaml"
	b.git.files[file] = strings.ReplaceAll(b.git.files[file], "scheduleName: nightly", "scheduleName: weekly")
	b.git.files[job] = strings.ReplaceAll(b.git.files[job], "--timeout=2m", "--timeout=1s")
	b.push(t)
	b.eventually(t, "the step restore to fail", func(ctx context.Context) error {
		if _, err := kustomization(ctx, b.target, "restore"); err == nil || !strings.Contains(err.Error(), "Job/velero/bootstrap status: 'Failed'") {
			return fmt.Errorf("it has not failed: %w", err)
		}

		return nil
	})
	_, out := b.jobs.ran()
	t.Logf("the Job without a backup:\n%s", out)
	wantMessage(t, "the Job", out, "timed out waiting for the condition on restores/bootstrap")
	wantMessage(t, "the Job", out, "restore.velero.io/bootstrap unchanged")
	if after, _ := kustomization(ctx, b.target, "apps"); after != before {
		t.Errorf("Flux has applied the instances of %s", after)
	}
}
