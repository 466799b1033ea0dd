package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testStatus asks in the source whether a drill has passed: the bucket has the answer.
func (d *drilled) testStatus(t *testing.T) {
	jobs := runJobs(t, d.source, "velero", d.kubectl)
	jobs.images = d.jobs.images
	d.apply(t, d.source, "example/drill/status")
	d.awaitJob(t, d.source, "drill-status", "Complete")
	_, out := jobs.ran()
	if !strings.Contains(out, "Last that passed: drill-nightly-") {
		t.Errorf("the status is:\n%s", out)
	}
	if r := command(t, d.target, "drill", "status", "--from-schedule", "nightly"); r.code != 0 || !strings.Contains(r.stdout, ", passed ") {
		t.Errorf("the status in the target exits with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, args := range [][]string{{"nightly", "--within", "1s"}, {"weekly"}} {
		if r := command(t, d.target, append([]string{"drill", "status", "--from-schedule"}, args...)...); r.code != 3 || !strings.Contains(r.stderr, "[DrillOverdue]") {
			t.Errorf("the status %v exits with %d:\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

// testOverdue runs a drill that needs a newer backup.
func (d *drilled) testOverdue(t *testing.T) {
	before := len(d.drills(t))
	if r := d.run(t, "--max-age", "1s"); r.code != 3 || !strings.Contains(r.stdout, "BackupOverdue") || len(d.drills(t)) != before {
		t.Errorf("the drill exits with %d", r.code)
	}
}

// testKilled kills a drill during its restore. The next one waits for that, and starts over.
func (d *drilled) testKilled(t *testing.T) {
	before := len(d.drills(t))
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	killed := make(chan error, 1)
	go func() {
		_, _, _, err := d.target.Plugin(ctx, "", "drill", "run", "--restore-file", d.restoreFile(t))
		killed <- err
	}()
	d.eventually(t, "the Restore", func(context.Context) error {
		if len(d.drills(t)) == before {
			return errors.New("there is none")
		}

		return nil
	})
	kill()
	if err := <-killed; err == nil {
		t.Error("the drill had ended before it was killed")
	}
	if r := d.run(t); r.code != 0 {
		t.Errorf("the next drill exits with %d", r.code)
	}
	d.wantNothing(t)
}

// testChanged has a user change an MR of a drill. The next drill leaves it, with what composes it, and fails.
func (d *drilled) testChanged(t *testing.T) {
	if r := d.run(t, "--keep"); r.code != 0 {
		t.Errorf("the drill exits with %d", r.code)
	}
	if got, want := len(d.all(t, d.target, d.tenant)), len(d.all(t, d.source, d.tenant)); got != want {
		t.Errorf("the drill has kept %d objects of %d", got, want)
	}
	managed, err := d.Managed(t.Context(), d.target)
	must(t, err)
	u := &managed[0]
	of := func() (r interface {
		Patch(ctx context.Context, name string, pt types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*unstructured.Unstructured, error)
		Delete(ctx context.Context, name string, options metav1.DeleteOptions, subresources ...string) error
	},
	) {
		r, err := d.target.Resource(t.Context(), u.GroupVersionKind(), u.GetNamespace())
		must(t, err)

		return r
	}
	_, err = of().Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"looked-at":"true"}}}`), metav1.PatchOptions{FieldManager: "somebody"})
	must(t, err)
	r := d.run(t)
	if r.code != 3 || !strings.Contains(r.stdout, "DrillNotRemoved") || !strings.Contains(r.stdout, "somebody has changed it") || !strings.Contains(r.stdout, "NotBroughtBack") {
		t.Errorf("the drill exits with %d", r.code)
	}
	all := d.drills(t)
	failed := 0
	for i := range all {
		if all[i].GetLabels()["velero.crossplane.x-k8s.io/drill-result"] == "failed" {
			failed++
			d.wantEvent(t, &all[i], "DrillFailed")
		}
	}
	if failed != 1 {
		t.Errorf("%d Restores are labelled as failed", failed)
	}
	// As docs/messages.md says of DrillNotRemoved.
	_, err = of().Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, of().Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}))
	if r := d.run(t); r.code != 0 {
		t.Errorf("the next drill exits with %d", r.code)
	}
	d.wantNothing(t)
}

// testTakenOver runs a drill in a cluster in which a user has created an XR of the backup, which has composed nothing yet. The drill must leave it.
func (d *drilled) testTakenOver(t *testing.T) {
	must(t, d.target.Stop(stack.Crossplane))
	instance := d.manifests()[0].DeepCopy()
	must(t, d.target.ApplyObjects(t.Context(), instance))
	before, err := get(t.Context(), d.target, instance.GroupVersionKind(), d.Namespace, instance.GetName())
	must(t, err)
	if r := d.run(t); r.code != 0 || !strings.Contains(r.stdout, "DrillNotRemoved") || !strings.Contains(r.stdout, "it existed before the restore") {
		t.Errorf("the drill exits with %d", r.code)
	}
	after, err := get(t.Context(), d.target, instance.GroupVersionKind(), d.Namespace, instance.GetName())
	must(t, err)
	if after.GetUID() != before.GetUID() {
		t.Errorf("the user's %s has the UID %s, not %s", instance.GetName(), after.GetUID(), before.GetUID())
	}
}

// testMissing runs a drill that leaves out what the XRs compose, so it is no proof.
func (d *drilled) testMissing(t *testing.T) {
	b, err := os.ReadFile(d.restoreFile(t))
	must(t, err)
	file := filepath.Join(t.TempDir(), "restore.yaml")
	must(t, os.WriteFile(file, append(b, "  excludedResources: [networks.cloud.m.example.org]\n"...), 0o600))
	if r := command(t, d.target, "drill", "run", "--restore-file", file); r.code != 3 || !strings.Contains(r.stdout, "Dangling") {
		t.Errorf("the drill exits with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := d.run(t); r.code != 0 {
		t.Errorf("the next drill exits with %d", r.code)
	}
	d.wantNothing(t)
}
