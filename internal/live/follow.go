package live

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
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A listing is what was listed of a kind, and as of when.
type listing struct {
	collection

	options  metav1.ListOptions
	followed bool
}

// follow has the API server tell what becomes of what was listed, from then on. What is composed is
// told of if a Plan can depend on it, since there are ten timesText as many of that: an API server
// that has much to do takes seconds longer to tell all. If it can't be watched, or no longer, it
// stays as it was until the next poll, since a tenant can have named any kind; if anything else
// can't, all is listed again.
//
// It costs a request for each kind, where to list again would cost the transfer of everything. What
// is decided on is not less true for that. It began with a list that the API server vouches for,
// and is no older than a list of thousands when that has arrived; a step is refused if its object
// has changed; and of what an XR composes a list, too, only says what it was.
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

// unfollowed returns what was listed and is not followed yet, as far as the function says that it
// is to be.
func (o *observer) unfollowed(isDue func(l *listing) bool) []*listing {
	var due []*listing
	for _, l := range o.listings {
		if l.followed || !isDue(l) {
			continue
		}
		if l.options.LabelSelector != o.selector || !isListed(o.whole, l.GroupVersionKind, l.namespace) || l.GroupVersionKind == kindSecret {
			due = append(due, l)
		}
	}

	return due
}

// isAlwaysFollowed reports whether something depends on what was listed, whatever the plans are.
func (o *observer) isAlwaysFollowed(l *listing) bool {
	return o.vital[l.GroupVersionKind] || xp.IsCrossplaneGroup(l.Group)
}

// followEarly follows what takes long to list as of its first page, and reports whether it is to be
// followed: the API server keeps what happens for little more than a minute (kubernetes cacher,
// eventFreshDuration), and may have much to do.
func (o *observer) followEarly(ctx context.Context, l *listing) bool {
	o.adding.Lock()
	defer o.adding.Unlock()
	due := o.watches && l.GroupVersionKind != kindSecret && (o.isAlwaysFollowed(l) || o.snapshot.LooksAtComposed())
	if due {
		o.followAll(ctx, []*listing{l})
	}

	return due
}

// followAll has the API server tell what becomes of what was listed.
func (o *observer) followAll(ctx context.Context, due []*listing) {
	if len(due) == 0 {
		return
	}
	vital := map[*listing]bool{} // What is vital can change with what is looked at.
	for _, l := range due {
		l.followed, vital[l] = true, o.vital[l.GroupVersionKind]
	}
	if o.events.cancel == nil {
		// It goes on between the operations of a poll.
		ctx, o.events.cancel = context.WithCancel(context.WithoutCancel(ctx))
		o.following = ctx
	}
	// Who waits for the news need not wait for every kind to begin with them.
	go func(ctx context.Context) { //nolint:contextcheck // What is followed goes on after this call.
		tickets := make(chan struct{}, lists)
		for _, l := range due {
			tickets <- struct{}{}
			go func() {
				defer func() { <-tickets }()
				o.watch(ctx, l, vital[l])
			}()
		}
	}(o.following)
}

const (
	// uselessWatch is after which time a watch that has told nothing was of no use, and a list is
	// long.
	uselessWatch = time.Second
	// relistFactor is how often what is followed is listed again.
	relistFactor = 3
)

// watch begins to put what becomes of what was listed into the feed. Watches end: this client's
// after half a minute, and those that are read slowly when an API server has much to do. It goes on
// after the last that was told, or with a new list if the API server does not know any more what
// came then.
func (o *observer) watch(ctx context.Context, l *listing, vital bool) {
	options := l.options
	w, err := o.watcher(ctx, l.collection, options)
	go func() {
		for chances := relistFactor; ; {
			began, version := time.Now(), ""
			if err == nil {
				version, err = o.relay(w, l)
			}
			switch {
			case isExpired(err) && !vital && l.GroupVersionKind != kindSecret && chances > 0: // What lacks in a list of Secrets can be in another.
				chances--
				version, err = o.relist(ctx, l)
			case err == nil && version == "" && time.Since(began) <= uselessWatch:
				err = errEmptyWatch
			}
			if err != nil {
				break
			}
			options.ResourceVersion = cmp.Or(version, options.ResourceVersion)
			w, err = o.watcher(ctx, l.collection, options)
		}
		if vital {
			o.events.markIncomplete()
		}
	}()
}

// errEmptyWatch is the end of a watch that has told nothing.
var errEmptyWatch = errors.New("the watch has ended at once")

// isExpired reports whether the API server does not know any more what happened since what was
// asked for.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// relist puts what is now of what was listed into the feed, and returns as of when that is.
func (o *observer) relist(ctx context.Context, l *listing) (version string, err error) {
	options := l.options
	options.ResourceVersion = ""
	there := map[xp.ID]bool{}
	version, err = o.cluster.eachTrying(ctx, l.GroupVersionKind, l.namespace, options, o.cluster.withFewRetries, func(u *unstructured.Unstructured) {
		o.enqueue(watch.Modified, u, l)
		there[xp.RefTo(u).ID()] = true
	}, nil)
	if err == nil {
		o.events.relisted(l, there)
	}

	return version, err
}

// forgetAllBut forgets what a list had of what is not there any more. What has only lost the label
// that was asked for is found among all.
func (o *observer) forgetAllBut(l *listing, there map[xp.ID]bool) {
	if o.isCovered(l, l.namespace) {
		return
	}
	selector, err := labels.Parse(l.options.LabelSelector)
	if err != nil {
		return
	}
	for _, u := range o.snapshot.AllBut(l.GroupKind(), there) {
		if (l.namespace == "" || l.namespace == u.GetNamespace()) && selector.Matches(labels.Set(u.GetLabels())) {
			o.snapshot.Remove(u)
		}
	}
}

// relay puts what is told into the feed until there is no more. It returns as of when that was, ""
// if it told nothing, and an error if something is missing.
func (o *observer) relay(w watch.Interface, l *listing) (version string, err error) {
	defer w.Stop()
	for event := range w.ResultChan() {
		u, isObject := event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Error || !isObject {
			return "", apierrors.FromObject(event.Object) //nolint:wrapcheck // Nobody is told of it.
		}
		version = u.GetResourceVersion()
		o.enqueue(event.Type, u, l)
	}

	return version, nil
}

// enqueue puts what has become of an object into the feed.
func (o *observer) enqueue(event watch.EventType, u *unstructured.Unstructured, l *listing) {
	o.events.add(event, trim(ofKind(u, l.GroupVersionKind)), l)
}

func (o *observer) watcher(ctx context.Context, p collection, options metav1.ListOptions) (watch.Interface, error) {
	gvr, namespaced, err := o.cluster.Resource(p.GroupVersionKind)
	if err != nil {
		return nil, err
	}

	if !namespaced {
		p.namespace = ""
	}

	return o.cluster.client.Resource(gvr).Namespace(p.namespace).Watch(ctx, options) //nolint:wrapcheck // Nobody is told of it.
}

// unfollow ends what follow has begun.
func (o *observer) unfollow() {
	if o.events.cancel != nil {
		o.events.cancel()
	}
}

// catchUp takes over what was told since it was last called, and reports whether anything of that
// was not known; ok is false if it may not be all, so that everything has to be listed anew.
func (o *observer) catchUp() (changed, ok bool) {
	notices, there, ok := o.events.take()
	changed = len(there) > 0
	for l, ids := range there {
		o.forgetAllBut(l, ids)
	}
	for _, h := range notices {
		if o.isCovered(h.in, h.id.Namespace) || !o.isNewer(h) {
			continue
		}
		changed = true
		u := o.events.object(h)
		switch h.event { //nolint:exhaustive // Nobody has asked for bookmarks, and an error is no object.
		case watch.Added, watch.Modified:
			o.take(u)
		case watch.Deleted:
			// It is gone, or has lost the label that was asked for, and then it is found among all.
			// Secrets are listed by two properties, and can have the other.
			o.snapshot.Remove(u)
			ok = ok && h.in.GroupVersionKind != kindSecret
		}
	}

	return changed, ok
}

// isCurrent catches up, and reports whether all is known.
func (o *observer) isCurrent() bool {
	_, ok := o.catchUp()

	return ok
}

// isCovered reports whether all in a namespace was listed since that was which carries the
// restore's label. Then what happens to what has the label says nothing that the other does not say
// better: what has lost it is not gone, and Crossplane v1 gives an XR the labels of its claim.
func (o *observer) isCovered(l *listing, namespace string) bool {
	return l.options.LabelSelector == o.selector && o.selector != "" && isListed(o.whole, l.GroupVersionKind, namespace) && l.GroupVersionKind != kindSecret
}

// putWritten takes over how an object is after it was written, which several can be at a time.
func (o *observer) putWritten(u *unstructured.Unstructured) {
	o.adding.Lock()
	defer o.adding.Unlock()
	before := o.snapshot.Get(xp.RefTo(u))
	if before == nil || before.GetResourceVersion() == u.GetResourceVersion() {
		return
	}
	o.take(u)
	// It is yet to be told of, after all that had happened to it before.
	o.expected[xp.RefTo(u).ID()] = u.GetResourceVersion()
}

// take takes over how an object is that did not come with a list.
func (o *observer) take(u *unstructured.Unstructured) { o.put(trim(u)) }

// isNewer reports whether what is told of an object is newer than what is known.
func (o *observer) isNewer(h watchEvent) bool {
	version, expected := o.expected[h.id]
	if !expected {
		return true
	}
	if !slices.Contains(h.versions, version) {
		return false
	}
	delete(o.expected, h.id)

	return h.version() != version
}
