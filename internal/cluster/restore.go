package cluster

import (
	"cmp"
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// KindRestore is Velero's kind Restore.
var KindRestore = schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Restore"}

// RestoreNamed returns a Restore, nil if there is none.
func (c *Cluster) RestoreNamed(ctx context.Context, namespace, name string) (*report.Restore, error) {
	var found *report.Restore
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	err := c.Each(ctx, KindRestore, namespace, options, func(u *unstructured.Unstructured) {
		if u.GetName() == name {
			found = ptr.To(RestoreFrom(u))
		}
	})

	return found, IgnoreUnserved(err)
}

// RestoreFrom returns what reports have of a Velero Restore.
func RestoreFrom(u *unstructured.Unstructured) report.Restore {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(u.Object, path...)

		return value
	}
	at := func(field string) *time.Time {
		t, err := time.Parse(time.RFC3339, text("status", field))
		if err != nil {
			return nil
		}

		return &t
	}

	count := func(field string) int {
		n, _, _ := unstructured.NestedInt64(u.Object, "status", field)

		return int(n)
	}
	invalid, _, _ := unstructured.NestedStringSlice(u.Object, "status", "validationErrors")

	return report.Restore{
		Operations: count("restoreItemOperationsAttempted"), Errors: count("errors"), Warnings: count("warnings"),
		Failure: cmp.Or(text("status", "failureReason"), strings.Join(invalid, "; ")),
		Name:    u.GetNamespace() + "/" + u.GetName(), Phase: text("status", "phase"), Backup: text("spec", "backupName"),
		Started: at("startTimestamp"), Completed: at("completionTimestamp"),
	}
}
