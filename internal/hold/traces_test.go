package hold

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestLastWriter(t *testing.T) {
	xptest.Run(t, map[string]xptest.Row[[]xptest.Option, string]{
		"Earlier": {Reason: "A write before the backup does not count.", In: []xptest.Option{xptest.Managed("kubectl", "Update", saved)}, Want: "its managedFields do not name that writer (kubectl get --show-managed-fields)"},
		"Last": {
			Reason: "Only the last writer that is not a controller counts.", Want: `the last to write it was "flux" (Apply, 2026-01-02T11:06:00Z)`,
			In: []xptest.Option{
				xptest.Managed("kubectl", "Update", laterAt), xptest.Managed("flux", "Apply", "2026-01-02T11:06:00Z"), xptest.Managed("edit", "Update", cameAt),
				xptest.Managed("crossplane", "Update", "2026-01-02T11:07:00Z"), xptest.Managed(FieldManager, "Update", "2026-01-02T11:08:00Z"), xptest.Managed("velero-server", "Update", "2026-01-02T11:08:00Z"),
			},
		},
		"Damaged": {
			Reason: "Any user can write damaged managedFields.",
			In:     []xptest.Option{xptest.Field([]any{"x", map[string]any{"manager": int64(1), "time": true}}, "metadata", "managedFields")},
			Want:   "its managedFields do not name that writer (kubectl get --show-managed-fields)",
		},
	}, func(o []xptest.Option) string {
		return LastWriterOf(xptest.XR("x", append(o, xptest.Created(cameAt))...))
	})
}
