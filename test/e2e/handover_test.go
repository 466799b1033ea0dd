package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func TestHandoverV2(t *testing.T) { testHandover(t, stack.V2, false) }

// testHandover moves namespaces between two live clusters that share the cloud and the bucket. all adds what
// waits for Velero's synchronizations, and a namespace whose commands are killed.
func testHandover(t *testing.T, version stack.Version, all bool) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	ctx := t.Context()
	moves := s.few(t, s.source, drill.Platform{Namespace: "moves", Without: []string{"database"}}, 3)
	tenants := []*tenant{moves}
	var late, split, killed, race *tenant
	if all {
		late = s.few(t, s.source, drill.Platform{Namespace: "late", Without: []string{"database"}}, 2)
		split = s.few(t, s.source, drill.Platform{Namespace: "split", Without: []string{"database"}}, 2)
		killed = s.few(t, s.source, drill.Platform{Namespace: "killed", Without: []string{"database"}}, 2)
		race = s.few(t, s.source, drill.Platform{Namespace: "race", Without: []string{"database"}}, 2)
		tenants = append(tenants, late, split, killed, race)
	}
	s.settings(t, moves)
	for _, n := range tenants {
		s.remember(t, s.source, n)
	}
	s.target = s.cluster(t, "target")
	for _, n := range tenants {
		must(t, n.Compose(ctx, s.target))
	}

	t.Run("Usage", func(t *testing.T) { s.testHandoverUsage(t) })
	if all {
		t.Run("Aborted", func(t *testing.T) { s.testHandoverAborted(t, moves) })
		t.Run("Untouched", func(t *testing.T) { s.testHoldUntouched(t, late) })
		t.Run("NotQuiet", func(t *testing.T) { s.testNotQuiet(t, late) })
		t.Run("SplitBrain", func(t *testing.T) { s.testRunningSource(t, split) })
		t.Run("AbortedMeanwhile", func(t *testing.T) { s.testAbortRace(t, race) })
		t.Run("Killed", func(t *testing.T) { s.testHandoverKilled(t, killed) })
	}
	t.Run("There", func(t *testing.T) { s.testMoved(t, moves, "there", s.inFile) })
	s.source, s.target = s.target, s.source
	t.Run("Back", func(t *testing.T) { s.testMoved(t, moves, "back", s.inBucket) })
}

func (s *suite) testHandoverUsage(t *testing.T) {
	for args, want := range map[string]int{"hold": 2, "hold -n nothing-here": 1, "retire": 2, "retire --yes --report /dev/null": 1} {
		if got := command(t, s.source, strings.Fields(args)...); got.code != want {
			t.Errorf("%s exits with %d, not %d: %s", args, got.code, want, got.stderr)
		}
	}
}

// hold holds a namespace of the source, and returns the sequence number of the cloud's journal.
func (s *suite) hold(t *testing.T, n *tenant) int64 {
	t.Helper()
	got := command(t, s.source, "hold", "-n", n.Namespace, "--timeout", "2m")
	if got.code != 0 {
		t.Fatalf("hold exits with %d: %s\n%s", got.code, got.stderr, got.stdout)
	}

	return s.last(t)
}

// wantNoWrites fails if a cluster has changed anything in the cloud for a tenant.
func (s *suite) wantNoWrites(t *testing.T, n *tenant, since int64, clusters ...*stack.Cluster) {
	t.Helper()
	for _, c := range clusters {
		calls, err := s.calls(t.Context(), c, n, since, api.Create, api.Update, api.Delete)
		must(t, err)
		if len(calls) > 0 {
			t.Errorf("the cluster %s has written for %s: %v", c.Name(), n.Namespace, calls)
		}
	}
}

// testHandoverAborted holds a namespace, changes it, backs it up, and goes on in the same cluster. The
// target refuses that backup.
func (s *suite) testHandoverAborted(t *testing.T, n *tenant) {
	ctx := t.Context()
	before := s.held(t, s.source, n)
	if dry := command(t, s.source, "hold", "-n", n.Namespace, "--dry-run"); dry.code != 0 || s.held(t, s.source, n) != before {
		t.Errorf("a dry run exits with %d and holds %d objects: %s", dry.code, s.held(t, s.source, n), dry.stderr)
	}
	since := s.hold(t, n)
	if s.held(t, s.source, n) == 0 {
		t.Fatal("nothing is held, so the test proves nothing")
	}
	s.change(t, n)
	s.hold(t, n)
	s.wantNoWrites(t, n, since, s.source)
	if left := command(t, s.source, "release", "-n", n.Namespace); left.code != 0 || s.held(t, s.source, n) == 0 {
		t.Errorf("a plain release must leave a handover alone: exit %d, %d held: %s", left.code, s.held(t, s.source, n), left.stdout)
	}
	s.backUpByGlob(t, n, "aborted")
	mover := s.mover(t, n)
	if got := commandAs(t, s.source, mover.kubeconfig, "release", "--handover", "-n", n.Namespace); got.code != 0 || s.held(t, s.source, n) != 0 {
		t.Fatalf("release --handover exits with %d, and %d are held: %s\n%s", got.code, s.held(t, s.source, n), got.stderr, got.stdout)
	}
	s.awaitCall(t, s.source, n, since, api.Update)
	must(t, n.AwaitReady(ctx, s.source, n.size))
	s.remember(t, s.source, n)

	s.awaitRecord(t, s.target, "aborted-")
	since = s.last(t)
	must(t, n.StartRestore(ctx, s.target, "aborted", "aborted"))
	must(t, drill.AwaitItems(ctx, s.target, "aborted"))
	if all := s.all(t, s.target, n); len(all) > 0 {
		t.Errorf("the source manages what the target has restored: %v", slices.Sorted(maps.Keys(all)))
	}
	if problems := drill.Problems(ctx, s.target, "aborted"); !strings.Contains(problems, "HandoverAborted") {
		t.Errorf("the restore does not name the reason: %s", problems)
	}
	s.wantNoWrites(t, n, since, s.target)
}

// backUpByGlob names the namespace by a glob, which Velero keeps in the spec of the Backup.
func (s *suite) backUpByGlob(t *testing.T, n *tenant, name string) {
	t.Helper()
	p := n.Platform
	p.Namespace = n.Namespace[:len(n.Namespace)-1] + "?"
	must(t, p.Backup(t.Context(), s.source, name))
}

// mover returns the account of a user who moves clusters in the source.
func (s *suite) mover(t *testing.T, n *tenant) *account {
	t.Helper()
	for _, file := range []string{"rbac/validate.yaml", "rbac/release.yaml", "rbac/handover.yaml"} {
		must(t, s.source.ApplyObjects(t.Context(), n.example(t, file)...))
	}

	return accountIn(t, s.source, "velero", "velero-plugin-for-crossplane-handover")
}

// held counts the objects with a mark in a namespace.
func (s *suite) held(t *testing.T, c *stack.Cluster, n *tenant) int {
	t.Helper()
	ctx, held := t.Context(), 0
	for _, list := range []func(context.Context, *stack.Cluster) ([]unstructured.Unstructured, error){n.Instances, n.Composites, n.Managed} {
		all, err := list(ctx, c)
		must(t, err)
		for i := range all {
			if drill.Held(&all[i]) {
				held++
			}
		}
	}

	return held
}

// testNotQuiet backs up with an object that appeared after the hold, and restores that.
func (s *suite) testNotQuiet(t *testing.T, n *tenant) {
	ctx := t.Context()
	s.hold(t, n)
	must(t, n.Make(ctx, s.source, n.size+1))
	must(t, s.source.Wait(ctx, patience, "the new instance", func(ctx context.Context) error {
		all, err := n.Instances(ctx, s.source)
		if err == nil && len(all) <= n.size {
			err = errors.New("it is not there")
		}

		return err
	}))
	s.backUpByGlob(t, n, "late")
	logs, err := s.source.Velero(ctx, "backup", "logs", "late")
	must(t, err)
	if name := n.Name(n.size); !strings.Contains(logs, "NotHandedOver") || !strings.Contains(logs, name) {
		t.Errorf("the log of the backup does not name %s as not held", name)
	}
	must(t, n.StartRestore(ctx, s.target, "late", "late"))
	must(t, drill.AwaitItems(ctx, s.target, "late"))
	all, err := n.Instances(ctx, s.target)
	must(t, err)
	for i := range all {
		if all[i].GetName() == n.Name(n.size) {
			t.Errorf("%s is restored though the source could write for it", all[i].GetName())
		}
	}
	if len(all) != n.size {
		t.Errorf("%d instances are restored, not %d", len(all), n.size)
	}
	problems := drill.Problems(ctx, s.target, "late")
	if !strings.Contains(problems, "SourceNotQuiet") {
		t.Errorf("the restore does not name the reason: %s", problems)
	}
	s.testAbortRefused(t, n)
}

// testAbortRefused tries to go on in the source after the target has begun to adopt.
func (s *suite) testAbortRefused(t *testing.T, n *tenant) {
	t.Helper()
	s.awaitRecord(t, s.source, "receipt-")
	got := command(t, s.source, "release", "--handover", "-n", n.Namespace)
	if got.code != 3 || !strings.Contains(got.stdout, "AdoptedElsewhere") || s.held(t, s.source, n) == 0 {
		t.Errorf("the abort is not refused: exit %d, %d held: %s\n%s", got.code, s.held(t, s.source, n), got.stdout, got.stderr)
	}
}

// awaitRecord waits until Velero has brought the record of another cluster, whose name begins so.
func (s *suite) awaitRecord(t *testing.T, c *stack.Cluster, prefix string) {
	t.Helper()
	must(t, c.Wait(t.Context(), patience, "a record "+prefix, func(context.Context) error {
		out, err := c.Velero(t.Context(), "backup", "get", "-l", "velero.crossplane.x-k8s.io/receipt")
		if err == nil && !strings.Contains(out, prefix) {
			err = errors.New("there is none")
		}

		return err
	}))
}

// testMoved moves a namespace from the source to the target, and checks both and the cloud. carry
// makes the target's report, and returns the arguments with which retire finds it.
func (s *suite) testMoved(t *testing.T, n *tenant, name string, carry func(*testing.T, *tenant) []string) {
	ctx := t.Context()
	mover := s.mover(t, n)
	held := commandAs(t, s.source, mover.kubeconfig, "hold", "-n", n.Namespace, "--timeout", "2m")
	if held.code != 0 {
		t.Fatalf("hold exits with %d: %s\n%s", held.code, held.stderr, held.stdout)
	}
	since := s.last(t)
	must(t, n.Backup(ctx, s.source, name))
	must(t, n.StartRestore(ctx, s.target, name, name))
	s.awaitCompleted(t, name)
	n.revised = true
	s.settle(t, n)
	t.Run("OwnReport", func(t *testing.T) { s.testOwnReport(t, n) })
	t.Run("Missing", func(t *testing.T) { s.testNotAdoptedThere(t, n) })
	report := carry(t, n)
	retire := func(more ...string) run {
		return commandInPod(t, s.source, mover.kubeconfig, slices.Concat([]string{"retire", "-n", n.Namespace}, report, more)...)
	}
	dry := retire("--dry-run")
	if dry.code != 0 || s.held(t, s.source, n) == 0 {
		t.Errorf("a dry run exits with %d: %s\n%s", dry.code, dry.stderr, dry.stdout)
	}
	if got := retire("--yes"); got.code != 0 {
		t.Fatalf("retire exits with %d: %s\n%s", got.code, got.stderr, got.stdout)
	}
	s.wantGone(t, n)
	if again := retire("--yes"); again.code != 1 || !strings.Contains(again.stderr, "NotFound") {
		t.Errorf("a second retire exits with %d: %s\n%s", again.code, again.stderr, again.stdout)
	}
	s.settle(t, n)
	s.wantNoWrites(t, n, since, s.source)
	s.wantNoChanges(t, n, since)
	if err := s.unsound(ctx, n); err != nil {
		t.Error(err)
	}
}

// inFile writes the target's report into a file.
func (s *suite) inFile(t *testing.T, n *tenant) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "adopted.json")
	must(t, os.WriteFile(file, []byte(command(t, s.target, "validate", "-n", n.Namespace, "-o", "json").stdout), 0o600))

	return []string{"--report", file}
}

// inBucket writes the target's report into the bucket.
func (s *suite) inBucket(t *testing.T, n *tenant) []string {
	t.Helper()
	const location, name = "--report-location", "default"
	if got := commandInPod(t, s.target, "", "validate", "-n", n.Namespace, location, name); got.code != 0 {
		t.Fatalf("validate exits with %d: %s\n%s", got.code, got.stderr, got.stdout)
	}

	return []string{location, name}
}

// wantNoChanges fails if an external resource was created or deleted.
func (s *suite) wantNoChanges(t *testing.T, n *tenant, since int64) {
	t.Helper()
	entries, err := s.cloud.Journal(t.Context(), since, api.Create, api.Delete)
	must(t, err)
	entries = slices.DeleteFunc(entries, func(e api.Entry) bool { return !strings.Contains(fmt.Sprint(e), n.Namespace) })
	if len(entries) > 0 {
		t.Errorf("the cloud's journal: %v", entries)
	}
}

// testOwnReport retires with a report of the same cluster.
func (s *suite) testOwnReport(t *testing.T, n *tenant) {
	file := filepath.Join(t.TempDir(), "own.json")
	must(t, os.WriteFile(file, []byte(command(t, s.source, "validate", "-n", n.Namespace, "-o", "json").stdout), 0o600))
	got := command(t, s.source, "retire", "-n", n.Namespace, "--report", file, "--yes")
	if got.code != 1 || !strings.Contains(got.stderr, "ReportUnusable") {
		t.Errorf("a report of the same cluster is not refused: exit %d: %s", got.code, got.stderr)
	}
}

// testNotAdoptedThere retires with a report that lacks an MR.
func (s *suite) testNotAdoptedThere(t *testing.T, n *tenant) {
	var report map[string]any
	must(t, json.Unmarshal([]byte(command(t, s.target, "validate", "-n", n.Namespace, "-o", "json").stdout), &report))
	before := s.held(t, s.source, n)
	dropAll(report, "Network")
	b, err := json.Marshal(report)
	must(t, err)
	file := filepath.Join(t.TempDir(), "less.json")
	must(t, os.WriteFile(file, b, 0o600))
	got := command(t, s.source, "retire", "-n", n.Namespace, "--report", file, "--dry-run")
	if got.code != 3 || !strings.Contains(got.stdout, "NotAdoptedThere") || s.held(t, s.source, n) != before {
		t.Errorf("what the report lacks must stay: exit %d: %s\n%s", got.code, got.stdout, got.stderr)
	}
}

// dropAll removes the nodes of a kind from a report.
func dropAll(value any, kind string) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if list, ok := field.([]any); ok {
				v[key] = slices.DeleteFunc(list, func(e any) bool {
					m, _ := e.(map[string]any)

					return m["kind"] == kind
				})
			}
			dropAll(v[key], kind)
		}
	case []any:
		for _, e := range v {
			dropAll(e, kind)
		}
	}
}
