package hold

import (
	"testing"


	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestLastWriter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		of     []xptest.Option
		want   string
	}{
		"Earlier": {reason: "A write before the backup does not count.", of: []xptest.Option{xptest.Managed("kubectl", "Update", saved)}, want: "its managedFields do not name that writer (kubectl get --show-managed-fields)"},
		"Last": {
			reason: "Only the last writer that is not a controller counts.", want: `the last to write it was "flux" (Apply, 2026-01-02T11:06:00Z)`,
			of: []xptest.Option{
				xptest.Managed("kubectl", "Update", laterAt), xptest.Managed("flux", "Apply", "2026-01-02T11:06:00Z"), xptest.Managed("edit", "Update", cameAt),
				xptest.Managed("crossplane", "Update", "2026-01-02T11:07:00Z"), xptest.Managed(FieldManager, "Update", "2026-01-02T11:08:00Z"), xptest.Managed("velero-server", "Update", "2026-01-02T11:08:00Z"),
			},
		},
		"Damaged": {
			reason: "Any user can write damaged managedFields.",
			of:     []xptest.Option{xptest.Field([]any{"x", map[string]any{"manager": int64(1), "time": true}}, "metadata", "managedFields")},
			want:   "its managedFields do not name that writer (kubectl get --show-managed-fields)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			xptest.Same(t, tc.want, LastWriterOf(xptest.XR("x", append([]xptest.Option{xptest.Created(cameAt)}, tc.of...)...)), tc.reason)
		})
	}
}
