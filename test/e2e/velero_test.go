package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// backupWith makes a backup with arguments, waits until it is Completed and returns it.
func backupWith(t *testing.T, c *stack.Cluster, name string, args ...string) *unstructured.Unstructured {
	t.Helper()
	ctx := t.Context()
	_, err := c.Velero(ctx, append([]string{"backup", "create", name}, args...)...)
	must(t, err)
	var backup *unstructured.Unstructured
	must(t, c.Wait(ctx, 2*time.Minute, "Backup "+name, func(ctx context.Context) (err error) {
		if backup, err = get(ctx, c, veleroRestore.GroupVersion().WithKind("Backup"), "velero", name); err != nil {
			return err
		}
		switch phase := drill.Phase(backup); phase {
		case "Completed":
			return nil
		case "PartiallyFailed", "Failed", "FailedValidation":
			logs, _ := c.Velero(ctx, "backup", "logs", name)

			return stack.Never(fmt.Errorf("it is %s\n%s", phase, problems(logs)))
		default:
			return errors.New("its phase is " + phase)
		}
	}))

	return backup
}

// warnings returns the number of warnings in the status of a Backup or Restore.
func warnings(u *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(u.Object, "status", "warnings")

	return n
}

// problems returns the lines of a log above the level info.
func problems(logs string) string {
	var lines []string
	for line := range strings.Lines(logs) {
		if strings.Contains(line, "level=error") || strings.Contains(line, "level=warning") {
			lines = append(lines, line)
		}
	}

	return strings.Join(lines, "")
}

// backup returns the name of the tenant's backup.
func (n *tenant) backup() string {
	if n.Prefix != "" {
		return n.Prefix
	}

	return n.Namespace
}

// wantPhase waits until a restore has ended and checks its phase.
func (s *suite) wantPhase(t *testing.T, restore, phase string) { //nolint:unparam // It is clearer where it is called.
	t.Helper()
	r, err := drill.AwaitRestore(t.Context(), s.target, restore)
	must(t, err)
	if drill.Phase(r) != phase {
		t.Errorf("Restore %s is %s, not %s:\n%s", restore, drill.Phase(r), phase, s.details(t, restore))
	}
}

// details returns the output of "velero restore describe --details".
func (s *suite) details(t *testing.T, restore string) string {
	t.Helper()
	out, err := s.target.Velero(t.Context(), "restore", "describe", restore, "--details")
	must(t, err)

	return out
}

// wantMessage checks that a line of a text has all of the words.
func wantMessage(t *testing.T, what, text string, words ...string) {
	t.Helper()
	if linesWith(text, words...) == 0 {
		t.Errorf("no line of %s has all of %q:\n%s", what, words, text)
	}
}

// linesWith counts the lines of a text that have all of the words.
func linesWith(text string, words ...string) int {
	n := 0
	for line := range strings.Lines(text) {
		if hasAll(line, words) {
			n++
		}
	}

	return n
}

func hasAll(line string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
}

// contents returns the content of a backup: the JSON of each file by its path in the tarball.
func contents(t *testing.T, c *stack.Cluster, backup string) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), backup+".tar.gz")
	_, err := c.Velero(t.Context(), "backup", "download", backup, "-o", file)
	must(t, err)
	files := map[string]string{}
	readBackup(t, file, func(header *tar.Header, content []byte) { files[header.Name] = string(content) })

	return files
}

// readBackup calls a function with each file in the tarball of a backup.
func readBackup(t *testing.T, file string, each func(header *tar.Header, content []byte)) {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	for archive := tar.NewReader(z); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		b, err := io.ReadAll(archive)
		must(t, err)
		each(header, b)
	}
}

func get(ctx context.Context, c *stack.Cluster, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	r, err := c.Resource(ctx, gvk, namespace)
	if err != nil {
		return nil, err
	}

	return r.Get(ctx, name, metav1.GetOptions{})
}

func list(ctx context.Context, c *stack.Cluster, gvk schema.GroupVersionKind, namespace, selector string) ([]unstructured.Unstructured, error) {
	r, err := c.Resource(ctx, gvk, namespace)
	if err != nil {
		return nil, err
	}
	l, err := r.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}

	return l.Items, nil
}
