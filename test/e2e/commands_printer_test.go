package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// watched is the namespace of the restore, and watchedSize the number of its XRs or claims.
const (
	watched     = "watched"
	watchedSize = 2
)

func (s *suite) makeWatched(t *testing.T) *tenant {
	t.Helper()
	n := s.few(t, s.source, drill.Platform{Namespace: watched}, watchedSize)
	s.backUp(t, s.source, n)

	return n
}

// testPrinter watches a restore as a script does, and then prints the result in every format.
func (s *suite) testPrinter(t *testing.T, n *tenant) {
	must(t, n.StartRestore(t.Context(), s.target, watched, watched))
	r := command(t, s.target, "wait", "--restore", watched, "--timeout", "5m", "-o", "table")
	if r.code != 0 || !strings.Contains(r.stdout, "No problems") || !strings.Contains(r.stdout, "Completed") {
		t.Fatalf("wait must end with success when the whole restore is well; code %d:\n%s\n%s", r.code, r.stdout, r.stderr)
	}
	if !strings.Contains(r.stderr, " claims and XRs adopted") || strings.Contains(r.stderr+r.stdout, "\x1b") {
		t.Errorf("A log has lines of how far it is, and no colours:\n%s\n%s", r.stderr, r.stdout)
	}
	s.wantSound(t, n)

	show := func(format string) string {
		r := command(t, s.target, "validate", "-n", watched, "--restore", watched, "-o", format)
		if r.code != 0 {
			t.Fatalf("validate -o %s: code %d: %s", format, r.code, r.stderr)
		}

		return r.stdout
	}
	var fromJSON, fromYAML map[string]any
	must(t, json.Unmarshal([]byte(show("json")), &fromJSON))
	must(t, yaml.Unmarshal([]byte(show("yaml")), &fromYAML))
	delete(fromJSON, "time")
	delete(fromYAML, "time")
	if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
		t.Errorf("YAML and JSON are one report: -JSON, +YAML:\n%s", diff)
	}
	trees, _ := fromJSON["trees"].([]any)
	if len(trees) != watchedSize {
		t.Errorf("want %d trees, got %v", watchedSize, trees)
	}

	table, wide, page := show("table"), show("wide"), show("html")
	for _, root := range trees {
		for _, name := range namesIn(root) {
			for format, text := range map[string]string{"table": table, "wide": wide, "html": page} {
				if !strings.Contains(text, name) {
					t.Errorf("%s does not show %s:\n%s", format, name, text)
				}
			}
		}
	}
	for _, want := range []string{"<!DOCTYPE html>", "default-src 'none'", "Timings", "Completed"} {
		if !strings.Contains(strings.ReplaceAll(page, "&#39;", "'"), want) {
			t.Errorf("the page has no %s:\n%s", want, page)
		}
	}
}

// namesIn returns the names of a node of a report and of those below it.
func namesIn(node any) []string {
	n, _ := node.(map[string]any)
	name, _ := n["name"].(string)
	names := []string{name}
	children, _ := n["children"].([]any)
	for _, child := range children {
		names = append(names, namesIn(child)...)
	}

	return names
}
