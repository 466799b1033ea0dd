package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/pages"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

func TestMovingV2(t *testing.T) { testMoving(t, stack.V2, false) }

// testMoving moves namespaces between two live clusters that share the cloud and the bucket, as
// docs/moving.md says. all adds namespaces for more scenes of the command hold.
func testMoving(t *testing.T, version stack.Version, all bool) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	ctx := t.Context()
	moves := s.few(t, s.source, drill.Platform{Namespace: "moves", Without: []string{"database"}}, 3)
	tenants := []*tenant{moves}
	var late, killed *tenant
	if all {
		late = s.few(t, s.source, drill.Platform{Namespace: "late", Without: []string{"database"}}, 2)
		killed = s.few(t, s.source, drill.Platform{Namespace: "killed", Without: []string{"database"}}, 2)
		tenants = append(tenants, late, killed)
	}
	s.settings(t, moves)
	for _, n := range tenants {
		s.remember(t, s.source, n)
	}
	must(t, moves.Backup(ctx, s.source, "before"))
	s.target = s.cluster(t, "target")
	must(t, moves.Compose(ctx, s.target))

	t.Run("WentOn", func(t *testing.T) { s.testWentOn(t, moves) })
	if all {
		t.Run("Late", func(t *testing.T) { s.testHoldLate(t, late) })
		t.Run("Killed", func(t *testing.T) { s.testHoldKilled(t, killed) })
	}
	t.Run("There", func(t *testing.T) { s.testMoved(t, moves, "there") })
	s.source, s.target = s.target, s.source
	t.Run("Back", func(t *testing.T) { s.testMoved(t, moves, "back") })
}

// hold holds a namespace of the source, and returns the sequence number of the cloud's journal.
func (s *suite) hold(t *testing.T, n *tenant) int64 {
	t.Helper()

	return s.holdAs(t, n, "")
}

// holdAs is hold as the user of a kubeconfig.
func (s *suite) holdAs(t *testing.T, n *tenant, kubeconfig string) int64 {
	t.Helper()
	got := commandAs(t, s.source, kubeconfig, "hold", "-n", n.Namespace, "--timeout", "2m")
	if got.code != 0 {
		t.Fatalf("hold exits with %d: %s\n%s", got.code, got.stderr, got.stdout)
	}

	return s.last(t)
}

// user returns the account of an example's role in the source.
func (s *suite) user(t *testing.T, n *tenant, role string) *account {
	t.Helper()
	for _, file := range []string{"validate", role} {
		must(t, s.source.ApplyObjects(t.Context(), n.example(t, "rbac/"+file+".yaml")...))
	}

	return accountIn(t, s.source, "velero", "velero-plugin-for-crossplane-"+role)
}

// all returns the claims, XRs and MRs of a tenant, by kind and name.
func (s *suite) all(t *testing.T, c *stack.Cluster, n *tenant) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, list := range []func(context.Context, *stack.Cluster) ([]unstructured.Unstructured, error){n.Instances, n.Composites, n.Managed} {
		objects, err := list(t.Context(), c)
		must(t, err)
		for _, u := range objects {
			all[u.GetKind()+"/"+u.GetName()] = &u
		}
	}

	return all
}

// held counts the objects with a mark in a namespace.
func (s *suite) held(t *testing.T, c *stack.Cluster, n *tenant) int {
	t.Helper()
	held := 0
	for _, u := range s.all(t, c, n) {
		if drill.Held(u) {
			held++
		}
	}

	return held
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

// testWentOn holds a namespace, changes it, and goes on in the same cluster.
func (s *suite) testWentOn(t *testing.T, n *tenant) {
	ctx := t.Context()
	if dry := command(t, s.source, "hold", "-n", n.Namespace, "--dry-run"); dry.code != 0 || s.held(t, s.source, n) != 0 {
		t.Errorf("a dry run exits with %d and holds %d objects: %s", dry.code, s.held(t, s.source, n), dry.stderr)
	}
	since := s.hold(t, n)
	all := len(s.all(t, s.source, n))
	wantHeld := func(after string) {
		t.Helper()
		if held := s.held(t, s.source, n); held != all {
			t.Errorf("%d of %d objects are held after %s", held, all, after)
		}
	}
	wantHeld("hold")
	s.change(t, n)
	s.hold(t, n)
	s.wantNoWrites(t, n, since, s.source)

	command(t, s.source, "release")
	wantHeld("a release that names nothing")
	by := s.user(t, n, "release")
	if got := commandAs(t, s.source, by.kubeconfig, "release", "-n", n.Namespace); got.code != 2 || !strings.Contains(got.stderr, "--yes") {
		t.Errorf("release does not ask: exit %d: %s\n%s", got.code, got.stderr, got.stdout)
	}
	wantHeld("a release that could not ask")
	s.wantNoChanges(t, n, since)
	if got := commandAs(t, s.source, by.kubeconfig, "release", "-n", n.Namespace, "--yes"); got.code != 0 || s.held(t, s.source, n) != 0 {
		t.Fatalf("release exits with %d, and %d are held: %s\n%s", got.code, s.held(t, s.source, n), got.stderr, got.stdout)
	}
	s.awaitCall(t, s.source, n, since, api.Update)
	must(t, n.AwaitReady(ctx, s.source, n.size))
	s.wantNoChanges(t, n, since)
	s.remember(t, s.source, n)
}

// testMoved moves a namespace from the source to the target, and checks both and the cloud.
func (s *suite) testMoved(t *testing.T, n *tenant, name string) {
	ctx := t.Context()
	s.hold(t, n)
	since := s.holdAs(t, n, s.user(t, n, "hold").kubeconfig)
	must(t, n.Backup(ctx, s.source, name))
	must(t, n.StartRestore(ctx, s.target, name, name))
	s.awaitCompleted(t, name)
	n.revised = true
	s.settle(t, n)
	s.takeOut(t, n)
	if left := s.all(t, s.source, n); len(left) > 0 {
		t.Errorf("these are left in the source: %v", slices.Sorted(maps.Keys(left)))
	}
	s.settle(t, n)
	s.wantNoWrites(t, n, since, s.source)
	s.wantNoChanges(t, n, since)
	s.wantSound(t, n)
}

// aboutHeld matches the commands of docs/moving.md about its lists of objects: of what is held and
// adopted, and of the MRs and XRs among these.
var aboutHeld = regexp.MustCompile(`\b(held|adopted|mrs|xrs)\b`)

// commandsAboutHeld returns these commands.
func commandsAboutHeld(t *testing.T) []string {
	t.Helper()
	root, err := build.Root()
	must(t, err)
	all, err := pages.All(root)
	must(t, err)
	var commands []string
	for _, page := range all {
		if page.Name != "docs/moving.md" {
			continue
		}
		for _, b := range page.Blocks {
			commands = append(commands, b.Commands...)
		}
	}
	commands = slices.DeleteFunc(commands, func(command string) bool { return !aboutHeld.MatchString(command) })
	if len(commands) == 0 {
		t.Fatal("docs/moving.md has no such commands")
	}

	return commands
}

// takeOut compares both clusters, and then takes out of the source what the target has adopted, with
// the commands of docs/moving.md.
func (s *suite) takeOut(t *testing.T, n *tenant) {
	t.Helper()
	set, err := build.Ensure(t.Context(), os.Stderr, append(stack.Programs(stack.Options{Crossplane: s.version, Plugin: true}), "kubectl")...)
	must(t, err)
	r := &reader{suite: &suite{}, programs: t.TempDir(), dir: t.TempDir()}
	r.install(t, set)
	for _, command := range commandsAboutHeld(t) {
		r.target = s.source
		if strings.HasSuffix(command, "> adopted") {
			r.target = s.target
		}
		want := 0
		if command == missingThere {
			want = 1 // It finds nothing.
		}
		out, code, err := r.shell(t.Context(), strings.ReplaceAll(command, "team-a", n.Namespace))
		must(t, err)
		if code != want {
			t.Fatalf("%s ended with %d:\n%s", command, code, out)
		}
	}
}

// testHoldLate holds a namespace, and again with a new instance. While no provider runs, the MRs of
// that can't be held: first its provider has to create their external resources.
func (s *suite) testHoldLate(t *testing.T, n *tenant) {
	ctx := t.Context()
	since := s.hold(t, n)
	each := len(s.managedOf(t, n, n.Name(0)))
	must(t, s.source.Kill(stack.CloudProvider))
	n.size++
	must(t, n.Make(ctx, s.source, n.size))
	name := n.Name(n.size - 1)
	s.eventually(t, "Crossplane to compose "+name, func(context.Context) error {
		if got := len(s.managedOf(t, n, name)); got < each {
			return fmt.Errorf("%d of %d MRs are there", got, each)
		}

		return nil
	})

	got := command(t, s.source, "hold", "-n", n.Namespace, "--timeout", "20s")
	if got.code == 0 {
		t.Errorf("hold says that all is quiet: %s\n%s", got.stderr, got.stdout)
	}
	for _, u := range s.managedOf(t, n, name) {
		wantMessage(t, "the output of hold", got.stdout+got.stderr, "AwaitingProvider", u.GetName())
		if drill.Held(u) {
			t.Errorf("%s %s is held, so its provider would not record the external resource", u.GetKind(), u.GetName())
		}
	}

	must(t, s.source.Start(ctx, stack.CloudProvider))
	s.hold(t, n)
	calls, err := s.calls(ctx, s.source, n, since, api.Create)
	must(t, err)
	if len(calls) != each {
		t.Errorf("%d external resources are created for %d MRs: %v", len(calls), each, calls)
	}
	for _, u := range s.managedOf(t, n, name) {
		if !drill.Held(u) || u.GetAnnotations()["crossplane.io/external-name"] == "" {
			t.Errorf("%s %s is not held with its external-name: %v", u.GetKind(), u.GetName(), u.GetAnnotations())
		}
	}
	if held, all := s.held(t, s.source, n), len(s.all(t, s.source, n)); held != all {
		t.Errorf("%d of %d objects are held", held, all)
	}
}

// managedOf returns the MRs of an instance in the source.
func (s *suite) managedOf(t *testing.T, n *tenant, instance string) []*unstructured.Unstructured {
	t.Helper()
	all, err := n.Managed(t.Context(), s.source)
	must(t, err)
	var mrs []*unstructured.Unstructured
	for i := range all {
		if strings.HasPrefix(all[i].GetLabels()["crossplane.io/composite"], instance) {
			mrs = append(mrs, &all[i])
		}
	}

	return mrs
}
