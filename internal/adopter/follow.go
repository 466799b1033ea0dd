package adopter

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A listing is what was listed of a kind, with the version of the list in its options.
type listing struct {
	cluster.Collection

	options  metav1.ListOptions
	followed bool
}

// follow watches what was listed, from the version of the list on. It watches composed resources
// only if a Plan depends on them: there are about ten times as many, and a busy API server takes
// seconds longer to send all events. In a poll of Velero, a kind of composed resources that can't
// be watched, or no longer, stays as listed until the next poll, since a tenant can name any kind.
// If the watch of any other kind fails, or a user waits, all is listed again.
//
// A watch costs one request per kind, while listing again transfers everything. Decisions are as
// safe: the first state is a consistent list, and the API server refuses a step if its object has
// changed.
func (o *observer) follow(ctx context.Context, plans map[xp.ID]adoption.Plan) {
	below := o.snapshot.LooksAtComposed()
	on := map[schema.GroupVersionKind]bool{}
	for _, p := range plans {
		for _, gvk := range p.On {
			on[gvk] = true
		}
	}
	o.followAll(ctx, o.unfollowed(func(l *listing) bool { return below || on[l.GroupVersionKind] || o.isAlwaysFollowed(l) }))
}

// unfollowed returns the listings that are not watched yet and for which isDue returns true.
func (o *observer) unfollowed(isDue func(l *listing) bool) []*listing {
	return slices.DeleteFunc(slices.Clone(o.listings), func(l *listing) bool { return l.followed || !isDue(l) || o.isCovered(l, l.Namespace) })
}

// isAlwaysFollowed reports whether a listing is watched whatever the plans are.
func (o *observer) isAlwaysFollowed(l *listing) bool {
	return o.vital[l.GroupVersionKind] || xp.IsCrossplaneGroup(l.Group)
}

// followEarly watches a list that takes long from its first page on, if the list is to be watched.
// The API server keeps events for little more than a minute (kubernetes cacher,
// eventFreshDuration).
func (o *observer) followEarly(ctx context.Context, l *listing, took time.Duration) {
	o.snapshotMu.Lock()
	defer o.snapshotMu.Unlock()
	if took > shortWatch && o.watches && l.GroupVersionKind != cluster.KindSecret && (o.isAlwaysFollowed(l) || o.snapshot.LooksAtComposed()) {
		o.followAll(ctx, []*listing{l})
	}
}

// followAll starts to watch the listings.
func (o *observer) followAll(ctx context.Context, due []*listing) {
	if len(due) == 0 {
		return
	}
	vital := make([]bool, len(due)) // The required kinds can change with the next listNeeded.
	for n, l := range due {
		l.followed, vital[n] = true, o.watchesAll || o.vital[l.GroupVersionKind]
	}
	if o.events.cancel == nil {
		// The watches go on between the operations of a poll.
		ctx, o.events.cancel = context.WithCancel(context.WithoutCancel(ctx))
		o.watchCtx = ctx
	}
	// The caller does not wait until all watches are started.
	go func(ctx context.Context) { //nolint:contextcheck // The watches go on after this call.
		inParallel(len(due), parallelSurveyLists, func(n int) { o.watch(ctx, due[n], vital[n]) })
	}(o.watchCtx)
}

const (
	// shortWatch is how long a watch without events must last to count as working, and a list must
	// take to count as long.
	shortWatch = time.Second
	// relistFactor is how often a watched listing is listed again.
	relistFactor = 3
)

// watch puts the events of a listing into the queue. Watches end: this client's after half a
// minute, and slow ones when an API server is busy. watch then continues after the last event, or
// lists again if the API server no longer has the events since then.
func (o *observer) watch(ctx context.Context, l *listing, vital bool) {
	options := l.options
	w, err := o.cluster.Watch(ctx, l.Collection, options)
	go func() {
		for chances := relistFactor; ; {
			began, version := time.Now(), ""
			if err == nil {
				version, err = o.relay(w, l)
			}
			switch {
			case isExpired(err) && !vital && l.GroupVersionKind != cluster.KindSecret && chances > 0: // An object missing from one list of Secrets can be in another.
				chances--
				version, err = o.relist(ctx, l)
			case err == nil && version == "" && time.Since(began) <= shortWatch:
				err = errEmptyWatch
			}
			if err != nil {
				break
			}
			options.ResourceVersion = cmp.Or(version, options.ResourceVersion)
			w, err = o.cluster.Watch(ctx, l.Collection, options)
		}
		if vital {
			o.events.markIncomplete()
		}
	}()
}

// errEmptyWatch is the end of a watch without events.
var errEmptyWatch = errors.New("the watch has ended at once")

// isExpired reports whether the API server no longer has the events since the requested version.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// relist lists again, puts the objects into the queue and returns the version of the list.
func (o *observer) relist(ctx context.Context, l *listing) (version string, err error) {
	options := l.options
	options.ResourceVersion = ""
	there := map[xp.ID]bool{}
	version, err = o.cluster.EachPaged(ctx, l.Collection, options, o.cluster.WithFewRetries, func(u *unstructured.Unstructured) {
		o.enqueue(watch.Modified, u, l)
		there[xp.RefTo(u).ID()] = true
	}, nil)
	if err == nil {
		o.events.relisted(l, there)
	}

	return version, err
}

// removeMissing removes from the Snapshot the objects of a listing that no longer exist. It skips a
// covered listing, whose objects may only have lost the label.
func (o *observer) removeMissing(l *listing, there map[xp.ID]bool) {
	if o.isCovered(l, l.Namespace) {
		return
	}
	selector, err := labels.Parse(l.options.LabelSelector)
	if err != nil {
		return
	}
	for _, u := range o.snapshot.All(l.GroupKind(), there) {
		if (l.Namespace == "" || l.Namespace == u.GetNamespace()) && selector.Matches(labels.Set(u.GetLabels())) {
			o.snapshot.Remove(u)
		}
	}
}

// relay puts the events of a watch into the queue until the watch ends. It returns the version of
// the last event, "" if there was none, and an error if events are missing.
func (o *observer) relay(w watch.Interface, l *listing) (version string, err error) {
	defer w.Stop()
	for event := range w.ResultChan() {
		u, isObject := event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Error || !isObject {
			return "", apierrors.FromObject(event.Object) //nolint:wrapcheck // The error is not returned to users.
		}
		version = u.GetResourceVersion()
		o.enqueue(event.Type, u, l)
	}

	return version, nil
}

// enqueue puts an object's change into the queue.
func (o *observer) enqueue(event watch.EventType, u *unstructured.Unstructured, l *listing) {
	o.events.add(event, cluster.Trim(u), l)
}

// unfollow ends all watches.
func (o *observer) unfollow() {
	if o.events.cancel != nil {
		o.events.cancel()
	}
}

// catchUp takes the events from the queue into the Snapshot, and reports whether any changed it. ok
// is false if events may be missing, so that all must be listed again.
func (o *observer) catchUp() (changed, ok bool) {
	events, there, ok := o.events.drain()
	changed = len(there) > 0
	for l, ids := range there {
		o.removeMissing(l, ids)
	}
	for at, h := range events {
		if o.isCovered(at.in, at.id.Namespace) || !o.isNewer(at.id, h) {
			continue
		}
		changed = true
		u := o.events.object(h)
		switch h.event { //nolint:exhaustive // Watches ask for no bookmarks, and relay filters errors.
		case watch.Added, watch.Modified:
			o.update(u)
		case watch.Deleted:
			// The object is deleted, or has lost the label; then another listing has it. Secrets
			// are listed by two properties, and another listing can have this one.
			o.snapshot.Remove(u)
			ok = ok && at.in.GroupVersionKind != cluster.KindSecret
		}
	}

	return changed, ok
}

// isCurrent catches up, and reports whether no events are missing.
func (o *observer) isCurrent() bool {
	_, ok := o.catchUp()

	return ok
}

// isCovered reports whether a listing has the restore's label and all objects of the namespace were
// listed later. Then its events add nothing and can be wrong: an object that has lost the label
// still exists, and Crossplane v1 copies the claim's labels to the XR.
func (o *observer) isCovered(l *listing, namespace string) bool {
	return l.options.LabelSelector == o.selector && o.selector != "" && l.GroupVersionKind != cluster.KindSecret &&
		isListed(o.whole, cluster.Collection{GroupVersionKind: l.GroupVersionKind, Namespace: namespace})
}

// putWritten updates the Snapshot with an object that was written. Writes run in parallel.
func (o *observer) putWritten(u *unstructured.Unstructured) {
	o.snapshotMu.Lock()
	defer o.snapshotMu.Unlock()
	before := o.snapshot.Get(xp.RefTo(u))
	if before == nil || before.GetResourceVersion() == u.GetResourceVersion() {
		return
	}
	o.update(u)
	// Its watch event is still to come, after the events of earlier versions.
	o.expected[xp.RefTo(u).ID()] = u.GetResourceVersion()
}

// update updates the Snapshot with an object that did not come from a list.
func (o *observer) update(u *unstructured.Unstructured) { o.put(cluster.Trim(u)) }

// isNewer reports whether an event is newer than what the Snapshot has of its object.
func (o *observer) isNewer(id xp.ID, h watchEvent) bool {
	version, expected := o.expected[id]
	if !expected {
		return true
	}
	if !slices.Contains(h.versions, version) {
		return false
	}
	delete(o.expected, id)

	return h.versions[len(h.versions)-1] != version
}
