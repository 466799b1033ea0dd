package drill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const veleroNamespace = "velero"

// Backup backs up the namespace with Velero's default settings and waits until the backup is
// Completed.
func (p Platform) Backup(ctx context.Context, c *stack.Cluster, name string) error {
	return backUp(ctx, c, name, "--include-namespaces", p.Namespace)
}

func backUp(ctx context.Context, c *stack.Cluster, name string, args ...string) error {
	u, err := endOfBackup(ctx, c, name, args...)
	if err != nil {
		return err
	}
	if phase := Phase(u); phase != "Completed" {
		logs, _ := c.Velero(ctx, "backup", "logs", name)

		return fmt.Errorf("cannot back up: Backup %s is %s\n%s", name, phase, problems(logs))
	}

	return nil
}

func endOfBackup(ctx context.Context, c *stack.Cluster, name string, args ...string) (*unstructured.Unstructured, error) {
	if _, err := c.Velero(ctx, append([]string{"backup", "create", name}, args...)...); err != nil {
		return nil, err
	}

	return await(ctx, c, "Backup", name, func(phase string) bool {
		return slices.Contains([]string{"Completed", "PartiallyFailed", "Failed", "FailedValidation"}, phase)
	})
}

// StartRestore waits until the cluster knows the backup, and starts to restore it. Further
// arguments go to the velero command.
func (p Platform) StartRestore(ctx context.Context, c *stack.Cluster, name, backup string, args ...string) error {
	return startRestore(ctx, c, name, backup, args...)
}

func startRestore(ctx context.Context, c *stack.Cluster, name, backup string, args ...string) error {
	if _, err := await(ctx, c, "Backup", backup, func(phase string) bool { return phase == "Completed" || phase == "PartiallyFailed" }); err != nil {
		return err
	}
	_, err := c.Velero(ctx, append([]string{"restore", "create", name, "--from-backup", backup}, args...)...)

	return err
}

// AwaitRestore waits until a restore has ended, in any phase, and returns it.
func AwaitRestore(ctx context.Context, c *stack.Cluster, name string) (*unstructured.Unstructured, error) {
	return await(ctx, c, "Restore", name, func(phase string) bool {
		return phase == "Completed" || strings.Contains(phase, "Failed") && !strings.HasPrefix(phase, "WaitingFor") && !strings.HasPrefix(phase, "Finalizing")
	})
}

// AwaitOperations waits until all items of a restore are restored and only its operations are left.
func AwaitOperations(ctx context.Context, c *stack.Cluster, name string) error {
	_, err := await(ctx, c, "Restore", name, func(phase string) bool { return phase == "WaitingForPluginOperations" })

	return err
}

// AwaitItems waits until all items of a restore are restored. Its operations may still be running.
func AwaitItems(ctx context.Context, c *stack.Cluster, name string) error {
	_, err := await(ctx, c, "Restore", name, func(phase string) bool { return phase != "" && phase != "New" && phase != "InProgress" })

	return err
}

// Phase of a Velero object.
func Phase(u *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")

	return phase
}

func await(ctx context.Context, c *stack.Cluster, kind, name string, done func(phase string) bool) (*unstructured.Unstructured, error) {
	gvk := schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: kind}
	var u *unstructured.Unstructured
	err := c.Wait(ctx, stepTimeout, kind+" "+name, func(ctx context.Context) (err error) {
		if u, err = get(ctx, c, gvk, veleroNamespace, name); err != nil {
			return err
		}
		if !done(Phase(u)) {
			return errors.New("its phase is " + Phase(u))
		}

		return nil
	})

	return u, err
}

// Problems returns the warnings and errors in the log of a restore, when there is one. The command
// velero refuses to read it while Velero finalizes the restore.
func Problems(ctx context.Context, c *stack.Cluster, name string) string {
	_, err := await(ctx, c, "Restore", name, func(phase string) bool {
		return phase == "Completed" || strings.HasPrefix(phase, "WaitingFor") || strings.Contains(phase, "Failed") && !strings.HasPrefix(phase, "Finalizing")
	})
	if err != nil {
		return err.Error()
	}
	logs, err := c.Velero(ctx, "restore", "logs", name)
	if err != nil {
		return err.Error()
	}

	return problems(logs)
}

// problems returns the lines of a log that are warnings or errors.
func problems(logs string) string {
	var lines []string
	for line := range strings.Lines(logs) {
		if strings.Contains(line, "level=error") || strings.Contains(line, "level=warning") {
			lines = append(lines, line)
		}
	}

	return strings.Join(lines, "")
}

// A History has every state of watched objects, as the API server reported it.
type History struct {
	mu     sync.Mutex
	states []*unstructured.Unstructured
}

func (h *History) collect(w watch.Interface, prefix string) {
	for e := range w.ResultChan() {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok || !strings.HasPrefix(u.GetName(), prefix) {
			continue
		}
		h.mu.Lock()
		h.states = append(h.states, u)
		h.mu.Unlock()
	}
}

// Of returns the states of the objects of a kind by name, each in the order of the changes.
func (h *History) Of(kind string) map[string][]*unstructured.Unstructured {
	h.mu.Lock()
	defer h.mu.Unlock()
	states := map[string][]*unstructured.Unstructured{}
	for _, u := range h.states {
		if u.GetKind() == kind {
			states[u.GetName()] = append(states[u.GetName()], u)
		}
	}
	for _, list := range states {
		slices.SortFunc(list, func(a, b *unstructured.Unstructured) int { return cmp.Compare(Version(a), Version(b)) })
	}

	return states
}

// Version returns the resource version as a number. etcd numbers all changes of a cluster in
// sequence, so the versions of two objects show which change came first.
func Version(u *unstructured.Unstructured) int64 {
	n, err := strconv.ParseInt(u.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}

	return n
}
