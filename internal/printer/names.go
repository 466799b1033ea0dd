package printer

import (
	"bytes"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// objectNames returns a line for each object in the trees, or that is held or released, in the form
// that kubectl takes.
func objectNames(r *report.Report) []byte {
	var b bytes.Buffer
	seen := map[string]bool{}
	add := func(o xp.Ref) {
		gk := o.GroupVersionKind().GroupKind()
		line := strings.ToLower(strings.TrimSuffix(gk.Kind+"."+gk.Group, ".")) + "/" + o.Name
		if key := o.Namespace + "/" + line; !seen[key] {
			seen[key] = true
			b.WriteString(line + "\n")
		}
	}
	for n := range report.All(r.Trees...) {
		add(n.Ref)
	}
	for _, release := range r.Releases {
		add(release.Object)
	}

	return b.Bytes()
}
