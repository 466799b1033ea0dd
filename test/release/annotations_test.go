package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// labelRE matches a label of a Dockerfile that Artifact Hub reads.
var labelRE = regexp.MustCompile(`(io\.artifacthub\.[\w.-]+)="([^"]*)"`)

// TestAnnotations checks that the index that the workflow pushes has the Dockerfile's labels for
// Artifact Hub as annotations. "make image" copies them, and an engine does not.
func TestAnnotations(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	asText := strings.NewReplacer("crossplane-contrib/velero-plugin-for-crossplane", "${{ github.repository }}", "$VERSION", "${{ github.ref_name }}")
	var want, got []string
	for _, l := range labelRE.FindAllStringSubmatch(string(dockerfile), -1) {
		want = append(want, l[1]+"="+asText.Replace(l[2]))
	}
	for _, step := range parse(t, string(file)).Jobs["image"].Steps {
		annotations, _ := step.With["annotations"].(string)
		for line := range strings.Lines(annotations) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "io.artifacthub.") {
				got = append(got, line)
			}
		}
	}
	if diff := cmp.Diff(want, got); len(want) == 0 || diff != "" {
		t.Errorf("%d labels; -Dockerfile, +workflow:\n%s", len(want), diff)
	}
}
