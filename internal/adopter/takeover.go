package adopter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
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

// A Target is the cluster that a restore writes to.
type Target struct {
	*cluster.Cluster

	mu sync.Mutex
	// silence is for how long TakeOver has waited in vain, by kind.
	silence map[schema.GroupKind]time.Duration
}

// NewTarget returns the Cluster as a Target, for all actions of a process.
func NewTarget(c *cluster.Cluster) *Target {
	return &Target{Cluster: c, silence: map[schema.GroupKind]time.Duration{}}
}

// TakeOver gives the live XR or claim that r names the composed resources of the backup's item, and
// holds it, if hold.CanTakeOver. The labels are those that Velero writes on what it creates. It
// returns the new object as Owner does. It returns nil, and undoes its change, if the object can't
// be taken over, or if Crossplane was composing other resources for it at that moment.
func (t *Target) TakeOver(
	ctx context.Context, key hold.Key, item *unstructured.Unstructured, r xp.Ref, of hold.Hold, labels map[string]string,
) (*unstructured.Unstructured, error) {
	var after *unstructured.Unstructured
	err := t.ChangeNow(ctx, r, func(u *unstructured.Unstructured) error {
		if being, _ := key.IsBeingTakenOver(u, item); being {
			after = u

			return nil
		}
		if !hold.CanTakeOver(u) {
			return nil
		}
		change, err := key.TakeOver(u, item, of, labels)
		if err != nil {
			return err
		}
		after, err = t.Apply(ctx, change)

		return err
	})
	if err == nil && after != nil {
		after, err = t.awaitPause(ctx, after, r)
	}
	if err != nil || after == nil {
		return nil, err
	}
	switch being, whole := key.IsBeingTakenOver(after, item); {
	case being && whole:
		// The fields taken from the backup get the field managers that they had there.
		_, err := t.PatchSeen(ctx, after, func(u *unstructured.Unstructured) (map[string]any, bool) { return hold.ReturnInherited(u, item) })
		if cluster.IgnoreUnserved(err) != nil {
			return nil, err
		}

		return after, t.KeepOwner(after, r)
	case being: // It is not taken over, so its hold is removed.
		if change := key.GiveUp(after); change.Patch != nil {
			_, err = t.ApplyChange(ctx, change)
		}

		return nil, err
	default:
		return nil, nil //nolint:nilnil // Another writer has removed the hold.
	}
}

var errSilent = errors.New("Crossplane has not acknowledged the pause") //nolint:staticcheck // It is a name.

// awaitPause waits until Crossplane has acknowledged an XR's pause. Crossplane may have been
// reconciling the earlier version, and it writes resourceRefs with force. If it does not answer it
// is probably not running; if it changes the XR nevertheless, the polls find that.
func (t *Target) awaitPause(ctx context.Context, u *unstructured.Unstructured, r xp.Ref) (*unstructured.Unstructured, error) {
	kind := r.GroupVersionKind().GroupKind()
	t.mu.Lock()
	timeout := min(pauseTimeout, silenceLimit-t.silence[kind])
	t.mu.Unlock()
	began, looks := time.Now(), 0
	err := wait.PollUntilContextCancel(ctx, pauseInterval, false, func(context.Context) (bool, error) {
		if looks > 0 && time.Since(began) >= timeout {
			return false, errSilent
		}
		looks++
		now, err := t.Get(ctx, r)
		if cluster.IgnoreUnserved(err) != nil {
			return false, err
		}
		u = now // nil if it is gone.

		return u == nil || hold.IsSeenPaused(u) || !xp.IsPaused(u), nil
	})
	if errors.Is(err, errSilent) {
		t.mu.Lock()
		t.silence[kind] += time.Since(began)
		t.mu.Unlock()

		return u, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot wait until Crossplane has seen that %s is paused: %w", r, err)
	}

	return u, nil
}

// ReturnStatus writes the status fields that the object named by r is held for and lacks. It does
// nothing to an object that does not exist, has no mark signed with the key, or was released.
func (t *Target) ReturnStatus(ctx context.Context, key hold.Key, r xp.Ref, status map[string]any) error {
	return t.ChangeNow(ctx, r, func(u *unstructured.Unstructured) error {
		h, err := key.HoldOf(u)
		if err != nil || h == nil || h.Clone != "" || h.Unpaused != "" || !xp.IsPaused(u) {
			return nil //nolint:nilerr // The operation reports a mark that can't be read.
		}
		fields := xp.LackingStatus(u, h.Status, status)
		if len(fields) == 0 {
			return nil
		}
		after, err := t.PatchStatus(ctx, u, fields)
		if err != nil {
			return err
		}
		if p, ok := hold.ReturnedStatus(u, after, fields); ok {
			_, err = t.Patch(ctx, after, p)
		}

		return err
	})
}

// ReturnManagers writes back the managedFields of an object that a restore has created, if the
// restore stopped before it did. item is what Velero would create now, and r is its reference. It
// lists what restores have created of the kind once, and reads only objects that need it.
func (t *Target) ReturnManagers(ctx context.Context, item *unstructured.Unstructured, r xp.Ref) error {
	stray, err := t.IsStray(ctx, r)
	if err != nil || !stray {
		return err
	}

	return t.ChangeNow(ctx, r, func(u *unstructured.Unstructured) error {
		p, ok := hold.ReturnManagers(u, item)
		if !ok {
			return nil
		}
		_, err := t.Patch(ctx, u, p)

		return err
	})
}
