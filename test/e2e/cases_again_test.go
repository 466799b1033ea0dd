package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// lookAgain restarts Crossplane, gives each Composition a new revision with the same content, and
// expects nothing else to change.
func (s *suite) lookAgain(t *testing.T, worlds []*world) {
	t.Helper()
	ctx := t.Context()
	must(t, s.target.Restart(ctx, stack.Crossplane))
	since := s.now(t)
	for _, w := range worlds {
		compositions, err := list(ctx, s.target, compositionKind, "", "")
		must(t, err)
		for _, u := range compositions {
			if name := u.GetName(); name == w.Name || strings.HasPrefix(name, w.Name+"-") {
				must(t, drill.Patch(ctx, s.target, &u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.org/touched": "true"}}}))
			}
		}
	}
	s.each(t, "Again", worlds, func(w *world) bool { return w.after != nil }, func(t *testing.T, w *world) { t.Helper(); s.testAgain(t, w, since) })
}

func (s *suite) testAgain(t *testing.T, w *world, since int64) {
	t.Helper()
	ctx := t.Context()
	s.awaitSettled(t, w)
	if len(w.Expect.Held) == 0 {
		must(t, w.scene.AwaitReads(ctx, s.target, s.cloud, since))
	}
	err := s.soon(t, func(ctx context.Context) error {
		again, err := w.scene.Picture(ctx, s.target)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(withoutRevisions(w.after.picture), withoutRevisions(again), cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("-before, +after:\n%s", diff)
		}

		return nil
	})
	s.wantCloud(t, w)
	if err != nil {
		t.Errorf("%s\nWhen Crossplane is restarted and Compositions are touched: %v", w.Reason, err)
	}
	s.wantBystander(t, w, since, true)
}

// withoutRevisions returns a picture without the revisions that XRs follow.
func withoutRevisions(p drill.Picture) drill.Picture {
	all := drill.Picture{}
	for name, l := range p {
		if fields, ok := l.Fields.(map[string]any); ok {
			u := (&unstructured.Unstructured{Object: fields}).DeepCopy()
			if policy, _, _ := unstructured.NestedString(u.Object, "spec", "crossplane", "compositionUpdatePolicy"); policy != "Manual" {
				unstructured.RemoveNestedField(u.Object, "spec", "crossplane", "compositionRevisionRef")
			}
			if policy, _, _ := unstructured.NestedString(u.Object, "spec", "compositionUpdatePolicy"); policy != "Manual" {
				unstructured.RemoveNestedField(u.Object, "spec", "compositionRevisionRef")
			}
			l.Fields = u.Object
		}
		l.Managers = maps.Clone(l.Managers)
		for manager, paths := range l.Managers {
			l.Managers[manager] = slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return strings.Contains(path, "/compositionRevisionRef") })
			if len(l.Managers[manager]) == 0 { // Whether one stays is up to the next write.
				delete(l.Managers, manager)
			}
		}
		maps.DeleteFunc(l.Managers, func(_ string, paths []string) bool { return len(paths) == 0 })
		all[name] = l
	}

	return all
}
