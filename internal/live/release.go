package live

import (
	"cmp"
	"context"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Schedules returns the CronOperations and WatchOperations, which Crossplane has from v2.0 on.
func (c *Cluster) Schedules(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, gk := range xp.ScheduleKinds() {
		gvk, ok, err := c.Served(gk)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		found, err := c.List(ctx, gvk, "", metav1.ListOptions{})
		if err != nil && !isUnserved(err) {
			return nil, err
		}
		all = append(all, found...)
	}

	return all, nil
}

// Read returns the existing objects of refs. It lists each kind once, in the namespace or in all if
// that is "", and reads objects of other namespaces one by one.
func (c *Cluster) Read(ctx context.Context, refs []xp.Ref, namespace string) (map[xp.ID]*unstructured.Unstructured, error) {
	objects, read := map[xp.ID]*unstructured.Unstructured{}, map[schema.GroupVersionKind]bool{}
	meant := xp.IDs(refs)
	for _, r := range refs {
		if namespace != "" && r.Namespace != "" && r.Namespace != namespace {
			u, err := c.Now(ctx, r)
			if err == nil {
				objects[r.ID()] = u
			} else if !isUnserved(err) {
				return nil, err
			}

			continue
		}
		gvk := r.GroupVersionKind()
		if read[gvk] {
			continue
		}
		read[gvk] = true
		err := c.Each(ctx, gvk, namespace, metav1.ListOptions{}, func(u *unstructured.Unstructured) {
			if id := xp.RefTo(u).ID(); meant[id] {
				objects[id] = u
			}
		})
		if err != nil && !isUnserved(err) {
			return nil, err
		}
	}

	return objects, nil
}

// ConsentAll records that a user wants objects adopted that are held until then. It ignores other
// objects. After an error it asks for no more of them, and returns it.
func (a *Adopter) ConsentAll(ctx context.Context, key adoption.Key, objects []*unstructured.Unstructured) error {
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
func (a *Adopter) Consent(ctx context.Context, key adoption.Key, u *unstructured.Unstructured) error {
	_, err := a.change(ctx, u, key.Consent)
	if isUnserved(err) {
		return nil // It is gone; the caller's next request finds that out.
	}
	if err != nil {
		return err
	}
	if h, err := key.HoldOf(u); err == nil && h != nil {
		step, _ := h.AwaitsConsent()
		a.noteStep(adoption.Change{Target: u, Step: step})
	}

	return nil
}

// AssessForce returns the risks of releasing what refs name by force. It changes nothing.
func (a *Adopter) AssessForce(ctx context.Context, key adoption.Key, selector string, refs []xp.Ref) (map[xp.ID]adoption.ForceAssessment, error) {
	snapshot, err := a.cluster.Observe(ctx, key, selector, refs)
	if err != nil {
		return nil, err
	}
	err = a.cluster.Each(ctx, xp.KindRevision, "", metav1.ListOptions{}, snapshot.Add)
	if err != nil && !isUnserved(err) {
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
	if after, err = a.finish(ctx, after); err != nil {
		return err
	}
	a.onStep(f.Change)
	why := f.Step
	if len(f.Risks) > 0 {
		why += "; " + reason.Join(f.Risks)
	}
	if n, ok := releaseNotice(after, why); ok && reportsRelease(f.Target) {
		a.recordEvent(ctx, n)
	}

	return nil
}

// finish removes the mark of an object that has its own settings back, and returns the new object.
func (a *Adopter) finish(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		change, left := adoption.Finish(u)
		if !left {
			return nil
		}
		after, err := a.cluster.ApplyChange(ctx, change)
		if err == nil {
			u = after

			return nil
		}
		if apierrors.IsConflict(err) {
			// Its controller has written it. Read it again, so that nothing of that is undone.
			now, readErr := a.cluster.Now(ctx, xp.RefTo(u))
			if readErr != nil {
				return readErr
			}
			u = now
		}

		return err
	})

	return u, err
}
