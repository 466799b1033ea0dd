package live

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// HoldLive holds live objects, some at a time. It reads an object again that another writer has changed meanwhile.
func (a *Adopter) HoldLive(ctx context.Context, key adoption.Key, objects []*unstructured.Unstructured) error {
	errs := make([]error, len(objects))
	a.inParallel(len(objects), func(n int) {
		if errs[n] = ctx.Err(); errs[n] == nil {
			errs[n] = a.holdLive(ctx, key, objects[n])
		}
	})
	if n := slices.IndexFunc(errs, func(err error) bool { return err != nil }); n >= 0 {
		return errs[n]
	}

	return nil
}

func (a *Adopter) holdLive(ctx context.Context, key adoption.Key, u *unstructured.Unstructured) error {
	change, _ := key.HoldLive(u, a.cluster.serverNow())
	if change.Patch == nil {
		return nil
	}
	_, err := a.cluster.applyChange(ctx, change)
	switch {
	case apierrors.IsConflict(err), isUnserved(err):
		return nil // Another writer has changed or deleted it. The next look finds out.
	case err != nil:
		return fmt.Errorf("cannot hold %s: %w", xp.String(u), err)
	}
	a.onStepMu.Lock()
	defer a.onStepMu.Unlock()
	a.onStep(change)

	return nil
}
