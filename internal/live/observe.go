package live

import (
	"context"
	"errors"
	"net/http"
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

// Observe returns a World with the XRs that refs name, the other XRs of the same and linked kinds, and everything that planning for them
// needs. It lists each kind once: those objects that carry the label selector, which is how Velero marks what a restore created. Only when
// one that is needed is not among them, because it was there before the restore, it lists the rest of the kind too. A kind that can't be read
// and that is only composed is the World's to tell of; any other is an error.
func (c *Cluster) Observe(ctx context.Context, selector string, refs []xp.Ref) (*adoption.World, error) {
	o := newObserver(c, selector, refs)

	return o.world, o.look(ctx)
}

type observer struct {
	cluster  *Cluster
	selector string
	refs     []xp.Ref
	world    *adoption.World
	labelled map[schema.GroupVersionKind]bool
	whole    map[schema.GroupVersionKind]bool
	// vital are the kinds without which nothing is known, and unread why others could not be read.
	vital  map[schema.GroupVersionKind]bool
	unread map[schema.GroupVersionKind]error
	// discovered says that all kinds were looked for since it began, and unanswered why it is not known what some groups and versions serve.
	discovered bool
	unanswered map[schema.GroupVersion]error
	// label is what a restore writes on what it creates, whichever restore it was: a second one adopts what the first has left.
	label string
	// usages are those that an XR composed once, if they were read.
	usages     []*unstructured.Unstructured
	usagesRead bool
	// listings are what was listed, feed is what has become of it since, and following is until when that is told.
	listings  []*listing
	feed      *feed
	following context.Context //nolint:containedctx // It is that of many calls.
	// watches says that it may be told.
	watches bool
	// ahead is what has come of lists that were asked for side by side, and adding is held while what they have, or what was written, is added.
	ahead  map[schema.GroupVersionKind]outcome
	adding sync.Mutex
	// expected are the versions of objects as they were written.
	expected map[xp.ID]string
}

// newObserver returns an observer of what refs name, and of what belongs to it, that has seen nothing yet.
func newObserver(c *Cluster, selector string, refs []xp.Ref) *observer {
	o := &observer{
		cluster: c, selector: selector, refs: refs, world: adoption.NewWorld(), labelled: map[schema.GroupVersionKind]bool{},
		whole: map[schema.GroupVersionKind]bool{}, unread: map[schema.GroupVersionKind]error{}, unanswered: map[schema.GroupVersion]error{}, feed: newFeed(),
		expected: map[xp.ID]string{}, ahead: map[schema.GroupVersionKind]outcome{},
	}
	o.label, _, _ = strings.Cut(selector, "=")
	o.world.Pack()

	return o
}

// look lists what is needed and was not listed yet.
func (o *observer) look(ctx context.Context) error {
	o.world.SetTime(time.Now())
	for {
		needs := o.world.Needs(append(o.world.Subjects(), o.refs...))
		o.vital = o.world.Vital(needs)
		for _, r := range o.refs {
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
		o.world.AddRestored(u)

		return
	}
	o.world.Add(u)
}

// observe lists the kinds of what is needed and not there, and tells whether it listed any.
func (o *observer) observe(ctx context.Context, needs []xp.Ref) (bool, error) {
	more, err := o.listBeside(ctx, needs)
	if err != nil {
		return false, err
	}
	for _, r := range needs {
		gvk := r.GroupVersionKind()
		if err := o.unread[gvk]; err != nil && o.vital[gvk] {
			return false, err
		}
		if o.world.Has(r) || o.whole[gvk] {
			continue
		}
		more = true
		if !o.labelled[gvk] {
			o.labelled[gvk] = true
			if err := o.list(ctx, gvk, o.selector); err != nil {
				return false, err
			}

			continue
		}
		o.whole[gvk] = true
		if err := o.list(ctx, gvk, ""); err != nil {
			return false, err
		}
	}

	return more, nil
}

func (o *observer) list(ctx context.Context, gvk schema.GroupVersionKind, selector string) error {
	if err := o.discover(gvk); err != nil {
		return err
	}
	all := []metav1.ListOptions{{LabelSelector: selector}}
	if gvk.GroupKind() == kindSecret.GroupKind() && selector == "" {
		// No other Secrets of the cluster are anybody's business here.
		all = []metav1.ListOptions{{FieldSelector: "type=" + xp.SecretTypeConnection}, {LabelSelector: xp.LabelComposite}}
	}
	for _, options := range all {
		err := o.read(ctx, gvk, options)
		switch {
		case err == nil:
			continue
		case isUnserved(err):
			o.world.AddUnserved(gvk.GroupKind())
		case gvk == kindSecret && apierrors.IsForbidden(err):
			// Who may not read Secrets can do all but give back control of one that was there before the restore, which Crossplane then says is missing.
			o.world.AddUnreadable(gvk, err.Error())
		case gvk != kindSecret && !o.vital[gvk] && isUnreadable(ctx, err):
			// A tenant can list any kind as composed, such as one whose server is down. Only who lists it waits for it.
			o.unread[gvk] = err
			o.world.AddUnreadable(gvk, err.Error())
		default:
			return err
		}
		o.whole[gvk] = true

		return nil
	}

	return nil
}

// discover looks for all kinds at once if one is not known, since a tenant can name thousands that do not exist.
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

// read lists what the options select of a kind. What is not vital is not waited for as long as a restart of the API server takes: all others wait with it.
func (o *observer) read(ctx context.Context, gvk schema.GroupVersionKind, options metav1.ListOptions) error {
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

	try := o.cluster.briefly
	if o.vital[gvk] || gvk == kindSecret {
		try = o.cluster.patiently(ctx)
	}

	return o.listed(ctx, gvk, options, try)
}

// listed lists what the options select of a kind, and remembers as of when.
func (o *observer) listed(ctx context.Context, gvk schema.GroupVersionKind, options metav1.ListOptions, try func(func() error) error) error {
	a, isAhead := o.ahead[gvk]
	delete(o.ahead, gvk)
	if !isAhead {
		a = o.ask(ctx, gvk, options, try)
	}
	if a.err != nil {
		return a.err
	}
	o.listings = append(o.listings, a.listing)
	if o.watches && a.took > soon && !a.followed && o.isAlwaysFollowed(a.listing) {
		o.followAll(ctx, []*listing{a.listing}) // The lists of others can take longer than the API server keeps what happens.
	}

	return nil
}

// isUnreadable tells whether a kind can't be read: the API server says so, or gives no answer.
func isUnreadable(ctx context.Context, err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return isTimeout(err) && ctx.Err() == nil
	}
	code := status.Status().Code

	return code == http.StatusForbidden || code >= http.StatusInternalServerError
}
