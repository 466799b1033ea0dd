package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// testInspect inspects the backups of makeInspected, before and after a restore of the good one.
func (s *suite) testInspect(t *testing.T, well *tenant) {
	good, bad := s.download(t, gallery), s.download(t, shop)
	if *update {
		s.writeExample(t, bad)
	}
	s.wantGolden(t, "inspect", "inspect", bad)
	t.Run("Codes", func(t *testing.T) { s.testCodes(t, bad) })
	t.Run("AgainstEmpty", func(t *testing.T) { s.testAgainstEmpty(t, good, bad) })
	planned := s.planned(t, good)
	must(t, well.StartRestore(t.Context(), s.target, gallery, gallery))
	s.awaitCompleted(t, gallery)
	t.Run("AsPlanned", func(t *testing.T) { s.testAsPlanned(t, planned) })
	t.Run("AgainstFull", func(t *testing.T) { s.testAgainstFull(t, good) })
	t.Run("AsRestored", func(t *testing.T) { s.wantSound(t, well) })
}

// download returns the path of a backup's file.
func (s *suite) download(t *testing.T, backup string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), backup+".tar.gz")
	_, err := s.target.Velero(t.Context(), "backup", "download", backup, "-o", file)
	must(t, err)

	return file
}

// writeExample stores a backup for readers of the docs who have none.
func (s *suite) writeExample(t *testing.T, file string) {
	t.Helper()
	root, err := build.Root()
	must(t, err)
	b, err := os.ReadFile(file)
	must(t, err)
	dir := filepath.Join(root, "example", "backup")
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, shop+"-"+drill.Platform{Crossplane: s.version}.Dir()+".tar.gz"), b, 0o644))
}

// A finding is an object in the JSON report, as programs decode it.
type finding struct {
	Code, Severity, Reason, Next string
	Object                       object
}

type object struct{ Kind, Namespace, Name string }

type node struct {
	object

	Restore  *struct{ Action, Reason string }
	Children []node
}

type inspection struct {
	Problems []finding
	Trees    []node
	Against  *struct {
		Counts map[string]int
		Items  []struct {
			Item    object
			Outcome struct{ Action, Reason string }
		}
	}
}

// inspected returns the report on a backup.
func (s *suite) inspected(t *testing.T, code int, args ...string) inspection {
	t.Helper()
	r := command(t, s.target, append([]string{"inspect", "-o", "json"}, args...)...)
	if r.code != code {
		t.Errorf("inspect %s ended with %d, not %d: %s", args, r.code, code, r.stderr)
	}
	var i inspection
	must(t, json.Unmarshal([]byte(r.stdout), &i)) //nolint:musttag // The decoder ignores case, so the names are those of the report.

	return i
}

// testCodes checks that each hazard is found where it is, and none elsewhere.
func (s *suite) testCodes(t *testing.T, file string) {
	got := map[string][]string{}
	for _, p := range s.inspected(t, 3, file).Problems {
		instance, _, _ := strings.Cut(p.Object.Name, "-")
		got[instance] = append(got[instance], p.Code)
		if p.Next == "" || p.Reason == "" {
			t.Errorf("%+v has no reason or no next step", p)
		}
	}
	for instance := range got {
		got[instance] = slices.Compact(ordered(got[instance]))
	}
	want := map[string][]string{
		unborn: {"CreatePending"}, nameless: {"IdentityMissing"}, dangling: {"Dangling"}, used: {"UsageLeftBehind"}, healthy: {"ControlledByAnother"}, pruned: {"RevisionMissing"},
	}
	if s.version == stack.V1 {
		delete(want, healthy)
		delete(want, used) // Usages are cluster-scoped, and nothing in the namespace refers to one that its XR does not list.
		want["intruder"] = []string{"OneSided", "SecretMissing"}
		want[unborn] = []string{"CreatePending", "SecretMissing"}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the codes by instance: -want, +got:\n%s", diff)
	}
}

// testAgainstEmpty runs dry runs against a cluster that has no object of the backup.
func (s *suite) testAgainstEmpty(t *testing.T, good, bad string) {
	before := len(asked(t, s.target, 0))
	i := s.inspected(t, 0, good, "--against")
	for _, n := range flat(i.Trees) {
		want := "create"
		if strings.HasSuffix(n.Kind, "Environment") || n.Kind == "Database" {
			want = "hold" // Databases publish connection details.
		}
		if n.Restore == nil || n.Restore.Action != want {
			t.Errorf("%s %s is to be %v, not %s", n.Kind, n.Name, n.Restore, want)
		}
	}
	s.wantGolden(t, "against", "inspect", bad, "--against")
	actions := map[string]string{}
	for _, n := range s.inspected(t, 3, bad, "--against").Against.Items {
		instance, _, _ := strings.Cut(n.Item.Name, "-")
		actions[instance+" "+n.Item.Kind] = n.Outcome.Action
	}
	for item, want := range map[string]string{unborn + " Database": "hold", nameless + " Network": "hold", used + " Usage": "refuse"} {
		if actions[item] != want && (s.version != stack.V1 || item != used+" Usage") {
			t.Errorf("%s is to be %q, not %s; all are %v", item, actions[item], want, actions)
		}
	}
	wantOnlyRead(t, s.target, "a rehearsal", before)
}

// planned returns what the Restore of the good backup would do with the objects of trees.
func (s *suite) planned(t *testing.T, good string) map[string]string {
	t.Helper()
	manifest, err := s.target.Velero(t.Context(), "restore", "create", gallery, "--from-backup", gallery, "--include-namespaces", gallery, "-o", "yaml")
	must(t, err)
	file := filepath.Join(t.TempDir(), "restore.yaml")
	must(t, os.WriteFile(file, []byte(manifest), 0o600))
	actions := map[string]string{}
	for _, n := range flat(s.inspected(t, 0, good, "--against", "--restore", file).Trees) {
		if n.Restore != nil {
			actions[n.Kind+" "+n.Namespace+"/"+n.Name] = n.Restore.Action
		}
	}

	return actions
}

// testAsPlanned checks that the Restore has created what it was to create, and nothing else of the
// kinds in trees.
func (s *suite) testAsPlanned(t *testing.T, planned map[string]string) {
	created, kinds := map[string]bool{}, map[string]bool{}
	for object := range planned {
		kind, _, _ := strings.Cut(object, " ")
		kinds[kind] = true
	}
	for _, object := range s.written(t)[gallery] {
		if kind, _, _ := strings.Cut(object, " "); kinds[kind] {
			created[object] = true
		}
	}
	for object, action := range planned {
		if created[object] != (action == "create" || action == "hold") {
			t.Errorf("%s was to be %s; created: %v", object, action, created[object])
		}
		delete(created, object)
	}
	if len(created) > 0 || len(planned) == 0 {
		t.Errorf("of %d planned objects these were not planned, and are there: %v", len(planned), created)
	}
}

// testAgainstFull runs dry runs against a cluster that has all objects of the backup.
func (s *suite) testAgainstFull(t *testing.T, good string) {
	before := len(asked(t, s.target, 0))
	for _, n := range flat(s.inspected(t, 0, good, "--against").Trees) {
		if n.Restore == nil || n.Restore.Action != "exists" {
			t.Errorf("%s %s is to be %v, and it exists", n.Kind, n.Name, n.Restore)
		}
	}
	copies := 0
	for _, n := range flat(s.inspected(t, 0, good, "--against", "--namespace-mappings", gallery+":copy").Trees) {
		if n.Kind == "Environment" && n.Restore != nil && n.Restore.Action == "clone" {
			copies++
		}
	}
	if copies != 2 {
		t.Errorf("%d of the instances are to be copies of those that are alive", copies)
	}
	wantOnlyRead(t, s.target, "a rehearsal", before)
}

func flat(nodes []node) []node {
	var all []node
	for _, n := range nodes {
		all = append(append(all, n), flat(n.Children)...)
	}

	return all
}
