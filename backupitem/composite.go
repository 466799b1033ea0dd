package backupitem

import (
	"cmp"
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// ofComposite finds what an XR composes, what it runs on, its claim and its connection secret.
func (res *Resolver) ofComposite(ctx context.Context, f *found, xr xp.Composite) {
	res.platform(ctx, f, xr)
	f.composed = res.composed(ctx, f, xr)
	res.activations(ctx, f, f.composed...)
	f.before = append(f.before, f.shared...)
	if _, err := xr.ResourceRefs(); err != nil {
		f.unknown = append(f.unknown, gap{
			of: xp.RefTo(xr.Unstructured), what: "its resourceRefs",
			why: reason.Malformed.Messagef("%v. The backup lacks what it composes, and a restore refuses it. Correct its resourceRefs, then back up again", err),
		})
	}
	for _, u := range f.composed {
		if item, ok := res.item(f, u); ok {
			f.items = append(f.items, item)
		}
	}
	res.claim(ctx, f, xr)
	res.leftovers(ctx, f, xr)
	res.secret(ctx, f, xr.Unstructured)
}

// platform adds the CompositionRevision, Composition and XRD. Each must itself be for this kind of
// XR.
func (res *Resolver) platform(ctx context.Context, f *found, xr xp.Composite) {
	const version = xp.GroupAPIExtensions + "/v1"
	for _, p := range []struct {
		ref  xp.Ref
		item xp.Item
	}{
		{xp.Ref{APIVersion: version, Kind: "CompositionRevision", Name: xr.Revision()}, xp.Item{GroupResource: xp.ResourceRevision, Name: xr.Revision()}},
		{xp.Ref{APIVersion: version, Kind: "Composition", Name: xr.Composition()}, xp.Item{GroupResource: xp.ResourceComposition, Name: xr.Composition()}},
	} {
		if p.ref.Name == "" {
			continue
		}
		u, err := res.get(ctx, p.ref)
		switch {
		case err != nil:
			f.addUnreadable(p.ref, err)
		case u == nil || !xp.Composes(u, xr):
			f.skip(xr.Unstructured, p.ref, reason.NotLinked.Messagef("it does not exist, or is for another kind of XR"))
		default:
			if f.share(xr.Unstructured, u, p.item) && xp.IsRevision(u) {
				res.environments(ctx, f, u)
			}
		}
	}
	gvr, _, err := res.resource(xr.GroupVersionKind())
	if err != nil {
		f.unknown = append(f.unknown, gap{
			of: xp.RefTo(xr.Unstructured), what: "its XRD", isLoss: true,
			why: reason.RelatedNotRead.Messagef("its XRD can't be read: %v. The backup can lack it. When the API server answers for its kind, back up again", err),
		})

		return
	}
	ref := xp.Ref{APIVersion: version, Kind: "CompositeResourceDefinition", Name: gvr.GroupResource().String()}
	switch u, err := res.get(ctx, ref); {
	case err != nil:
		f.addUnreadable(ref, err)
	case u == nil:
		f.skip(xr.Unstructured, ref, reason.DefinitionMissing.Messagef("it does not exist, so nothing reconciles the restored XR"))
	default:
		f.share(xr.Unstructured, u, xp.Item{GroupResource: xp.ResourceXRD, Name: ref.Name})
	}
}

// share adds an item that others need too, unless a label keeps it out of backups.
func (f *found) share(of, u *unstructured.Unstructured, item xp.Item) bool {
	if isExcluded(u) {
		f.skip(of, xp.RefTo(u), leavesOut(u))

		return false
	}
	f.shared = append(f.shared, item)

	return true
}

// composed returns what the XR references and controls. A reference to nothing, or to what another
// owner controls, is recorded as dangling. References that can't be read are skipped, since an
// error would leave the XR out of the backup.
func (res *Resolver) composed(ctx context.Context, f *found, xr xp.Composite) []*unstructured.Unstructured {
	refs, err := xr.ResourceRefs()
	if err != nil {
		return nil // The XR's own backup warns of it.
	}
	options := metav1.ListOptions{LabelSelector: xp.LabelComposite}
	if claim, ok := xr.ClaimRef(); ok {
		options.LabelSelector = labels.Set{xp.LabelClaimNamespace: claim.Namespace}.String()
	}
	read := res.followed(f, xr, refs)
	res.readListed(ctx, f, read, options)
	var composed []*unstructured.Unstructured
	for _, r := range read {
		if r.why == nil && r.err == nil && r.live != nil {
			r.err = res.checkReadable(ctx, r.kind.at(r.Ref))
		}
		switch {
		case r.why != nil:
			f.addUnresolved(xr, r.Ref, *r.why)
		case r.err != nil:
			f.addUnreadable(r.Ref, r.err)
		case f.composes(xr, r.Ref, res.withoutGoing(ctx, f, xr, r.live)):
			composed = append(composed, r.live)
		}
	}

	return composed
}

// followed returns the references of an XR that its backup follows, not read yet, and those that
// can't be of objects that the XR composes.
func (res *Resolver) followed(f *found, xr xp.Composite, refs []xp.Ref) []listedRef {
	dangling := reason.Dangling.Messagef("it does not exist")
	outside := reason.KindClusterScoped.Messagef("its kind is cluster-scoped, and an XR in a namespace composes only objects in that namespace")
	read := make([]listedRef, 0, len(refs))
	for _, r := range refs {
		kind, ok, err := res.resolve(r.GroupVersionKind())
		switch {
		case err == nil && !ok:
			read = append(read, listedRef{Ref: r, why: &dangling})
		case err == nil && xr.GetNamespace() != "" && !kind.namespaced:
			read = append(read, listedRef{Ref: r, why: &outside})
		case f.follows(r.GroupVersionKind().GroupKind()):
			read = append(read, listedRef{Ref: r, kind: kind, err: err})
		}
	}

	return read
}

// A listedRef is a reference of an XR, and the live object or why it is not read. All are nil if
// there is none.
type listedRef struct {
	xp.Ref

	kind readable
	live *unstructured.Unstructured
	why  *reason.Message
	err  error
}

// readListed reads the live objects, one kind after the other: the list of each is read once,
// however many kinds there are and in whatever order.
func (res *Resolver) readListed(ctx context.Context, f *found, refs []listedRef, options metav1.ListOptions) {
	byKind := make([]*listedRef, len(refs))
	for n := range refs {
		byKind[n] = &refs[n]
	}
	slices.SortStableFunc(byKind, func(a, b *listedRef) int {
		return cmp.Or(strings.Compare(a.kind.Group, b.kind.Group), strings.Compare(a.kind.Kind, b.kind.Kind))
	})
	for _, r := range byKind {
		if r.err != nil || r.why != nil {
			continue
		}
		at := r.kind.at(r.Ref)
		if r.live, r.err = res.listed(ctx, f, at, options); r.err == nil && r.live != nil {
			r.err = res.checkReadable(ctx, at)
		}
	}
}

// addUnresolved records a reference of an XR that composes nothing.
func (f *found) addUnresolved(xr xp.Composite, r xp.Ref, why reason.Message) {
	f.dangling = append(f.dangling, r)
	f.skipListed(xr.Unstructured, r, why)
}

// composes reports whether a backup includes u, which an XR lists; u is nil if it does not exist.
// Outside of the XR's namespace, the warning does not reveal whether another's object exists.
func (f *found) composes(xr xp.Composite, r xp.Ref, u *unstructured.Unstructured) bool {
	out := r.Namespace != xr.GetNamespace()
	notLinked := reason.NotLinked.Messagef("it does not exist, or this XR does not control it")
	switch {
	case u == nil && out:
		f.addUnresolved(xr, r, notLinked)
	case u == nil:
		f.addUnresolved(xr, r, reason.Dangling.Messagef("it does not exist"))
	case !xp.Composed(xr, u):
		if _, ok := xp.Controller(u); ok || u.GetDeletionTimestamp() != nil {
			f.dangling = append(f.dangling, r)
		}
		if !out {
			notLinked.Text = "this XR does not control it"
		}
		f.skipListed(xr.Unstructured, r, notLinked)
	case u.GetDeletionTimestamp() != nil:
		f.addUnresolved(xr, r, leavesOut(u))
	case isExcluded(u):
		f.skipListed(xr.Unstructured, r, reason.ExcludedByLabel.Messagef(
			"its label %s keeps it out of backups, and a restored XR waits for it. Remove that label, then back up again", excludeLabel))
	case xp.Unrestored(u) != "":
		f.dangling = append(f.dangling, r) // A restore must not wait for it.

		return true
	default:
		return true
	}

	return false
}

// claim adds an XR's claim. An XR can name any claim, so the warning is the same if there is none
// and if it is another XR's.
func (res *Resolver) claim(ctx context.Context, f *found, xr xp.Composite) {
	ref, ok := xr.ClaimRef()
	if !ok {
		return
	}
	u, err := res.get(ctx, ref)
	switch {
	case err != nil:
		f.addUnreadable(ref, err)
	case u == nil || !xp.Bound(xp.ClaimFrom(u), xr):
		f.skip(xr.Unstructured, ref, reason.NotLinked.Messagef("it does not exist, or is bound to another XR"))
	case isExcluded(u):
		f.skip(xr.Unstructured, ref, leavesOut(u))
	default:
		if item, ok := res.item(f, u); ok {
			f.items = append(f.items, item)
		}
	}
}
