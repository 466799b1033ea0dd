package report

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCodesAreDescribed(t *testing.T) {
	b, err := os.ReadFile("../../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	var described []Code
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(string(b), -1) {
		described = append(described, Code(row[1]))
	}
	if diff := cmp.Diff(Codes(), described); diff != "" {
		t.Errorf("docs/problems.md must describe each code once, in the order of the reports: -codes, +described:\n%s", diff)
	}
}
