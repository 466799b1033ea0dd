package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const single = "single"

// worldsOfPolicies are restored with resource policies of Velero. Each of ten trees has size
// objects.
func worldsOfPolicies(size int) map[string]*shape {
	const trees, store = 10, single + "-store"
	n := &shape{
		reason: "A resource policy brings one whole tree by its name, and the next restore the others.",
		target: "target.yaml", last: narrow, restoring: testSingle,
		Scene: drill.Scene{
			Count: trees, Size: trees * size, Store: store,
			BackupArgs:  []string{"--include-namespaces", single + "," + store, "--resource-policies-configmap", single + "-backup"},
			RestoreArgs: []string{"--include-namespaces", single, "--resource-policies-configmap", single},
		},
	}

	return map[string]*shape{single: n}
}

// narrow makes a backup whose policy leaves out the bucket of one tree by its name. Velero does so
// without a word.
func narrow(ctx context.Context, c *stack.Cluster, s drill.Scene) error {
	s.Name = single + "-narrow"
	s.BackupArgs = []string{"--include-namespaces", single, "--resource-policies-configmap", s.Name}
	if err := s.BackUp(ctx, c); err != nil {
		return err
	}
	logs, err := c.Velero(ctx, "backup", "logs", s.Name)
	if err == nil && linesWith(problems(logs), "level=warning", "buckets.cloud.", single+"-03-", "[ExcludedByFilter]") != 1 {
		err = fmt.Errorf("the backup names what its policy leaves out not once:\n%s", problems(logs))
	}

	return err
}

// testSingle expects one tree of the first restore, nothing of one whose policy selects nothing, and
// restores the rest.
func testSingle(t *testing.T, s *suite, n *shape) {
	t.Helper()
	ctx := t.Context()
	one := n.Scene
	one.Size /= one.Count
	s.awaitCompleted(t, single)
	must(t, one.AwaitReady(ctx, s.target))
	want := maps.Clone(n.picture)
	maps.DeleteFunc(want, func(id string, l drill.Likeness) bool {
		return !strings.Contains(id+fmt.Sprint(l.Owners), single+"-03")
	})
	if len(want) != one.Size {
		t.Fatalf("the tree had %d objects, not %d", len(want), one.Size)
	}
	wantPicture := func() {
		after, err := n.Picture(ctx, s.target)
		must(t, err)
		wantSame(t, n, want, after)
	}
	wantPicture()
	restore := func(name string, args ...string) {
		must(t, drill.Platform{}.StartRestore(ctx, s.target, name, single, args...))
		s.awaitCompleted(t, name)
	}
	restore(single+"-none", "--include-namespaces", single, "--resource-policies-configmap", single+"-none")
	wantPicture()
	restore(single+"-rest", "--include-namespaces", single+","+n.Store)
}
