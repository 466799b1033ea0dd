package printer

import (
	"bytes"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// objectNames returns a line for each object in the trees, in the form that kubectl takes.
func objectNames(r *report.Report) []byte {
	var b bytes.Buffer
	seen := map[string]bool{}
	for n := range report.All(r.Trees...) {
		gk := n.GroupVersionKind().GroupKind()
		line := strings.ToLower(strings.TrimSuffix(gk.Kind+"."+gk.Group, ".")) + "/" + n.Name
		if key := n.Namespace + "/" + line; !seen[key] {
			seen[key] = true
			b.WriteString(line + "\n")
		}
	}

	return b.Bytes()
}
