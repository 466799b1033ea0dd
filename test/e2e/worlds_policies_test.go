package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	var want []string
	for id, l := range n.picture {
		if strings.Contains(id+fmt.Sprint(l.Owners), single+"-03") {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	if len(want) != n.Size/n.Count {
		t.Fatalf("the tree had other objects: %v", want)
	}
	wantTree := func(restore string) {
		s.awaitCompleted(t, restore)
		after, err := n.Picture(ctx, s.target)
		must(t, err)
		maps.DeleteFunc(after, func(_ string, l drill.Likeness) bool { return l.Fields == drill.Absent })
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(after))); diff != "" {
			t.Errorf("after the restore %s: -want, +got:\n%s", restore, diff)
		}
	}
	wantTree(single)
	restore := func(name string, args ...string) {
		must(t, drill.Platform{}.StartRestore(ctx, s.target, name, single, args...))
	}
	restore(single+"-none", "--include-namespaces", single, "--resource-policies-configmap", single+"-none")
	wantTree(single + "-none")
	restore(single+"-rest", "--include-namespaces", single+","+n.Store)
	s.awaitCompleted(t, single+"-rest")
}
