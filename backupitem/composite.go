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
		f.note(xr.Unstructured, "its resourceRefs", reason.Malformed.Messagef(
			"%v. The backup lacks what it composes, and a restore refuses it. Correct its resourceRefs, then back up again", err))
	}
	for _, u := range f.composed {
		res.take(f, u)
	}
	f.noteRuns()
	res.claim(ctx, f, xr)
	res.leftovers(ctx, f, xr)
	res.secret(ctx, f, xr.Unstructured)
}

// noteRuns warns of what an XR composes that Velero does not restore, so that Crossplane composes it
// again, and of Jobs that start again.
func (f *found) noteRuns() {
	var made, run []xp.Ref
	for _, u := range f.composed {
		switch {
		case xp.Unrestored(u) != "":
			made = append(made, xp.RefTo(u))
		case xp.RunsAgain(u):
			run = append(run, xp.RefTo(u))
		}
	}
	slices.SortFunc(made, xp.Ref.Compare)
	slices.SortFunc(run, xp.Ref.Compare)
	if len(made) > 0 {
		f.note(f.of, xp.SomeOf(made), reason.MadeAgain.Messagef("it composes %s, which %s", xp.SomeOf(made), xp.MadeAgain))
	}
	if len(run) > 0 {
		f.note(f.of, xp.SomeOf(run), reason.RunsAgain.Messagef("it composes %s, which had started and not completed, and starts again after a restore. If it must "+
			"not, suspend it or delete it, then back up again", xp.SomeOf(run)))
	}
}

// platform adds the CompositionRevision, Composition and XRD. Each must itself be for this kind of
// XR.
func (res *Resolver) platform(ctx context.Context, f *found, xr xp.Composite) {
	const version = xp.GroupAPIExtensions + "/v1"
	composes := func(u *unstructured.Unstructured) bool { return xp.Composes(u, xr) }
	for _, ref := range []xp.Ref{
		{APIVersion: version, Kind: "CompositionRevision", Name: xr.Revision()},
		{APIVersion: version, Kind: "Composition", Name: xr.Composition()},
	} {
		if ref.Name == "" {
			continue
		}
		u := res.linked(ctx, f, ref, composes, reason.NotLinked.Messagef("it does not exist, or is for another kind of XR"))
		if u != nil && res.share(f, f.of, u) && xp.IsRevision(u) {
			res.environments(ctx, f, u)
		}
	}
	gvr, _, err := res.resource(xr.GroupVersionKind())
	if err != nil {
		f.notes = append(f.notes, warning{of: xp.RefTo(f.of), to: "its XRD", isLoss: true, why: reason.RelatedNotRead.Messagef(
			"its XRD can't be read: %v. The backup can lack it. When the API server answers for its kind, back up again", err)})

		return
	}
	ref := xp.Ref{APIVersion: version, Kind: "CompositeResourceDefinition", Name: gvr.GroupResource().String()}
	if u := res.linked(ctx, f, ref, anything, reason.DefinitionMissing.Messagef("it does not exist, so nothing reconciles the restored XR")); u != nil {
		res.share(f, f.of, u)
	}
}

// environments adds the EnvironmentConfigs in the pipeline of an XR's CompositionRevision, which
// the platform's authors write. If an optional one is missing, a function can leave out composed
// resources, and Crossplane then deletes these.
func (res *Resolver) environments(ctx context.Context, f *found, revision *unstructured.Unstructured) {
	reads := xp.PipelineInputsOf(revision)
	if len(reads.Others) > 0 {
		f.reads = append(f.reads, warning{of: xp.RefTo(revision), to: "what its functions read", once: true, why: reason.PipelineReads.Messagef(
			"the backup can lack what its functions read: %s. If so, create that in the cluster before a restore: a function that finds less can leave out composed "+
				"resources, and Crossplane deletes these", reads)})
	}
	for _, name := range reads.Environments {
		ref := xp.Ref{APIVersion: xp.KindEnvironment.GroupVersion().String(), Kind: xp.KindEnvironment.Kind, Name: name}
		u, err := res.listed(ctx, f, ref, metav1.ListOptions{}) // There are few, and thousands of XRs can name a missing one.
		switch {
		case err != nil:
			f.addUnreadable(ref, err)
		case u != nil:
			res.share(f, revision, u)
		default:
			f.notes = append(f.notes, warning{of: xp.RefTo(revision), to: ref.String(), once: true, why: reason.EnvironmentMissing.Messagef(
				"%s, which it names, does not exist", ref)})
		}
	}
}

// linked returns what a reference of an item names, if the item belongs to it; otherwise it warns of
// it, and returns nil.
func (res *Resolver) linked(
	ctx context.Context, f *found, ref xp.Ref, belongs func(*unstructured.Unstructured) bool, otherwise reason.Message,
) *unstructured.Unstructured {
	u, err := res.get(ctx, ref)
	switch {
	case err != nil:
		f.addUnreadable(ref, err)
	case u == nil || !belongs(u):
		f.skip(f.of, ref, otherwise)
	case !leavesOut(u).IsZero():
		f.skip(f.of, ref, leavesOut(u))
	default:
		return u
	}

	return nil
}

func anything(*unstructured.Unstructured) bool { return true }

// take adds a live object. It returns false if it is unknown how Velero names it, which f records.
func (res *Resolver) take(f *found, u *unstructured.Unstructured) bool {
	item, ok := res.item(f, u)
	if ok {
		f.items = append(f.items, item)
	}

	return ok
}

// share adds an object that others need too, unless Velero leaves it out.
func (res *Resolver) share(f *found, of, u *unstructured.Unstructured) bool {
	if why := leavesOut(u); !why.IsZero() {
		f.skip(of, xp.RefTo(u), why)

		return false
	}
	item, ok := res.item(f, u)
	if ok && !slices.Contains(f.shared, item) {
		f.shared = append(f.shared, item)
	}

	return ok
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
	// The list of a kind is read once, however many kinds there are.
	slices.SortStableFunc(refs, func(a, b xp.Ref) int {
		return cmp.Or(strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind))
	})
	var composed []*unstructured.Unstructured
	for _, r := range refs {
		kind, ok, err := res.resolve(r.GroupVersionKind())
		switch {
		case err == nil && !ok:
			f.addUnresolved(xr, r, reason.Dangling.Messagef("it does not exist"))
		case err == nil && xr.GetNamespace() != "" && !kind.namespaced:
			f.addUnresolved(xr, r, reason.KindClusterScoped.Messagef("its kind is cluster-scoped, and an XR in a namespace composes only objects in that namespace"))
		case !f.follows(r.GroupVersionKind().GroupKind()):
		case err != nil:
			f.addUnreadable(r, err)
		default:
			if u := res.listedAt(ctx, f, xr, r, kind.at(r), options); u != nil {
				composed = append(composed, u)
			}
		}
	}

	return slices.DeleteFunc(composed, func(u *unstructured.Unstructured) bool {
		err := res.failure(u.GroupVersionKind().GroupKind()) // Others of its kind could not be read.
		if err != nil {
			f.addUnreadable(xp.RefTo(u), err)
		}

		return err != nil
	})
}

// listedAt returns the object at a reference of an XR, if that composes it, else nil.
func (res *Resolver) listedAt(ctx context.Context, f *found, xr xp.Composite, r, at xp.Ref, options metav1.ListOptions) *unstructured.Unstructured {
	u, err := res.listed(ctx, f, at, options)
	if err == nil && u != nil {
		err = res.checkReadable(ctx, at)
	}
	if err != nil {
		f.addUnreadable(r, err)

		return nil
	}
	if !f.composes(xr, r, res.withoutGoing(ctx, f, xr, u)) {
		return nil
	}

	return u
}

// addUnresolved records a reference of an XR that composes nothing.
func (f *found) addUnresolved(xr xp.Composite, r xp.Ref, why reason.Message) {
	f.dangling = append(f.dangling, r)
	f.listed.add(xr.Unstructured, r, why)
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
		f.listed.add(xr.Unstructured, r, notLinked)
	case u.GetDeletionTimestamp() != nil:
		f.addUnresolved(xr, r, leavesOut(u))
	case isExcluded(u):
		f.listed.add(xr.Unstructured, r, reason.ExcludedByLabel.Messagef(
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
	bound := func(u *unstructured.Unstructured) bool { return xp.Bound(xp.ClaimFrom(u), xr) }
	if u := res.linked(ctx, f, ref, bound, reason.NotLinked.Messagef("it does not exist, or is bound to another XR")); u != nil {
		res.take(f, u)
	}
}
