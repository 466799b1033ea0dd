//go:build matrix

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testNetworkBackup backs a tenant up again while calls of the plugin fail, and compares the result
// with an earlier backup. For each file that it lacks, its errors must name the instance, whose
// composed resources are then missing too.
func (s *suite) testNetworkBackup(t *testing.T, n *tenant, seed uint64) {
	t.Helper()
	ctx := t.Context()
	p, err := s.source.Proxy(ctx)
	must(t, err)
	must(t, s.source.Divert(ctx, p, stack.Velero))
	whole := contents(t, s.source, n.Namespace)
	for i, rate := range []float64{0.1, 0.5} {
		name := n.Namespace + []string{"-some", "-many"}[i]
		p.Set(&stack.Faults{Kinds: ofAnswers(), Rate: rate, Programs: []string{plugin}, Seed: seed})
		_, err = s.source.Velero(ctx, "backup", "create", name, "--include-namespaces", n.Namespace)
		must(t, err)
		phase := ""
		must(t, s.source.Wait(ctx, 10*time.Minute, "the end of the backup", func(ctx context.Context) error {
			u, err := get(ctx, s.source, schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Backup"}, "velero", name)
			if err != nil {
				return err
			}
			if phase = drill.Phase(u); !slices.Contains([]string{"Completed", "PartiallyFailed", "Failed", "FailedValidation"}, phase) {
				return errors.New("it is " + phase)
			}

			return nil
		}))
		injected := p.Stop()
		if len(injected) == 0 {
			t.Error("no call has failed, so the test proves nothing")
		}
		logs, err := s.source.Velero(ctx, "backup", "logs", name)
		must(t, err)
		reported := problems(logs)
		got := contents(t, s.source, name)
		lacking := 0
		for file, object := range whole {
			have, ok := got[file]
			if !ok {
				lacking++
			}
			for i := range n.size {
				if !ok && strings.HasPrefix(path.Base(file), n.Name(i)) && !strings.Contains(reported, n.Name(i)) {
					t.Errorf("the backup %s is %s, lacks %s and does not name the instance:\n%s", name, phase, file, reported)
				}
			}
			if diff := cmp.Diff(notes(t, object), notes(t, have)); ok && phase == "Completed" && diff != "" {
				t.Errorf("the backup %s is %s, and of %s it has other notes: -before, +now:\n%s", name, phase, file, diff)
			}
		}
		if lacking > 0 && phase == "Completed" {
			t.Errorf("the backup %s is Completed and lacks %d files:\n%s", name, lacking, reported)
		}
		t.Logf("| Backup at %.0f%% | %s | %d | %s | %s, lacks %d of %d files |", 100*rate, s.version, seed, tally(injected), phase, lacking, len(whole))
	}
}

// notes returns the annotations that the plugin writes onto a stored copy.
func notes(t *testing.T, object string) map[string]any {
	t.Helper()
	var u struct {
		Metadata map[string]any `json:"metadata"`
	}
	if object == "" || json.Unmarshal([]byte(object), &u) != nil {
		return nil // It is no object.
	}
	found := map[string]any{}
	for key, value := range u.Metadata {
		if strings.HasPrefix(key, "velero.crossplane.io/") {
			found[key] = value
		}
	}

	return found
}
