package adopter

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// snapshotOf returns a Snapshot with the XRs that refs name, the other XRs of the same and of linked
// kinds, and everything that planning for them needs. A mark counts only if it was signed with the
// key. Each kind is listed once with the label selector, which selects what a restore created. The
// whole kind is listed only if a needed object is not among these because it existed before the
// restore. The Snapshot records composed kinds that can't be read; it fails for any other.
func snapshotOf(ctx context.Context, c *cluster.Cluster, key hold.Key, selector string, refs []xp.Ref) (*adoption.Snapshot, error) {
	o := newObserver(c, key, selector, refs)

	return o.snapshot, o.listNeeded(ctx)
}

type observer struct {
	cluster  *cluster.Cluster
	key      hold.Key
	selector string
	// requester is the Restore whose operations are polled; the zero value if there is none.
	requester adoption.Requester
	refs      []xp.Ref
	snapshot  *adoption.Snapshot
	// labelled are the collections listed with the selector, and whole those listed completely.
	labelled map[cluster.Collection]bool
	whole    map[cluster.Collection]bool
	// vital are the kinds that planning requires, and unread are the errors of other kinds.
	vital  map[schema.GroupVersionKind]bool
	unread map[schema.GroupVersionKind]error
	// discovered is set if all kinds were discovered since the observer was made. unanswered are
	// the groups and versions whose kinds could not be read.
	discovered bool
	unanswered map[schema.GroupVersion]error
	// servedVersions maps a kind that is not served in its version to one that is, or to itself.
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
	// snapshotMu serializes changes of the Snapshot and of listings.
	snapshotMu sync.Mutex
	// expected are the resourceVersions of written objects whose events are still to come.
	expected map[xp.ID]string
}

// newObserver returns an observer of what refs name and of what belongs to it.
func newObserver(c *cluster.Cluster, key hold.Key, selector string, refs []xp.Ref) *observer {
	o := &observer{
		cluster: c, key: key, selector: selector, refs: refs, snapshot: adoption.NewSnapshot(key), labelled: map[cluster.Collection]bool{},
		whole: map[cluster.Collection]bool{}, unread: map[schema.GroupVersionKind]error{}, unanswered: map[schema.GroupVersion]error{}, events: newEventQueue(),
		servedVersions: map[schema.GroupVersionKind]schema.GroupVersionKind{}, expected: map[xp.ID]string{},
	}
	o.label, _, _ = strings.Cut(selector, "=")
	o.snapshot.Pack()
	o.snapshot.Definitions(inactive(c.Inactive()).ofKind)

	return o
}

// inactive is what Cluster.Inactive returns.
type inactive func(ctx context.Context, gk schema.GroupKind) string

// ofKind is inactive without a context, for a Snapshot, which outlives each context.
func (i inactive) ofKind(gk schema.GroupKind) string { return i(context.Background(), gk) }

// listNeeded lists what is needed and was not listed yet.
func (o *observer) listNeeded(ctx context.Context) error {
	o.snapshot.SetTime(o.cluster.ServerNow())
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

func (o *observer) put(u *unstructured.Unstructured) { addObserved(o.snapshot, u, o.label) }

// addObserved adds an object to the Snapshot, as a restored one if it has the label.
func addObserved(s *adoption.Snapshot, u *unstructured.Unstructured, label string) {
	if _, ok := u.GetLabels()[label]; ok {
		s.AddRestored(u)
	} else {
		s.Add(u)
	}
}

// observe lists needed objects that are missing, and reports whether it listed anything.
func (o *observer) observe(ctx context.Context, needs []xp.Ref) (bool, error) {
	for _, r := range needs {
		if err := o.unread[r.GroupVersionKind()]; err != nil && o.vital[r.GroupVersionKind()] && !xp.IsConversion(err) {
			return false, err
		}
	}
	labelled, whole := o.due(needs)
	for _, p := range labelled {
		o.labelled[p] = true
	}
	if err := o.listAll(ctx, labelled, o.selector); err != nil {
		return false, err
	}
	for _, p := range whole {
		o.whole[p] = true
	}

	return len(labelled)+len(whole) > 0, o.listAll(ctx, whole, "")
}

// parallelLists is how many kinds are listed at a time: the API server encodes one page while the
// plugin decodes another. It is small, since one page of each kind is in memory.
const parallelLists = 4

// listAll lists the kinds that planning requires, then other kinds in parallel, and then Secrets,
// for which other objects wait.
func (o *observer) listAll(ctx context.Context, all []cluster.Collection, selector string) error {
	var others, secrets []cluster.Collection
	for _, p := range all {
		gvk := p.GroupVersionKind
		if err := o.discover(gvk); err != nil {
			return err
		}
		namespaced, err := o.lookUp(gvk)
		switch {
		case err != nil:
		case p.Namespace != "" && !namespaced:
			o.whole[p] = true // A namespaced object refers only to its namespace, so to none of these.
		case gvk == cluster.KindSecret:
			secrets = append(secrets, p)
		case o.vital[gvk]:
			err = o.list(ctx, p, metav1.ListOptions{LabelSelector: selector}, o.cluster.RetryForever(ctx))
		default:
			others = append(others, p)
		}
		if err := o.recordUnlisted(ctx, p, err); err != nil {
			return err
		}
	}
	errs := make([]error, len(others))
	inParallel(len(others), parallelLists, func(n int) {
		// Few retries do not outlast a restart of the API server: all other objects wait meanwhile.
		errs[n] = o.list(ctx, others[n], metav1.ListOptions{LabelSelector: selector}, o.cluster.WithFewRetries)
	})
	for n, p := range others {
		if err := o.recordUnlisted(ctx, p, errs[n]); err != nil {
			return err
		}
	}
	for _, p := range secrets {
		if err := o.recordUnlisted(ctx, p, o.listSecrets(ctx, p, selector)); err != nil {
			return err
		}
	}

	return nil
}

// listSecrets lists the Secrets with the selector's label; without one connection Secrets, composed
// ones and those that an object waits for, which can have any type and no label. The plugin must
// not read other Secrets of the cluster.
func (o *observer) listSecrets(ctx context.Context, p cluster.Collection, selector string) error {
	all := []metav1.ListOptions{{LabelSelector: selector}}
	if selector == "" {
		all = []metav1.ListOptions{{FieldSelector: "type=" + xp.SecretTypeConnection}, {LabelSelector: xp.LabelComposite}}
	}
	for _, options := range all {
		if err := o.list(ctx, p, options, o.cluster.RetryForever(ctx)); err != nil {
			return err
		}
	}
	missing := sets.New[xp.ID]()
	for _, r := range o.snapshot.Inputs() {
		if selector == "" && (p.Namespace == "" || p.Namespace == r.Namespace) && !o.snapshot.Has(r) {
			missing.Insert(r.ID())
		}
	}
	if missing.Len() == 0 {
		return nil
	}

	return o.cluster.Each(ctx, cluster.KindSecret, p.Namespace, metav1.ListOptions{}, func(u *unstructured.Unstructured) {
		if missing.Has(xp.RefTo(u).ID()) {
			o.put(cluster.Trim(u))
		}
	})
}

// list lists what the options select in a collection, and records the listing. It watches a long
// list while it reads it.
func (o *observer) list(ctx context.Context, p cluster.Collection, options metav1.ListOptions, try func(func() error) error) error {
	began := time.Now()
	l := &listing{Collection: p, options: options}
	_, err := o.cluster.EachPaged(ctx, p, options, try, func(u *unstructured.Unstructured) {
		u = cluster.Trim(u)
		o.snapshotMu.Lock()
		defer o.snapshotMu.Unlock()
		o.put(u)
	}, func(version string) {
		if !l.followed {
			l.options.ResourceVersion = version
			o.followEarly(ctx, l, time.Since(began))
		}
	})
	if err != nil {
		return err
	}
	o.snapshotMu.Lock()
	defer o.snapshotMu.Unlock()
	o.listings = append(o.listings, l)

	return nil
}

// recordUnlisted records the error of a list, if there is one, or returns it if planning requires
// the kind.
func (o *observer) recordUnlisted(ctx context.Context, p cluster.Collection, err error) error {
	gvk := p.GroupVersionKind
	switch {
	case err == nil:
		return nil
	case cluster.IsUnserved(err):
		o.snapshot.AddUnserved(gvk.GroupKind())
	case gvk == cluster.KindSecret && apierrors.IsForbidden(err):
		// Without the right to read Secrets only a Secret that existed before the restore can't be
		// adopted. Crossplane then reports that its controller is missing.
		o.snapshot.AddUnreadable(gvk, err.Error())
	case gvk != cluster.KindSecret && !o.vital[gvk] && cluster.IsUnreadable(ctx, err), xp.IsConversion(err):
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
	if o.discovered || o.cluster.IsKnown(gvk) {
		return nil
	}
	if err := o.cluster.Discover(); err != nil {
		return err
	}
	o.discovered = true

	return nil
}

// LookUp reports whether a kind is namespaced. It returns an error if the kind is not served, or if
// its server has not answered.
func (o *observer) lookUp(gvk schema.GroupVersionKind) (bool, error) {
	if !o.cluster.IsKnown(gvk) {
		err := o.unanswered[gvk.GroupVersion()]
		if err == nil {
			err = o.cluster.LookUp(gvk)
		}
		if err != nil {
			o.unanswered[gvk.GroupVersion()] = cluster.IgnoreUnserved(err)

			return false, err
		}
	}
	_, namespaced, err := o.cluster.Resource(gvk)

	return namespaced, err
}

// inServed returns refs with the versions in which their objects can be read: the version of the
// ref, else one in which the kind is served.
func (o *observer) inServed(refs []xp.Ref) ([]xp.Ref, error) {
	for n, r := range refs {
		gvk := r.GroupVersionKind()
		if o.cluster.IsKnown(gvk) {
			continue
		}
		other, looked := o.servedVersions[gvk]
		if !looked {
			var err error
			if other, err = o.servedVersion(gvk); err != nil {
				return nil, err
			}
			o.servedVersions[gvk] = other
		}
		if other != gvk {
			o.snapshot.AddRetired(gvk, other)
			refs[n].APIVersion = other.GroupVersion().String()
		}
	}

	return refs, nil
}

// servedVersion returns a kind in a version in which it is served: the given version if it is, or if
// none is. It skips versions that do not answer.
func (o *observer) servedVersion(gvk schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	if err := o.discover(gvk); err != nil || o.cluster.IsKnown(gvk) {
		return gvk, err
	}

	return o.cluster.ServedVersion(gvk, o.unanswered)
}

// observePlatform lists the objects that XRs of all kinds share, such as Compositions, as far as
// the observed XRs need them. A cluster has few of these.
func (o *observer) observePlatform(ctx context.Context) error {
	for _, gvk := range o.snapshot.PlatformNeeds() {
		everywhere := cluster.Collection{GroupVersionKind: gvk}
		if o.whole[everywhere] {
			continue
		}
		err := o.list(ctx, everywhere, metav1.ListOptions{}, o.cluster.RetryForever(ctx))
		if cluster.IsUnserved(err) {
			continue // This Crossplane is older than the kind, or is not installed; other code notices that.
		}
		if err != nil {
			return err
		}
		o.whole[everywhere] = true
		o.snapshot.AddedAll(gvk.GroupKind())
	}

	return nil
}
