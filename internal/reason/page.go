package reason

import (
	"fmt"
	"strings"
)

// Table returns the reasons of a group as a table in Markdown, which is in the documentation.
func Table(group Group) string {
	var b strings.Builder
	if group == Report {
		b.WriteString("| code | reported by | meaning | why it happens | what to do |\n|---|---|---|---|---|\n")
	} else {
		b.WriteString("| code | meaning | why it happens | what to do |\n|---|---|---|---|\n")
	}
	for _, r := range All() {
		if r.Group != group {
			continue
		}
		reportedBy := ""
		if group == Report {
			reportedBy = " " + r.ReportedBy + " |"
		}
		fmt.Fprintf(&b, "| <a id=\"%s\"></a>`%s` |%s %s | %s | %s |\n", r.Code, r.Code, reportedBy, cell(r.Meaning), cell(r.Cause), cell(r.Cure))
	}

	return b.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// documentation is where users read the documentation.
const documentation = "https://github.com/crossplane-contrib/velero-plugin-for-crossplane/blob/main/docs/"

// URL returns the address of the reason in the documentation.
func (r Reason) URL() string {
	page := "messages.md"
	if r.Group == Report {
		page = "problems.md"
	}

	return documentation + page + "#" + string(r.Code)
}
