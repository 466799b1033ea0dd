package live

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const pageSize = 250

// Observe returns a Snapshot with the XRs that refs name, the other XRs of the same and linked
// kinds, and everything that planning for them needs. Marks count in it if they were signed with
// the key. It lists each kind once: those objects that carry the label selector, which is how
// Velero marks what a restore created. Only when one that is needed is not among them, because it
// was there before the restore, it lists the rest too. A kind that can't be read and that is only
// composed is the Snapshot's to tell of; any other is an error.
func (c *Cluster) Observe(ctx context.Context, key adoption.Key, selector string, refs []xp.Ref) (*adoption.Snapshot, error) {
	o := newObserver(c, key, selector, refs)

	return o.snapshot, o.listNeeded(ctx)
}

type observer struct {
	cluster  *Cluster
	key      adoption.Key
	selector string
	// by is whose operations are asked for, if it is for those.
	by       adoption.Requester
	refs     []xp.Ref
	snapshot *adoption.Snapshot
	// labelled and whole are where that was listed which carries the selector's label, and all
	// there is.
	labelled map[collection]bool
	whole    map[collection]bool
	// vital are the kinds without which nothing is known, and unread why others could not be read.
	vital  map[schema.GroupVersionKind]bool
	unread map[schema.GroupVersionKind]error
	// discovered says that all kinds were looked for since it began, and unanswered why it is not
	// known what some groups and versions serve.
	discovered bool
	unanswered map[schema.GroupVersion]error
	// idleFactor are the versions in which kinds are served that are not in the version that was
	// asked for; empty if there are none.
	others map[schema.GroupVersionKind]schema.GroupVersionKind
	// label is what a restore writes on what it creates, whichever restore it was: a second one
	// adopts what the first has left.
	label string
	// usages are those that an XR composed once, and usagesRead the namespaces in which they were
	// read; nil if they were not.
	usages     []*unstructured.Unstructured
	usagesRead []string
	// listings are what was listed, feed is what has become of it since, and following is until
	// when that is told.
	listings  []*listing
	events    *eventQueue
	following context.Context //nolint:containedctx // It is that of many calls.
	// watches says that it may be told.
	watches bool
	// prefetched is what has come of lists that were asked for side by side, and adding is held
	// while what they have, or what was written, is added.
	prefetched map[collection]prefetchResult
	adding     sync.Mutex
	// expected are the versions of objects as they were written.
	expected map[xp.ID]string
}

// newObserver returns an observer of what refs name, and of what belongs to it, that has seen
// nothing yet.
func newObserver(c *Cluster, key adoption.Key, selector string, refs []xp.Ref) *observer {
	o := &observer{
		cluster: c, key: key, selector: selector, refs: refs, snapshot: adoption.NewSnapshot(key), labelled: map[collection]bool{},
		whole: map[collection]bool{}, unread: map[schema.GroupVersionKind]error{}, unanswered: map[schema.GroupVersion]error{}, events: newEventQueue(),
		others: map[schema.GroupVersionKind]schema.GroupVersionKind{}, expected: map[xp.ID]string{}, prefetched: map[collection]prefetchResult{},
	}
	o.label, _, _ = strings.Cut(selector, "=")
	o.snapshot.Pack()
	o.snapshot.Definitions(activationsIn(c).ofKind)

	return o
}

// listNeeded lists what is needed and was not listed yet.
func (o *observer) listNeeded(ctx context.Context) error {
	o.snapshot.SetTime(time.Now())
	for {
		needs, err := o.inServed(o.snapshot.Needs(append(o.snapshot.Subjects(), o.refs...)))
		if err != nil {
			return err
		}
		o.vital = o.snapshot.Vital(needs)
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

// observe lists what is needed and not there, and reports whether it listed anything.
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
		o.whole[p] = true // What a namespaced object names is in its namespace, and so is none of these.

		return nil
	}
	all := []metav1.ListOptions{{LabelSelector: selector}}
	whole := gvk == kindSecret && selector == ""
	if whole {
		// No other Secrets of the cluster are anybody's business here.
		all = []metav1.ListOptions{{FieldSelector: "type=" + xp.SecretTypeConnection}, {LabelSelector: xp.LabelComposite}}
	}
	for _, options := range all {
		if err := o.read(ctx, p, options); err != nil {
			return o.unlisted(ctx, p, err)
		}
	}
	if !whole {
		return nil
	}
	if err := o.readInputs(ctx, p); err != nil {
		return o.unlisted(ctx, p, err)
	}

	return nil
}

// unlisted takes note of why a kind could not be listed, or returns that if nothing is known
// without the kind.
func (o *observer) unlisted(ctx context.Context, p collection, err error) error {
	gvk := p.GroupVersionKind
	switch {
	case isUnserved(err):
		o.snapshot.AddUnserved(gvk.GroupKind())
	case gvk == kindSecret && apierrors.IsForbidden(err):
		// Who may not read Secrets can do all but give back control of one that was there before
		// the restore, which Crossplane then says is missing.
		o.snapshot.AddUnreadable(gvk, err.Error())
	case gvk != kindSecret && !o.vital[gvk] && isUnreadable(ctx, err), xp.IsConversion(err):
		// A tenant can list any kind as composed, such as one whose server is down, and a provider
		// can have no Pod. Only who needs the kind waits for it.
		o.unread[gvk] = err
		o.snapshot.AddUnreadable(gvk, err.Error())
	default:
		return err
	}
	o.whole[p] = true

	return nil
}

// discover looks for all kinds at once if one is not known, since a tenant can name thousands that
// do not exist.
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

// read lists what the options select. What is not vital is not waited for as long as a restart of
// the API server takes: all others wait with it.
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

	return o.listed(ctx, p, options, try)
}

// listed lists what the options select, and remembers as of when.
func (o *observer) listed(ctx context.Context, p collection, options metav1.ListOptions, try func(func() error) error) error {
	a, isAhead := o.prefetched[p]
	delete(o.prefetched, p)
	if !isAhead {
		a = o.prefetch(ctx, p, options, try)
	}
	if a.err != nil {
		return a.err
	}
	o.listings = append(o.listings, a.listing)
	if o.watches && a.took > uselessWatch && !a.followed && o.isAlwaysFollowed(a.listing) {
		o.followAll(ctx, []*listing{a.listing}) // The lists of others can take longer than the API server keeps what happens.
	}

	return nil
}

// isUnreadable reports whether a kind can't be read: the API server says so, or gives no answer.
func isUnreadable(ctx context.Context, err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return isTimeout(err) && ctx.Err() == nil
	}
	code := status.Status().Code

	return code == http.StatusForbidden || code >= http.StatusInternalServerError
}
