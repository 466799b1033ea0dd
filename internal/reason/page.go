package reason

import (
	"fmt"
	"strings"
)

// Table returns all reasons as a table in Markdown, which is in docs/problems.md.
func Table() string {
	var b strings.Builder
	b.WriteString("| code | reported by | meaning | why it happens | what to do |\n|---|---|---|---|---|\n")
	for _, r := range All() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Code, r.ReportedBy, cell(r.Meaning), cell(r.Cause), cell(r.Cure))
	}

	return b.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
