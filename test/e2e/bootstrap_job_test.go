package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A jobRunner stands for the Job controller and a kubelet: it runs the containers of Jobs as
// processes on this machine, with the rights of their ServiceAccounts.
type jobRunner struct {
	cluster       *stack.Cluster
	clients       kubernetes.Interface
	kubectl, home string
	// images are the programs of images: an image without a command copies its program to /target.
	images map[string]string

	mu   sync.Mutex
	seen map[types.UID]bool
	out  strings.Builder
}

// runJobs runs all Jobs of a namespace until the test ends.
func runJobs(t *testing.T, c *stack.Cluster, namespace, kubectl string) *jobRunner {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c.REST())
	must(t, err)
	j := &jobRunner{cluster: c, clients: clients, kubectl: kubectl, home: t.TempDir(), seen: map[types.UID]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			jobs, err := clients.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
			for i := 0; err == nil && i < len(jobs.Items); i++ {
				if job := &jobs.Items[i]; j.isNew(job.UID) {
					wg.Go(func() { j.run(ctx, job) })
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	})

	return j
}

func (j *jobRunner) isNew(uid types.UID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	old := j.seen[uid]
	j.seen[uid] = true

	return !old
}

// ran returns how many Jobs have run, and their output.
func (j *jobRunner) ran() (count int, output string) {
	j.mu.Lock()
	defer j.mu.Unlock()

	return len(j.seen), j.out.String()
}

func (j *jobRunner) log(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(&j.out, format+"\n", args...)
}

// run runs a Job until it is complete or has failed.
func (j *jobRunner) run(ctx context.Context, job *batchv1.Job) {
	began := metav1.Now()
	j.setStatus(ctx, job, batchv1.JobStatus{StartTime: &began, Active: 1})
	for failed := int32(0); ctx.Err() == nil; {
		code, err := j.try(ctx, job)
		if err == nil && code == 0 {
			now := metav1.Now()
			j.setStatus(ctx, job, batchv1.JobStatus{
				StartTime: &began, CompletionTime: &now, Succeeded: 1, Failed: failed, Conditions: jobConditions(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete),
			})

			return
		}
		failed++
		j.log("attempt %d of %s ended with %d, %v", failed, job.Name, code, err)
		if failed > *job.Spec.BackoffLimit || slices.Contains(job.Spec.PodFailurePolicy.Rules[0].OnExitCodes.Values, int32(code)) { //nolint:gosec // It is an exit code.
			j.setStatus(ctx, job, batchv1.JobStatus{StartTime: &began, Failed: failed, Conditions: jobConditions(batchv1.JobFailureTarget, batchv1.JobFailed)})

			return
		}
	}
}

func jobConditions(kinds ...batchv1.JobConditionType) []batchv1.JobCondition {
	var conditions []batchv1.JobCondition
	for _, kind := range kinds {
		conditions = append(conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), LastProbeTime: metav1.Now(), Reason: "Test", Message: "by the test",
		})
	}

	return conditions
}

func (j *jobRunner) setStatus(ctx context.Context, job *batchv1.Job, status batchv1.JobStatus) {
	jobs := j.clients.BatchV1().Jobs(job.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := jobs.Get(ctx, job.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		live.Status = status
		_, err = jobs.UpdateStatus(ctx, live, metav1.UpdateOptions{})

		return err
	})
	if err != nil && ctx.Err() == nil {
		j.log("cannot write the status of Job %s: %v", job.Name, err)
	}
}

// try runs the containers of a Job one after the other, as one Pod would.
func (j *jobRunner) try(ctx context.Context, job *batchv1.Job) (int, error) {
	pod := job.Spec.Template.Spec
	dir, err := os.MkdirTemp(j.home, "pod")
	if err != nil {
		return 0, err
	}
	as, err := newAccount(ctx, j.cluster, job.Namespace, pod.ServiceAccountName, filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return 0, err
	}
	for _, v := range pod.Volumes {
		if err := j.mount(ctx, job.Namespace, v, filepath.Join(dir, v.Name)); err != nil {
			return 0, err
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		code, err := j.exec(ctx, c, as.kubeconfig, dir)
		if err != nil || code != 0 {
			return code, err
		}
	}

	return 0, nil
}

// mount makes the directory of a volume, with the files of a ConfigMap or Secret.
func (j *jobRunner) mount(ctx context.Context, namespace string, v corev1.Volume, dir string) error {
	files := map[string][]byte{}
	switch {
	case v.ConfigMap != nil:
		m, err := j.clients.CoreV1().ConfigMaps(namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for name, content := range m.Data {
			files[name] = []byte(content)
		}
	case v.Secret != nil:
		s, err := j.clients.CoreV1().Secrets(namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		files = s.Data
	case v.EmptyDir == nil:
		return errors.New("cannot mount the volume " + v.Name)
	}
	err := os.MkdirAll(dir, 0o755)
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}

	return err
}

// exec runs the command of a container, or copies the program of its image.
func (j *jobRunner) exec(ctx context.Context, c corev1.Container, kubeconfig, dir string) (int, error) {
	here := func(path string) string {
		path += "/"
		for _, m := range c.VolumeMounts {
			path = strings.ReplaceAll(path, m.MountPath+"/", filepath.Join(dir, m.Name)+"/")
		}

		return strings.TrimSuffix(path, "/")
	}
	name, _, _ := strings.Cut(c.Image, ":")
	if len(c.Command) == 0 {
		program, err := os.ReadFile(j.images[name])
		if err != nil {
			return 0, fmt.Errorf("cannot run the image %s: %w", c.Image, err)
		}

		return 0, os.WriteFile(filepath.Join(here("/target"), filepath.Base(name)), program, 0o700) //nolint:gosec // It is a program.
	}
	args := slices.Clone(c.Command[1:])
	for i := range args {
		args[i] = here(args[i])
	}
	switch c.Command[0] {
	case pluginInImage:
		var env []string
		for _, e := range c.Env {
			env = append(env, e.Name+"="+here(e.Value))
		}
		stdout, stderr, code, err := j.cluster.PluginWith(ctx, kubeconfig, env, args...)
		j.log("%s:\n%s%s", c.Name, stdout, stderr)

		return code, err
	case "kubectl":
		return j.program(ctx, c.Name, j.kubectl, kubeconfig, dir, args...)
	case "/velero":
		return j.program(ctx, c.Name, j.images[name], kubeconfig, dir, args...)
	case "sh":
		// Nothing listens where a Job pushes its metrics.
		if err := os.WriteFile(filepath.Join(dir, "curl"), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // It is a program.
			return 0, err
		}

		return j.program(ctx, c.Name, "/bin/sh", kubeconfig, dir, append([]string{c.Command[1]}, here(c.Args[0]))...)
	default:
		return 0, fmt.Errorf("cannot run %q", c.Command)
	}
}

// program runs a program of this machine in place of a container. dir is where the Pod's files are.
func (j *jobRunner) program(ctx context.Context, container, path, kubeconfig, dir string, args ...string) (int, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	j.log("%s:\n%s", container, out)
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode(), nil
	}

	return 0, err
}
