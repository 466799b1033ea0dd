package live

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const pageSize = 250

// Observe returns a Snapshot with the XRs that refs name, the other XRs of the same and of linked
// kinds, and everything that planning for them needs. A mark counts only if it was signed with the
// key. Each kind is listed once with the label selector, which selects what a restore created. The
// whole kind is listed only if a needed object is not among these because it existed before the
// restore. The Snapshot records composed kinds that can't be read; Observe fails for any other.
func (c *Cluster) Observe(ctx context.Context, key adoption.Key, selector string, refs []xp.Ref) (*adoption.Snapshot, error) {
	o := newObserver(c, key, selector, refs)

	return o.snapshot, o.listNeeded(ctx)
}

type observer struct {
	cluster  *Cluster
	key      adoption.Key
	selector string
	// requester is the Restore whose operations are polled; the zero value if there is none.
	requester adoption.Requester
	refs      []xp.Ref
	snapshot  *adoption.Snapshot
	// labelled are the collections listed with the selector, and whole those listed completely.
	labelled map[collection]bool
	whole    map[collection]bool
	// vital are the kinds that planning requires, and unread are the errors of other kinds.
	vital  map[schema.GroupVersionKind]bool
	unread map[schema.GroupVersionKind]error
	// discovered is set if all kinds were discovered since the observer was made. unanswered are
	// the groups and versions whose kinds could not be read.
	discovered bool
	unanswered map[schema.GroupVersion]error
	// servedVersions maps a kind that is not served in its version to one that is, or to an empty
	// one.
	servedVersions map[schema.GroupVersionKind]schema.GroupVersionKind
	// label is the key of the label that a restore writes on what it creates. It matches any
	// restore: a second restore adopts what the first has left.
	label string
	// usages are the composed Usages, and usagesRead their namespaces; nil if not listed yet.
	usages     []*unstructured.Unstructured
	usagesRead []string
	// events is what has changed since listings were read; watchCtx is the watches' context.
	listings []*listing
	events   *eventQueue
	watchCtx context.Context //nolint:containedctx // It spans many calls.
	// watches is set if kinds may be watched. watchesAll is set if everything is to be listed again
	// when any kind can't be watched, also one of composed resources.
	watches, watchesAll bool
	// prefetched are the results of parallel lists. snapshotMu serializes changes of the Snapshot.
	prefetched map[collection]prefetchResult
	snapshotMu sync.Mutex
	// expected are the resourceVersions of written objects whose events are still to come.
	expected map[xp.ID]string
}

// newObserver returns an observer of what refs name and of what belongs to it.
func newObserver(c *Cluster, key adoption.Key, selector string, refs []xp.Ref) *observer {
	o := &observer{
		cluster: c, key: key, selector: selector, refs: refs, snapshot: adoption.NewSnapshot(key), labelled: map[collection]bool{},
		whole: map[collection]bool{}, unread: map[schema.GroupVersionKind]error{}, unanswered: map[schema.GroupVersion]error{}, events: newEventQueue(),
		servedVersions: map[schema.GroupVersionKind]schema.GroupVersionKind{}, expected: map[xp.ID]string{}, prefetched: map[collection]prefetchResult{},
	}
	o.label, _, _ = strings.Cut(selector, "=")
	o.snapshot.Pack()
	o.snapshot.Definitions(activationsIn(c).ofKind)

	return o
}

// listNeeded lists what is needed and was not listed yet.
func (o *observer) listNeeded(ctx context.Context) error {
	o.snapshot.SetTime(o.cluster.serverNow())
	for {
		needs, err := o.inServed(o.snapshot.Needs(append(o.snapshot.Subjects(), o.refs...)))
		if err != nil {
			return err
		}
		o.vital = o.snapshot.RequiredKinds(needs)
		asked, err := o.inServed(slices.Clone(o.refs))
		if err != nil {
			return err
		}
		for _, r := range asked {
			o.vital[r.GroupVersionKind()] = true
		}
		more, err := o.observe(ctx, needs)
		if err != nil {
			return err
		}
		if !more {
			return o.observePlatform(ctx)
		}
	}
}

func (o *observer) put(u *unstructured.Unstructured) {
	if _, ok := u.GetLabels()[o.label]; ok {
		o.snapshot.AddRestored(u)

		return
	}
	o.snapshot.Add(u)
}

// observe lists needed objects that are missing, and reports whether it listed anything.
func (o *observer) observe(ctx context.Context, needs []xp.Ref) (bool, error) {
	more, err := o.prefetchList(ctx, needs)
	if err != nil {
		return false, err
	}
	for _, r := range needs {
		if err := o.unread[r.GroupVersionKind()]; err != nil && o.vital[r.GroupVersionKind()] && !xp.IsConversion(err) {
			return false, err
		}
	}
	labelled, whole := o.due(needs)
	for _, p := range labelled {
		o.labelled[p] = true
		if err := o.list(ctx, p, o.selector); err != nil {
			return false, err
		}
	}
	for _, p := range whole {
		o.whole[p] = true
		if err := o.list(ctx, p, ""); err != nil {
			return false, err
		}
	}

	return more || len(labelled)+len(whole) > 0, nil
}

func (o *observer) list(ctx context.Context, p collection, selector string) error {
	gvk := p.GroupVersionKind
	if err := o.discover(gvk); err != nil {
		return err
	}
	if p.namespace != "" && o.isClusterScoped(gvk) {
		o.whole[p] = true // A namespaced object refers only to its namespace, so to none of these.

		return nil
	}
	all := []metav1.ListOptions{{LabelSelector: selector}}
	whole := gvk == kindSecret && selector == ""
	if whole {
		// The plugin must not read other Secrets of the cluster.
		all = []metav1.ListOptions{{FieldSelector: "type=" + xp.SecretTypeConnection}, {LabelSelector: xp.LabelComposite}}
	}
	for _, options := range all {
		if err := o.read(ctx, p, options); err != nil {
			return o.recordUnlisted(ctx, p, err)
		}
	}
	if !whole {
		return nil
	}
	if err := o.readInputs(ctx, p); err != nil {
		return o.recordUnlisted(ctx, p, err)
	}

	return nil
}

// recordUnlisted records the error of a list, or returns it if planning requires the kind.
func (o *observer) recordUnlisted(ctx context.Context, p collection, err error) error {
	gvk := p.GroupVersionKind
	switch {
	case isUnserved(err):
		o.snapshot.AddUnserved(gvk.GroupKind())
	case gvk == kindSecret && apierrors.IsForbidden(err):
		// Without the right to read Secrets only a Secret that existed before the restore can't be
		// adopted. Crossplane then reports that its controller is missing.
		o.snapshot.AddUnreadable(gvk, err.Error())
	case gvk != kindSecret && !o.vital[gvk] && isUnreadable(ctx, err), xp.IsConversion(err):
		// A tenant can name any kind as composed, even one whose server is down, and a provider may
		// have no Pod. Only the XRs that need the kind wait for it.
		o.unread[gvk] = err
		o.snapshot.AddUnreadable(gvk, err.Error())
	default:
		return err
	}
	o.whole[p] = true

	return nil
}

// discover reads all kinds at once if one is unknown: a tenant can name thousands.
func (o *observer) discover(gvk schema.GroupVersionKind) error {
	if o.discovered || o.cluster.isKnown(gvk) {
		return nil
	}
	if err := o.cluster.Discover(); err != nil {
		return err
	}
	o.discovered = true

	return nil
}

// read lists what the options select. A kind that is not required gets few retries, which do not
// outlast a restart of the API server: all other objects wait meanwhile.
func (o *observer) read(ctx context.Context, p collection, options metav1.ListOptions) error {
	gvk := p.GroupVersionKind
	if !o.cluster.isKnown(gvk) {
		gv := gvk.GroupVersion()
		if err := o.unanswered[gv]; err != nil {
			return err
		}
		if err := o.cluster.lookUp(gvk); err != nil {
			if !isUnserved(err) {
				o.unanswered[gv] = err
			}

			return err
		}
	}

	try := o.cluster.withFewRetries
	if o.vital[gvk] || gvk == kindSecret {
		try = o.cluster.retryForever(ctx)
	}

	return o.listAndRecord(ctx, p, options, try)
}

// listAndRecord lists what the options select, and records the listing.
func (o *observer) listAndRecord(ctx context.Context, p collection, options metav1.ListOptions, try func(func() error) error) error {
	a, isPrefetched := o.prefetched[p]
	delete(o.prefetched, p)
	if !isPrefetched {
		a = o.prefetch(ctx, p, options, try)
	}
	if a.err != nil {
		return a.err
	}
	o.listings = append(o.listings, a.listing)
	if o.watches && a.took > shortWatch && !a.followed && o.isAlwaysFollowed(a.listing) {
		o.followAll(ctx, []*listing{a.listing}) // Lists of other kinds can take longer than the API server keeps events.
	}

	return nil
}

// isUnreadable reports whether a kind can't be read: the answer is a 403 or a 5xx, or is missing.
func isUnreadable(ctx context.Context, err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return isTimeout(err) && ctx.Err() == nil
	}
	code := status.Status().Code

	return code == http.StatusForbidden || code >= http.StatusInternalServerError
}
