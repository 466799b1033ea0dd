package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Crossplane has pauseTimeout to acknowledge a pause, which is checked each pauseInterval. For
// objects of a kind that it does not acknowledge, a restore waits silenceLimit in all, and then
// checks each once: with a thousand objects it would take hours while Crossplane is not running.
// Crossplane has a controller for each kind, so one kind proves nothing about others.
const (
	pauseTimeout  = 10 * time.Second
	pauseInterval = 200 * time.Millisecond
	silenceLimit  = 30 * time.Second
)

// TakeOver gives the live XR or claim that r names the composed resources of the backup's item, and
// holds it, if adoption.CanTakeOver. The labels are those that Velero writes on what it creates. It
// returns the new object as Owner does. It returns nil, and undoes its change, if the object can't
// be taken over, or if Crossplane was composing other resources for it at that moment.
func (c *Cluster) TakeOver(
	ctx context.Context, key adoption.Key, item *unstructured.Unstructured, r xp.Ref, of adoption.Hold, labels map[string]string,
) (*unstructured.Unstructured, error) {
	var after *unstructured.Unstructured
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u, err := c.Get(ctx, r)
		if isUnserved(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if being, _ := key.IsBeingTakenOver(u, item); being {
			after = u

			return nil
		}
		if !adoption.CanTakeOver(u) {
			return nil
		}
		change, err := key.TakeOver(u, item, of, labels)
		if err != nil {
			return err
		}
		after, err = c.applyChange(ctx, change)

		return err
	})
	if err != nil || after == nil {
		return nil, err
	}
	after, err = c.awaitPause(ctx, after, r)
	if err != nil {
		return nil, err
	}
	if after == nil {
		return nil, nil //nolint:nilnil // The object is gone.
	}
	switch being, whole := key.IsBeingTakenOver(after, item); {
	case being && whole:
		if err := c.returnInherited(ctx, after, item, r); err != nil {
			return nil, err
		}

		return after, c.keepOwner(after, r)
	case being:
		return nil, c.undoTakeOver(ctx, key, after)
	default:
		return nil, nil //nolint:nilnil // Another writer has removed the hold.
	}
}

// returnInherited gives the fields taken from the backup to the field managers that they had there.
func (c *Cluster) returnInherited(ctx context.Context, u, item *unstructured.Unstructured, r xp.Ref) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p, ok := adoption.ReturnInherited(u, item)
		if !ok {
			return nil
		}
		_, err := c.Patch(ctx, u, p)
		if apierrors.IsConflict(err) {
			now, err := c.Get(ctx, r)
			if isUnserved(err) {
				return nil
			}
			if err != nil {
				return err
			}
			u = now
		}

		return err
	})
}

var errSilent = errors.New("Crossplane has not acknowledged the pause") //nolint:staticcheck // It is a name.

// awaitPause waits until Crossplane has acknowledged an XR's pause. Crossplane may have been
// reconciling the earlier version, and it writes resourceRefs with force. If it does not answer it
// is probably not running; if it changes the XR nevertheless, the polls find that.
func (c *Cluster) awaitPause(ctx context.Context, u *unstructured.Unstructured, r xp.Ref) (*unstructured.Unstructured, error) {
	kind := r.GroupVersionKind().GroupKind()
	c.mu.Lock()
	timeout := min(pauseTimeout, silenceLimit-c.silence[kind])
	c.mu.Unlock()
	began, looks := time.Now(), 0
	err := wait.PollUntilContextCancel(ctx, pauseInterval, false, func(context.Context) (bool, error) {
		if looks > 0 && time.Since(began) >= timeout {
			return false, errSilent
		}
		looks++
		now, err := c.Get(ctx, r)
		if isUnserved(err) {
			u = nil

			return true, nil
		}
		if err != nil {
			return false, err
		}
		u = now

		return adoption.IsSeenPaused(u) || !xp.IsPaused(u), nil
	})
	if errors.Is(err, errSilent) {
		c.mu.Lock()
		c.silence[kind] += time.Since(began)
		c.mu.Unlock()

		return u, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot wait until Crossplane has seen that %s is paused: %w", r, err)
	}

	return u, nil
}

// undoTakeOver removes the hold of an object that was not taken over.
func (c *Cluster) undoTakeOver(ctx context.Context, key adoption.Key, u *unstructured.Unstructured) error {
	change := key.GiveUp(u)
	if change.Patch == nil {
		return nil
	}
	_, err := c.ApplyChange(ctx, change)

	return err
}
