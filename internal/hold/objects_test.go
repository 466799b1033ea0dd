package hold

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	restoreName = "velero/monday"
	restoredAt  = "2026-01-02T03:04:05Z"
	// Times of the backup, the restore and another writer's change.
	saved   = "2026-01-01T09:00:00Z"
	cameAt  = "2026-01-02T11:00:00Z"
	laterAt = "2026-01-02T11:05:00Z"
)

// noon is when tests observe.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

var key = Key(strings.Repeat("k", KeySize))

// held returns u with a hold, then changed by the options.
func held(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	return heldFor(u, Hold{}, o...)
}

// heldFor is held with more in the hold.
func heldFor(u *unstructured.Unstructured, of Hold, o ...xptest.Option) *unstructured.Unstructured {
	u = u.DeepCopy()
	of.Restore, of.Since, of.Reported = restoreName, restoredAt, ReportedOf(u)
	xptest.Value(Put(u, of))

	return xptest.With(u, o...)
}

// markOf is the option that writes the mark of u on another object.
func markOf(u *unstructured.Unstructured) xptest.Option {
	return xptest.Annotated(Annotation, xp.Annotation(u, Annotation))
}
