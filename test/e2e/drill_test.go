package e2e

import (
	"context"
	"encoding/json"
	"errors"
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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

var (
	cronJobKind   = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}
	jobKind       = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	scheduleKind  = schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Schedule"}
	veleroRestore = schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Restore"}
	backupKind    = schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Backup"}
	locationKind  = schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "BackupStorageLocation"}
)

// A drilled tenant is backed up by a Schedule, and restored by drills in the target.
type drilled struct {
	*suite
	*tenant

	kubectl string
	jobs    *jobRunner
	since   int64
}

// TestDrillV2 runs the files of example/drill, with schedules that are shorter.
func TestDrillV2(t *testing.T) {
	t.Parallel()
	s := newSuite(t, stack.V2)
	ctx := t.Context()
	set, err := build.Ensure(ctx, os.Stderr, "kubectl", "velero-plugin-for-aws")
	must(t, err)
	n := s.few(t, s.source, drill.Platform{Namespace: "drilled", Without: []string{"database"}}, 2)
	must(t, n.AwaitReady(ctx, s.source, n.size))
	s.target = s.cluster(t, "target")
	must(t, n.Compose(ctx, s.target))
	d := &drilled{suite: s, tenant: n, kubectl: set["kubectl"].Path, since: s.last(t)}
	d.jobs = runJobs(t, s.target, "velero", d.kubectl)
	d.jobs.images = map[string]string{"velero/velero-plugin-for-aws": set["velero-plugin-for-aws"].Path}

	d.testNoBackup(t)
	d.backUpBySchedule(t)
	t.Run("Nightly", d.testNightly)
	t.Run("Status", d.testStatus)
	t.Run("Overdue", d.testOverdue)
	t.Run("Killed", d.testKilled)
	t.Run("Changed", d.testChanged)
	t.Run("Missing", d.testMissing)
	t.Run("TakenOver", d.testTakenOver)
	s.wantNoWrites(t, n, d.since, s.target)
}

// run runs a drill with all rights. It selects the namespace of the tenant.
func (d *drilled) run(t *testing.T, args ...string) run {
	t.Helper()
	r := command(t, d.target, append([]string{"drill", "run", "--restore-file", d.restoreFile(t)}, args...)...)
	t.Logf("drill run %v exits with %d:\n%s%s", args, r.code, r.stdout, r.stderr)

	return r
}

func (d *drilled) restoreFile(t *testing.T) string {
	t.Helper()
	root, err := build.Root()
	must(t, err)

	return filepath.Join(root, "example", "drill", "restore.yaml")
}

// drills returns the Restores in the target.
func (d *drilled) drills(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	r, err := d.target.Resource(t.Context(), veleroRestore, "velero")
	must(t, err)
	l, err := r.List(t.Context(), metav1.ListOptions{})
	must(t, err)

	return l.Items
}

// testNoBackup runs a drill before there is a backup.
func (d *drilled) testNoBackup(t *testing.T) {
	t.Helper()
	if r := d.run(t); r.code != 3 || !strings.Contains(r.stdout, "BackupOverdue") || len(d.drills(t)) > 0 {
		t.Errorf("a drill without a backup exits with %d, and there are the Restores %v", r.code, d.drills(t))
	}
}

// backUpBySchedule applies the Schedule of the example, and pauses it after the first backup.
func (d *drilled) backUpBySchedule(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	root, err := build.Root()
	must(t, err)
	b, err := os.ReadFile(filepath.Join(root, "example", "velero", "schedule.yaml"))
	must(t, err)
	objects, err := stack.Parse(b)
	must(t, err)
	must(t, unstructured.SetNestedField(objects[0].Object, "@every 15s", "spec", "schedule"))
	must(t, d.source.ApplyObjects(ctx, objects...))
	must(t, d.source.Wait(ctx, 2*time.Minute, "a backup of the Schedule", func(ctx context.Context) error {
		backups, err := d.source.Resource(ctx, backupKind, "velero")
		if err != nil {
			return err
		}
		list, err := backups.List(ctx, metav1.ListOptions{LabelSelector: "velero.io/schedule-name=nightly"})
		if err != nil || len(list.Items) == 0 || drill.Phase(&list.Items[0]) != "Completed" {
			return errors.Join(err, fmt.Errorf("there are %d, none completed", len(list.Items)))
		}

		return nil
	}))
	d.patch(t, d.source, scheduleKind, "nightly", `{"spec":{"paused":true}}`)
	must(t, d.target.RestartVelero(ctx)) // It reads the bucket when it starts.
	d.eventually(t, "the backup in the target", func(ctx context.Context) error {
		backups, err := d.target.Resource(ctx, backupKind, "velero")
		if err != nil {
			return err
		}
		list, err := backups.List(ctx, metav1.ListOptions{LabelSelector: "velero.io/schedule-name=nightly"})
		if err == nil && len(list.Items) == 0 {
			err = errors.New("there is none")
		}

		return err
	})
}

func (d *drilled) patch(t *testing.T, c *stack.Cluster, gvk schema.GroupVersionKind, name, patch string) {
	t.Helper()
	r, err := c.Resource(t.Context(), gvk, "velero")
	must(t, err)
	_, err = r.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

// apply applies a folder of the example, with CronJobs that run each minute, and the credentials of Velero.
func (d *drilled) apply(t *testing.T, c *stack.Cluster, folder string) {
	t.Helper()
	root, err := build.Root()
	must(t, err)
	out, err := exec.CommandContext(t.Context(), d.kubectl, "kustomize", filepath.Join(root, folder)).Output()
	must(t, err)
	objects, err := stack.Parse(out)
	must(t, err)
	for _, u := range objects {
		if u.GetKind() == "CronJob" {
			must(t, unstructured.SetNestedField(u.Object, "* * * * *", "spec", "schedule"))
		}
	}
	must(t, c.Apply(t.Context(), []byte(`
apiVersion: v1
kind: Secret
metadata: {namespace: velero, name: cloud-credentials}
stringData: {cloud: "[default]\naws_access_key_id = stack\naws_secret_access_key = stack\n"}
`)))
	must(t, c.ApplyObjects(t.Context(), objects...))
}

// testNightly waits for the Job of the CronJob.
func (d *drilled) testNightly(t *testing.T) {
	ctx := t.Context()
	d.apply(t, d.target, "example/drill")
	d.awaitJob(t, d.target, "drill", "Complete")

	all := d.drills(t)
	if len(all) != 1 || all[0].GetLabels()["velero.crossplane.x-k8s.io/drill-result"] != "passed" || drill.Phase(&all[0]) != "Completed" {
		t.Fatalf("the Restores are %v", all)
	}
	d.wantEvent(t, &all[0], "DrillPassed")
	d.wantNothing(t)
	var result struct {
		Kind  string `json:"kind"`
		Drill struct {
			Passed bool `json:"passed"`
		} `json:"drill"`
		Summary struct {
			XRs     int `json:"xrs"`
			Managed int `json:"managed"`
			Held    int `json:"held"`
		} `json:"summary"`
	}
	must(t, json.Unmarshal(d.file(t, all[0].GetName()+".json"), &result))
	if s := result.Summary; result.Kind != "Drill" || !result.Drill.Passed || s.XRs != d.size || s.Managed != 2*d.size || s.Held == 0 {
		t.Errorf("the report in the bucket is %+v", result)
	}
	if html := string(d.file(t, all[0].GetName()+".html")); !strings.Contains(html, "<html") || !strings.Contains(html, "The drill passed") {
		t.Error("the html report does not say that the drill has passed")
	}
	if xml := string(d.file(t, all[0].GetName()+".xml")); !strings.Contains(xml, "<testsuites") {
		t.Error("there is no junit report")
	}
	// Velero calls a location with folders that it does not know invalid.
	now := time.Now()
	d.eventually(t, "Velero to look at the bucket", func(ctx context.Context) error {
		u, err := get(ctx, d.target, locationKind, "velero", "default")
		if err != nil {
			return err
		}
		at, _, _ := unstructured.NestedString(u.Object, "status", "lastValidationTime")
		phase := drill.Phase(u)
		if validated, err := time.Parse(time.RFC3339, at); err != nil || validated.Before(now) || phase != "Available" {
			return fmt.Errorf("the location is %s at %s", phase, at)
		}

		return nil
	})
	must(t, ctx.Err())
}

func (d *drilled) file(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(d.host.ReportFile("drills/nightly/" + name))
	must(t, err)

	return b
}

// awaitJob waits until the first Job of a CronJob has a condition. No second one begins.
func (d *drilled) awaitJob(t *testing.T, c *stack.Cluster, cronJob, condition string) {
	t.Helper()
	suspended := false
	must(t, c.Wait(t.Context(), 4*time.Minute, "a Job of "+cronJob+" to be "+condition, func(ctx context.Context) error {
		r, err := c.Resource(ctx, jobKind, "velero")
		if err != nil {
			return err
		}
		jobs, err := r.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range jobs.Items {
			if !strings.HasPrefix(jobs.Items[i].GetName(), cronJob+"-") {
				continue
			}
			if !suspended {
				d.patch(t, c, cronJobKind, cronJob, `{"spec":{"suspend":true}}`)
				suspended = true
			}
			if stack.HasCondition(&jobs.Items[i], condition, "True") == nil {
				return nil
			}
		}
		_, out := d.jobs.ran()

		return fmt.Errorf("there are %d Jobs, none is; they have printed:\n%s", len(jobs.Items), out)
	}))
}

func (d *drilled) wantEvent(t *testing.T, u *unstructured.Unstructured, why string) {
	t.Helper()
	r, err := d.target.Resource(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Event"}, "velero")
	must(t, err)
	list, err := r.List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(u.GetUID())})
	must(t, err)
	for i := range list.Items {
		if reason, _, _ := unstructured.NestedString(list.Items[i].Object, "reason"); reason == why {
			return
		}
	}
	t.Errorf("there is no Event %s among %v", why, list.Items)
}

// wantNothing checks that a drill has removed what it restored.
func (d *drilled) wantNothing(t *testing.T) {
	t.Helper()
	if left := d.all(t, d.target, d.tenant); len(left) > 0 {
		t.Errorf("the drill has left %v", left)
	}
}
