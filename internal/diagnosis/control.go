package diagnosis

import (
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkControl finds resources that an XR lists and does not control. Held objects are not
// controlled yet: checkHolds reports them.
func (d *diagnosis) checkControl() {
	for _, xr := range d.with(isComposite) {
		if d.isHeldOrDeleting(xr) {
			continue // Its resources may be deleted first.
		}
		full := sync.OnceValue(xr.full)
		noted := sync.OnceValue(func() map[xp.ID]bool { return danglingOf(full()) })
		for _, r := range xr.refs {
			switch u := d.get(r); {
			case u != nil && xr.is(isMarked): // Nothing was adopted yet at backup time.
			case u != nil:
				d.checkController(xr, u)
			case !d.IsUnread(r):
				d.addDangling(full(), r, noted)
			}
		}
	}
}

// danglingOf returns the references of an XR that the backup's annotation records as unresolved.
// The plugin did not write an annotation that cannot be read: it counts as none.
func danglingOf(xr *unstructured.Unstructured) map[xp.ID]bool {
	refs, _ := xp.UnresolvedRefs(xr)

	return xp.IDs(refs)
}

func (d *diagnosis) addDangling(xr *unstructured.Unstructured, r xp.Ref, noted func() map[xp.ID]bool) {
	gk, severity := r.GroupVersionKind().GroupKind(), report.Error
	var why, next string
	switch {
	case d.of == Backup && xp.IsNeverRestored(gk):
		return // It would not come back from any backup.
	case d.of == Backup && noted()[r.ID()]:
		why = "at the backup it did not exist, was being deleted, or belonged to another object"
		next = "a restore does not wait for it, and Crossplane then creates another. If it manages something outside of the cluster, find that in the cloud first"
	case d.of == Backup:
		why = "it is not in the backup"
		next = "a restore holds the XR until it is in the cluster. Check whether the filters of the backup left it out, and back up again"
	case d.unserved[gk] && d.inactive(gk) != "":
		why = "its kind is not served, because its ManagedResourceDefinition " + d.inactive(gk) + " is not active"
		next = xp.HowToActivate(d.inactive(gk)) + ". Then restore it; without the kind Crossplane can't reconcile the XR"
	case d.unserved[gk]:
		why = "its kind is not served"
		next = "install the provider or XRD of " + gk.String() + ", then restore it; without the kind Crossplane can't reconcile the XR"
	default:
		if d.Now.Sub(lastChange(xr)) < stuckAfter {
			severity = report.Warning // Crossplane lists a resource before it creates it.
		}
		why = "it does not exist"
		next = "Crossplane creates another when it reconciles the XR. If it manages something outside of the cluster, restore it before that, " +
			"or set its external-name"
	}
	d.add(reason.Dangling, severity, r, xp.String(xr)+" lists it, and "+why, next)
}

// checkController finds out which object controls a resource that an XR lists, if it is not the XR.
func (d *diagnosis) checkController(xr, u *object) {
	if controls(xr, u) {
		return
	}
	c, ok := xp.Controller(u.full())
	by, lists := d.byUID[c.UID], xr.String()+" lists it, and "
	switch {
	case u.is(isDeleting) && (!ok || by != nil): // It is deleted, whichever object controls it.
	case !ok && d.of == Backup:
		d.add(reason.Uncontrolled, report.Warning, u.Ref, lists+"nothing controlled it at the backup",
			"a restore makes the XR its controller if its label names the XR's tree. In the source cluster, check what a restore or a user left there")
	case !ok:
		d.add(reason.Uncontrolled, report.Error, u.Ref, lists+"nothing controls it",
			"Crossplane adopts it when it reconciles the XR; check the XR's conditions for why it does not")
	case by != nil:
		d.addAnother(xr, u, by, lists)
	case d.isUnreadKind(c.APIVersion, c.Kind):
	case d.of == Backup:
		why := lists + c.Kind + " " + c.Name + ", which is not in the backup, controls it"
		if hasMovedUp(xr, u) {
			d.add(reason.Uncontrolled, report.Warning, u.Ref, why,
				"a restore makes "+xr.String()+" its controller. In the source cluster, check that the other is being deleted")
		} else {
			d.add(reason.ControlledByAnother, report.Error, u.Ref, why, "a restore ignores such a link. In the source cluster, find out to which of the two it belongs")
		}
	default:
		d.add(reason.DeadController, report.Error, u.Ref, fmt.Sprintf("%sits controller %s %s does not exist with the UID %s", lists, c.Kind, c.Name, c.UID),
			"pause it and remove that owner reference at once: the garbage collector deletes an object without existing owners. Crossplane then "+
				"makes the XR its controller")
	}
}

// addAnother reports that a live object controls what an XR lists.
func (d *diagnosis) addAnother(xr, u, by *object, lists string) {
	why, next := lists+by.String()+" controls it",
		"backup, restore and Crossplane ignore such a link. Find out to which of the two it belongs, and remove it from the resourceRefs of the other"
	if by.is(isDeleting) && by.is(isComposite|isForged) && hasMovedUp(xr, u) {
		why = lists + by.String() + ", which is being deleted, controls it"
		next = "a restore of a backup from now makes " + xr.String() + " its controller. Here the garbage collector deletes it after " + by.String() +
			", unless you remove that owner reference before"
	}
	d.add(reason.ControlledByAnother, report.Error, u.Ref, why, next)
}

// hasMovedUp reports whether a restore makes the XR the controller of u, which has none in the backup:
// u is of the XR's tree, and the backup has resolved the link. Its nested XR was being deleted.
func hasMovedUp(xr, u *object) bool {
	composite, alone := xp.CompositeFrom(xr.full()), u.full().DeepCopy()
	alone.SetOwnerReferences(nil)

	return xp.Composed(composite, alone) && !danglingOf(composite.Unstructured)[u.ID()]
}

// checkClaims finds claims whose XR does not reference them.
func (d *diagnosis) checkClaims() {
	for _, o := range d.with(isClaim) {
		claim := xp.ClaimFrom(o.full())
		r, ok := claim.CompositeRef()
		if !ok || d.isHeldOrDeleting(o) {
			continue
		}
		switch xr := d.Get(r); {
		case xr == nil && d.IsUnread(r):
		case xr == nil:
			d.add(reason.Dangling, report.Error, o.Ref, "its XR "+r.String()+" "+d.absent(),
				"restore the XR, or delete the claim: otherwise Crossplane creates another XR, and all that it composes, when it reconciles the claim")
		case !xp.Bound(claim, xp.CompositeFrom(xr)):
			d.add(reason.OneSided, report.Error, o.Ref, "it names "+r.String()+", which does not name it",
				"backup, restore and Crossplane ignore such a link. Correct the claim's spec.resourceRef, or delete the claim if it is forged")
		}
	}
}

// checkClaimRefs finds XRs whose claim does not reference them.
func (d *diagnosis) checkClaimRefs() {
	for _, o := range d.with(isComposite) {
		xr := xp.CompositeFrom(o.full())
		r, ok := xr.ClaimRef()
		if !ok || d.IsUnread(r) || d.isHeldOrDeleting(o) {
			continue
		}
		switch claim := d.Get(r); {
		case claim == nil:
			d.add(reason.OneSided, report.Warning, o.Ref, "its claim "+r.String()+" "+d.absent(),
				"restore the claim, or delete the XR if what it composes is not needed")
		case !xp.Bound(xp.ClaimFrom(claim), xr):
			next := "backup, restore and Crossplane ignore such a link. Find out to which claim the XR belongs, and correct its spec.claimRef"
			if other, ok := xp.ClaimFrom(claim).CompositeRef(); ok && d.of == Cluster && xp.Label(xr.Unstructured, xp.LabelRestore) != "" {
				next = "a restore brought it back, and the claim has " + other.String() + ". To give the claim this one instead, " + xp.HowToGetBack(o.Ref)
			}
			d.add(reason.OneSided, report.Error, o.Ref, "it names "+r.String()+", which does not name it", next)
		}
	}
}

// isHeldOrDeleting reports whether an object in a cluster is held or being deleted. Then a missing
// reference is no problem of its own.
func (d *diagnosis) isHeldOrDeleting(u *object) bool {
	return d.of == Cluster && u.is(isMarked|isDeleting)
}

// checkOrphans finds what an XR once composed and no XR lists, except for Usages.
func (d *diagnosis) checkOrphans() {
	for _, o := range d.with(isComposed) {
		if o.is(isUsage|isClaim|isForged) || len(d.listers(o)) > 0 {
			continue
		}
		u := o.full()
		c, controlled := xp.Controller(u)
		owner := d.byUID[c.UID]
		switch {
		case controlled && d.isUnreadKind(c.APIVersion, c.Kind):
		case owner != nil && !owner.is(isComposite|isForged): // Some controllers copy the labels of their owner, such as the one of EndpointSlices.
		case owner != nil && owner.is(isUnlisted): // Its resourceRefs cannot be read.
		case d.of == Backup:
			d.add(reason.Orphaned, report.Warning, o.Ref, whyOrphaned(u, owner)+" in the backup", "a restore brings it back without a controller, and holds a "+
				"managed resource or XR. If its XR should be in the backup, check the backup's warnings, and back up again")
		case o.is(isDeleting): // In a tree that is deleted the XR can be gone first.
		default:
			d.addOrphan(u, c, owner)
		}
	}
}

func whyOrphaned(u *unstructured.Unstructured, owner *object) string {
	if owner != nil {
		return owner.String() + " controls it and does not list it"
	}

	return "its label names the XR " + xp.Label(u, xp.LabelComposite) + ", and no XR lists it"
}

func (d *diagnosis) addOrphan(u *unstructured.Unstructured, c metav1.OwnerReference, owner *object) {
	p := report.Problem{
		Code: reason.Orphaned, Severity: report.Error, Object: xp.RefTo(u), Reason: whyOrphaned(u, owner),
		Next: "nothing updates or deletes it. If another resource took its place, delete it and keep its external resource (managementPolicies without Delete). " +
			"Otherwise add it to the resourceRefs of its XR",
	}
	xrs := []*object{owner}
	if owner == nil {
		xrs = d.rootsOf(u)
	}
	for _, xr := range xrs {
		p.Others = append(p.Others, xr.Ref)
	}
	if restore := xp.Label(u, xp.LabelRestore); restore != "" {
		p.Reason += "; the restore " + restore + " brought it back"
		if xr, r, ok := d.replacementOf(u, xrs); ok {
			p.Reason += ", and " + xr.String() + " lists " + r.String() + " in its place, which is newer: Crossplane reconciled the XR without its hold"
			p.Next = `choose which of the two to keep before you delete one: docs/gitops.md, "The hold was taken off"`
		} else if owner == nil && c.UID == "" && d.lacksXR(u) {
			p.Next = "if a restore refused its XR or left it out, repair that, then restore the same backup again: the XR adopts it. The errors of the restore have " +
				"the reason: " + xp.DescribeRestore(restore).String()
		}
	}
	switch {
	case owner != nil:
	case c.UID != "":
		p.Reason += fmt.Sprintf("; its controller %s %s does not exist with the UID %s", c.Kind, c.Name, c.UID)
		if !d.unserved[schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind()] {
			// A tree that a user deletes looks like this: its top goes first. The garbage collector
			// ignores owners of a kind that is not served.
			p.Severity = report.Warning
			p.Reason += ", so the garbage collector deletes it soon"
			p.Next = "nothing if you deleted its XR. Otherwise remove that owner reference at once, or its external resource is deleted with it"
		}
	case len(d.unread) > 0:
		p.Severity = report.Warning // An XR of an unread kind may list it.
		p.Reason += " of those that could be read"
	}
	d.found = append(d.found, p)
}

// rootsOf returns the XRs with the name that the label of a composed resource has.
func (d *diagnosis) rootsOf(u *unstructured.Unstructured) []*object {
	return slices.DeleteFunc(slices.Clone(d.roots[xp.Label(u, xp.LabelComposite)]), func(xr *object) bool {
		return xr.Namespace != "" && xr.Namespace != u.GetNamespace()
	})
}

// lacksXR reports whether neither the XR in the mark of u nor the root of its tree exists.
func (d *diagnosis) lacksXR(u *unstructured.Unstructured) bool {
	if h, err := hold.Of(u); err == nil && h != nil && h.Owner != nil {
		return d.get(*h.Owner) == nil
	}

	return len(d.rootsOf(u)) == 0
}

// replacementOf returns the resource that one of the XRs lists in place of a restored one: a younger
// one of the same kind that no restore created.
func (d *diagnosis) replacementOf(u *unstructured.Unstructured, xrs []*object) (xr *object, r xp.Ref, ok bool) {
	for _, xr := range xrs {
		for _, r := range xr.refs {
			other := d.get(r)
			if other != nil && r.GroupVersionKind().GroupKind() == u.GroupVersionKind().GroupKind() && adoption.TookPlaceOf(other.full(), u) {
				return xr, r, true
			}
		}
	}

	return nil, xp.Ref{}, false
}

// checkUsages finds Usages that XRs have left behind: they block a deletion for nothing.
func (d *diagnosis) checkUsages() {
	composed := slices.DeleteFunc(fullObjects(d.with(isUsage)), func(u *unstructured.Unstructured) bool { return xp.Label(u, xp.LabelComposite) == "" })
	if len(composed) == 0 {
		return
	}
	for _, left := range adoption.Leftovers(composed, parts(d.with(isComposite), shapeList)) {
		if d.of == Cluster && d.isSoonGone(left.Usage) {
			continue
		}
		next := left.Next()
		if d.of == Backup {
			next = "a restore leaves it out; in the source cluster, " + next
		}
		d.add(reason.UsageLeftBehind, report.Error, xp.RefTo(left.Usage), left.Why+"; it protects "+xp.Protected(left.Usage), next, xp.RefTo(left.XR))
	}
}

// isSoonGone reports whether a Usage is being deleted. Crossplane keeps it until its user is gone.
func (d *diagnosis) isSoonGone(usage *unstructured.Unstructured) bool {
	deleted := usage.GetDeletionTimestamp()
	if deleted == nil {
		return false
	}
	user, ok := xp.User(usage)
	u := d.Get(user)

	return d.Now.Sub(deleted.Time) < stuckAfter || ok && u != nil && u.GetDeletionTimestamp() != nil
}
