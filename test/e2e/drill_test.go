package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

var (
	jobKind       = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	veleroRestore = schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Restore"}
)

// A drilled tenant is backed up by a Schedule, and restored by the Job of example/drill.
type drilled struct {
	*suite
	*tenant

	// files are the objects of example/drill.
	files []*unstructured.Unstructured
	jobs  *jobRunner
}

// TestDrillV2 runs the files of example/drill in a new cluster, while the source is alive.
func TestDrillV2(t *testing.T) {
	t.Parallel()
	s := newSuite(t, stack.V2)
	ctx := t.Context()
	set, err := build.Ensure(ctx, os.Stderr, "kubectl", stack.Velero, "plugin")
	must(t, err)
	root, err := build.Root()
	must(t, err)
	n := s.few(t, s.source, drill.Platform{Namespace: "drilled", Without: []string{"database"}}, 2)
	must(t, n.AwaitReady(ctx, s.source, n.size))
	must(t, s.source.ApplyFiles(ctx, filepath.Join(root, "example", "velero", "schedule.yaml")))
	_, err = s.source.Velero(ctx, "backup", "create", "nightly-1", "--from-schedule", "nightly", "--wait")
	must(t, err)
	since := s.last(t)
	s.target = s.cluster(t, "target")
	must(t, n.Compose(ctx, s.target))
	out, err := exec.CommandContext(ctx, set["kubectl"].Path, "kustomize", filepath.Join(root, "example", "drill")).Output()
	must(t, err)
	d := &drilled{suite: s, tenant: n, jobs: runJobs(t, s.target, "velero", set["kubectl"].Path)}
	d.files, err = stack.Parse(out)
	must(t, err)
	d.jobs.images = map[string]string{
		"velero/velero": set[stack.Velero].Path, "registry.example.org/velero-plugin-for-crossplane": set["plugin"].Path,
	}

	t.Run("Passed", d.testPassed)
	t.Run("Missing", d.testMissing)
	calls, err := s.calls(ctx, s.target, n, since, api.Create, api.Update, api.Delete)
	must(t, err)
	if len(calls) > 0 {
		t.Errorf("the cluster of the drill has written for %s: %v", n.Namespace, calls)
	}
}

// testPassed waits for the Job. Everything that the source has must be there, and paused.
func (d *drilled) testPassed(t *testing.T) {
	ctx := t.Context()
	must(t, d.target.ApplyObjects(ctx, d.files...))
	d.awaitJob(t, "drill", "Complete")
	u, err := get(ctx, d.target, veleroRestore, "velero", "drill")
	must(t, err)
	if drill.Phase(u) != "Completed" || u.GetAnnotations()["velero.crossplane.io/hold"] != "all" {
		t.Errorf("the Restore is %v", u.Object)
	}
	for _, list := range []func(context.Context, *stack.Cluster) ([]unstructured.Unstructured, error){d.Instances, d.Managed} {
		there, err := list(ctx, d.source)
		must(t, err)
		here, err := list(ctx, d.target)
		must(t, err)
		if len(here) != len(there) || len(here) == 0 {
			t.Errorf("%d objects have come back of %d", len(here), len(there))
		}
		for i := range here {
			if here[i].GetAnnotations()["crossplane.io/paused"] != "true" {
				t.Errorf("%s %s is not paused", here[i].GetKind(), here[i].GetName())
			}
		}
	}
}

// testMissing checks again what was restored, after an MR of an XR has gone.
func (d *drilled) testMissing(t *testing.T) {
	ctx := t.Context()
	managed, err := d.Managed(ctx, d.target)
	must(t, err)
	u := &managed[0]
	r, err := d.target.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
	must(t, err)
	_, err = r.Patch(ctx, u.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(t, err)
	remove(t, d.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
	for _, u := range d.files {
		if u.GetKind() != "Job" {
			continue
		}
		again := u.DeepCopy()
		again.SetName("again")
		containers, _, err := unstructured.NestedSlice(again.Object, "spec", "template", "spec", "initContainers")
		must(t, err)
		// Only the last one is needed: it brings the program.
		must(t, unstructured.SetNestedSlice(again.Object, containers[len(containers)-1:], "spec", "template", "spec", "initContainers"))
		must(t, d.target.ApplyObjects(ctx, again))
	}
	d.awaitJob(t, "again", "Failed")
	if _, out := d.jobs.ran(); !strings.Contains(out, `"state": "missing"`) {
		t.Errorf("the check has not noticed the missing %s:\n%s", u.GetName(), out)
	}
}

// awaitJob waits until a Job has a condition.
func (d *drilled) awaitJob(t *testing.T, name, condition string) {
	t.Helper()
	must(t, d.target.Wait(t.Context(), 4*time.Minute, "the Job "+name+" to be "+condition, func(ctx context.Context) error {
		u, err := get(ctx, d.target, jobKind, "velero", name)
		if err == nil && stack.HasCondition(u, condition, "True") != nil {
			_, out := d.jobs.ran()
			err = fmt.Errorf("it is not; it has printed:\n%s", out)
		}

		return err
	}))
}
