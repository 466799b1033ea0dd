package adoption

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// chosenElsewhere says that somebody has had a held XR or claim follow another Composition, or another revision, than it did in the backup; "" if nobody has.
// While it is paused Crossplane changes neither. What they want comes about when the hold is lifted, as it would without a restore, and that can delete.
func chosenElsewhere(u *unstructured.Unstructured, h *Hold) string {
	if !xp.IsPaused(u) || h.Again {
		return ""
	}
	i := xp.Instance{Unstructured: u}
	var changes []string
	for _, c := range []struct{ field, before, now string }{
		{"compositionRef", h.Composition, i.Composition()}, {"compositionRevisionRef", h.Revision, i.Revision()},
	} {
		if c.before != "" && c.now != c.before {
			changes = append(changes, fmt.Sprintf("its %s from %s to %s", c.field, c.before, cmp.Or(c.now, "none")))
		}
	}
	if len(changes) == 0 {
		return ""
	}

	return fmt.Sprintf("%s follows something else than in the backup: somebody has changed %s while it was held; %s. When it is adopted Crossplane deletes what "+
		"that composes no longer, with its external resources. If it is not to, change it back", xp.String(u), strings.Join(changes, " and "), takenOff(u))
}
