package adopter

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// HoldLive holds live objects, some at a time. It reads an object again that another writer has
// changed meanwhile.
func (a *Adopter) HoldLive(ctx context.Context, key hold.Key, objects []*unstructured.Unstructured) error {
	errs := make([]error, len(objects))
	a.inParallel(len(objects), func(n int) {
		change, _ := key.HoldLive(objects[n], a.cluster.ServerNow())
		if errs[n] = ctx.Err(); errs[n] != nil || change.Patch == nil {
			return
		}
		_, err := a.cluster.Apply(ctx, change)
		switch {
		case err == nil:
			a.noteStep(change)
		case apierrors.IsConflict(err), cluster.IsUnserved(err): // Another writer has changed or deleted it. The next look finds out.
		default:
			errs[n] = fmt.Errorf("cannot hold %s: %w", xp.String(objects[n]), err)
		}
	})

	return cmp.Or(errs...) //nolint:wrapcheck // It is wrapped above.
}

// ConsentAll records that a user wants objects adopted that are held until then. It ignores other
// objects. After an error it asks for no more of them, and returns it.
func (a *Adopter) ConsentAll(ctx context.Context, key hold.Key, objects []*unstructured.Unstructured) error {
	var failed atomic.Bool
	errs := make([]error, len(objects))
	a.inParallel(len(objects), func(n int) {
		if !failed.Load() {
			errs[n] = a.Consent(ctx, key, objects[n])
			failed.CompareAndSwap(false, errs[n] != nil)
		}
	})

	return cmp.Or(errs...) //nolint:wrapcheck // It is an error of Consent.
}

// Consent records that a user wants an object adopted that is held until then. It ignores other
// objects.
func (a *Adopter) Consent(ctx context.Context, key hold.Key, u *unstructured.Unstructured) error {
	_, err := a.cluster.PatchSeen(ctx, u, key.Consent)
	if cluster.IsUnserved(err) {
		return nil // It is gone; the caller's next request finds that out.
	}
	if err != nil {
		return err
	}
	if h, err := key.HoldOf(u); err == nil && h != nil {
		step, _ := h.AwaitsConsent()
		a.noteStep(hold.Change{Target: u, Step: step})
	}

	return nil
}

// AssessForce returns the risks of releasing what refs name by force. It changes nothing.
func (a *Adopter) AssessForce(ctx context.Context, key hold.Key, selector string, refs []xp.Ref) (map[xp.ID]adoption.ForceAssessment, error) {
	snapshot, err := snapshotOf(ctx, a.cluster, key, selector, refs)
	if err != nil {
		return nil, err
	}
	if err := cluster.IgnoreUnserved(a.cluster.Each(ctx, xp.KindRevision, "", metav1.ListOptions{}, snapshot.Add)); err != nil {
		return nil, err
	}
	forcings := map[xp.ID]adoption.ForceAssessment{}
	for _, r := range refs {
		forcings[r.ID()] = adoption.AssessForce(snapshot, r)
	}

	return forcings, nil
}

// Force releases an object as f describes. It fails if the object has changed since f was made.
func (a *Adopter) Force(ctx context.Context, f adoption.ForceAssessment) error {
	after, err := a.cluster.ApplyChange(ctx, f.Change)
	if err != nil {
		return err
	}
	// The mark of an object that has its own settings back is removed.
	after, err = a.cluster.ChangeSeen(ctx, after, func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		change, left := hold.Finish(u)
		if !left {
			return u, nil
		}

		return a.cluster.ApplyChange(ctx, change)
	})
	if err != nil {
		return err
	}
	a.onStep(f.Change)
	why := f.Step
	if len(f.Risks) > 0 {
		why += "; " + reason.Join(f.Risks)
	}
	if n, ok := releaseNotice(after, why); ok && reportsRelease(f.Target) {
		a.record(ctx, n)
	}

	return nil
}
