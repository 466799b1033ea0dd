package restoreitem

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// returnStatus brings the status back that an earlier restore was to bring back and did not: Velero writes it after it has created the object, and only of what
// the same restore has created (velero pkg/restore/restore.go, restoreItem). If it was killed in between the object would stay held for good.
func (a *Adopt) returnStatus(i *item) error {
	var names []string
	if i.isHeld() {
		names = xp.NeededStatus(i.original)
	} else if h := i.holdOf(i.settings); h != nil {
		names = h.Status
	}
	if len(names) == 0 {
		return nil
	}
	exists, err := a.cluster.Exists(context.Background(), i.self())
	if err != nil {
		return fmt.Errorf("cannot find out whether its status must be brought back: %w", err)
	}
	if !exists {
		return nil
	}
	status := map[string]any{}
	for _, name := range names {
		if value, ok, _ := unstructured.NestedFieldCopy(i.original.Object, "status", name); ok {
			status[name] = value
		}
	}

	if err := a.cluster.ReturnStatus(context.Background(), i.self(), status); err != nil {
		return fmt.Errorf("cannot bring its status back: %w", err)
	}

	return nil
}
