//go:build matrix

package e2e

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		backup, err := drill.Scene{Name: name, BackupArgs: []string{"--include-namespaces", n.Namespace}}.EndOfBackup(ctx, s.source)
		must(t, err)
		phase := drill.Phase(backup)
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
		t.Logf("NETWORK_SEED=%d: at %.0f%% the backup is %s and lacks %d of %d files", seed, 100*rate, phase, lacking, len(whole))
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
