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

// ours is in the keys of all that the plugin writes.
const ours = "velero.crossplane."

// testUninstalled removes the plugin: a user's changes take effect, and Velero alone works.
func (s *suite) testUninstalled(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, s.target.UsePlugin(ctx, false))
	s.wantNothingOfOurs(t, n)

	n.Without, n.Twice = []string{"database"}, []string{"bucket"}
	must(t, n.Compose(ctx, s.target))
	s.eventually(t, "the change of the Composition to take effect", func(ctx context.Context) error {
		mrs, err := n.Managed(ctx, s.target)
		if err != nil {
			return err
		}
		got := map[string]int{}
		for _, u := range mrs {
			got[u.GetKind()]++
		}
		if diff := cmp.Diff(map[string]int{"Bucket": 2 * n.size, "Network": n.size}, got); diff != "" {
			return fmt.Errorf("-want, +got:\n%s", diff)
		}

		return nil
	})
	must(t, n.AwaitReady(ctx, s.target, n.size))

	if w := warnings(backupWith(t, s.target, "uninstalled", "--include-namespaces", n.Namespace)); w > 0 {
		t.Errorf("Velero alone has %d warnings about objects that the plugin has restored", w)
	}
	for file, text := range contents(t, s.target, "uninstalled") {
		if strings.Contains(text, ours) {
			t.Errorf("%s in a backup of Velero's has data of the plugin: %s", file, text)
		}
	}
	must(t, n.DeleteNamespace(ctx, s.target))
	must(t, n.StartRestore(ctx, s.target, "uninstalled", "uninstalled"))
	s.awaitCompleted(t, "uninstalled")
	s.awaitSeen(t, n)
	s.wantNothingOfOurs(t, n)
}

// wantPluginMissing expects validate to warn if Velero runs without the plugin, and only then.
func (s *suite) wantPluginMissing(t *testing.T, n *tenant, want bool) {
	t.Helper()
	v, r := s.judge(t, "-n", n.Namespace)
	got := slices.ContainsFunc(v.Problems, func(p problem) bool {
		return p.Code == "PluginMissing" && p.Severity == "warning" && p.Object.Kind == "Deployment" && p.Object.Name == "velero"
	})
	if got != want {
		t.Errorf("validate warns that Velero lacks the plugin: %t, want %t: %s\n%s", got, want, r.stderr, r.stdout)
	}
}

// testHeldInBackup backs held objects up with Velero alone, and restores them into another cluster.
// They stay held and unchanged until a user declares that the marks can be trusted and runs
// release, which needs no Velero.
func (s *suite) testHeldInBackup(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, s.target.Stop(stack.CloudProvider))
	must(t, n.StartRestore(ctx, s.target, "held", "held", "--item-operation-timeout", "1s"))
	_, err := drill.AwaitRestore(ctx, s.target, "held")
	must(t, err)
	must(t, s.target.UsePlugin(ctx, false))
	backupWith(t, s.target, "held-again", "--include-namespaces", n.Namespace)
	must(t, s.target.Destroy())
	s.target = s.cluster(t, "again")
	must(t, n.Compose(ctx, s.target))
	must(t, s.target.UsePlugin(ctx, false))
	must(t, n.StartRestore(ctx, s.target, "held-again", "held-again"))
	s.awaitCompleted(t, "held-again")

	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	if got.Holds != n.size || got.Creates > 0 || got.Deletes > 0 {
		t.Errorf("the restored objects must stay held and unchanged: %+v", got)
	}
	if r := command(t, s.target, "release"); r.code != 3 || !strings.Contains(r.stdout, "--trust-marks") {
		t.Errorf("another cluster's marks count only with --trust-marks; the command ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := command(t, s.target, "release", "--trust-marks", "--restore", "held"); r.code != 0 {
		t.Fatalf("the command ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	s.settle(t, n)
	if got, err = n.Compare(ctx, s.target, s.cloud, n.before); err != nil || !got.Sound() {
		t.Errorf("it changed on release: %+v, %v", got, err)
	}
	s.wantNothingOfOurs(t, n)
}

// wantNothingOfOurs checks that all objects are reconciled and have no data of the plugin.
func (s *suite) wantNothingOfOurs(t *testing.T, n *tenant) {
	t.Helper()
	objects, err := n.Objects(t.Context(), s.target)
	must(t, err)
	if len(objects) == 0 {
		t.Errorf("there is nothing in %s", n.Namespace)
	}
	for _, u := range objects {
		keys := slices.Concat(slices.Collect(maps.Keys(u.GetAnnotations())), slices.Collect(maps.Keys(u.GetLabels())), u.GetFinalizers())
		if paused(&u) || slices.ContainsFunc(keys, func(key string) bool { return strings.Contains(key, ours) }) {
			t.Errorf("%s %s is paused, or has data of the plugin: %v", u.GetKind(), u.GetName(), keys)
		}
	}
}

// testStandDown restores with a Velero that announces that it links owners. No release does that.
// This one only announces it, so the test shows that only Crossplane writes owners, and that the
// XRs are adopted nevertheless.
func (s *suite) testStandDown(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, s.target.AddArgs(stack.Velero, "--features=OwnerRefRelink"))
	must(t, s.target.UsePlugin(ctx, true))
	history, err := n.Watch(ctx, s.target)
	must(t, err)
	s.restore(t, n, "linked")
	s.settle(t, n)

	for _, kind := range []string{"Bucket", "Network", "Database"} {
		states := history.Of(kind)
		if len(states) != n.size {
			t.Errorf("there were %d %ss", len(states), kind)
		}
		for name, list := range states {
			if owners := list[0].GetOwnerReferences(); len(owners) > 0 {
				t.Errorf("%s %s was created with owners, which are Velero's to write: %v", kind, name, owners)
			}
		}
	}
	logs, err := s.target.Velero(ctx, "restore", "logs", "linked")
	must(t, err)
	if reported := linesWith(logs, "OwnerRefRelink is on"); reported != 1 {
		t.Errorf("the log of the restore reports %d times, not once, that owners are left to Velero:\n%s", reported, logs)
	}
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	if diff := cmp.Diff(drill.Outcome{Adopted: len(n.before.Slots), Total: len(n.before.Slots)}, got); diff != "" {
		t.Errorf("with owners that only Crossplane writes: -want, +got:\n%s", diff)
	}
	dead, err := n.DeadOwners(ctx, s.target)
	must(t, err)
	for _, d := range dead {
		t.Error(d)
	}
}
