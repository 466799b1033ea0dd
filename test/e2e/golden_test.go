package e2e

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

var update = flag.Bool("update", false, "write what the commands print to testdata/golden, and the backups of the example")

// random are values that Crossplane, Velero, the API server and the clock generate: name suffixes,
// UIDs, times. The replacement has the same length, so that columns stay aligned.
var random = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(-)[0-9a-f]{12}\b`), "${1}0123456789ab"},
	{regexp.MustCompile(`\b((?:` + strings.Join([]string{healthy, unborn, nameless, dangling, used, forged, pruned, `\w+-\d\d`}, "|") + `)-)[a-z0-9]{5}\b`), "${1}abcde"},
	{regexp.MustCompile(`\b(\w+(?:-\d\d)?-abcde-)[a-z0-9]{5}\b`), "${1}fghij"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-z]{12}\b`), "01234567-89ab-cdef-0123-456789abcdef"},
	{regexp.MustCompile(`\b(environments-\w+-)[0-9a-f]{7}\b`), "${1}0123456"},
	{regexp.MustCompile(`\b\d+ skip\b`), "N skip"}, // Most are Events.
	{regexp.MustCompile(`(Velero does not restore its kind; there are )\d+`), "${1}N"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "2026-01-02T03:04:05Z"},
	{regexp.MustCompile(`\b(?:\d+h)?(?:\d+m)?\d+s ago\b`), "2m5s ago"},
	{regexp.MustCompile(`\bfor (?:\d+m)?\d+s\b`), "for 2s"},
}

// wantGolden compares what a command prints with a reviewed file. On v1 it is the same, about other
// objects.
func (s *suite) wantGolden(t *testing.T, name string, args ...string) {
	t.Helper()
	r := command(t, s.target, args...)
	if r.code != 3 {
		t.Errorf("%v ended with %d: %s", args, r.code, r.stderr)
	}
	if s.version == stack.V1 {
		return
	}
	got := r.stdout
	for _, r := range random {
		got = r.pattern.ReplaceAllString(got, r.with)
	}
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want, +got:\n%s", file, diff)
	}
}
