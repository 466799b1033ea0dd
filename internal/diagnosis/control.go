package diagnosis

import (
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
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
	noted := map[xp.ID]bool{}
	for _, r := range refs {
		noted[r.ID()] = true
	}

	return noted
}

func (d *diagnosis) addDangling(xr *unstructured.Unstructured, r xp.Ref, noted func() map[xp.ID]bool) {
	switch {
	case d.of == Cluster:
	case xp.IsNeverRestored(r.GroupVersionKind().GroupKind()):
		return // It would not come back from any backup.
	case noted()[r.ID()]:
		d.add(reason.Dangling, report.Error, r, xp.String(xr)+" lists it, and at the backup it did not exist, was being deleted, or belonged to another object",
			"a restore does not wait for it, and Crossplane then creates another. If it manages something outside of the cluster, find that in the cloud first")

		return
	default:
		d.add(reason.Dangling, report.Error, r, xp.String(xr)+" lists it, and it is not in the backup",
			"a restore holds the XR until it is in the cluster. Check whether the filters of the backup left it out, and back up again")

		return
	}
	if gk := r.GroupVersionKind().GroupKind(); d.unserved[gk] {
		if name := d.inactive(gk); name != "" {
			d.add(reason.Dangling, report.Error, r, xp.String(xr)+" lists it, and its kind is not served, because its ManagedResourceDefinition "+name+" is not active",
				xp.HowToActivate(name)+". Then restore it; without the kind Crossplane can't reconcile the XR")

			return
		}
		d.add(reason.Dangling, report.Error, r, xp.String(xr)+" lists it, and its kind is not served",
			"install the provider or XRD of "+r.GroupVersionKind().GroupKind().String()+", then restore it; without the kind Crossplane can't reconcile the XR")

		return
	}
	severity := report.Error
	if d.Now.Sub(lastChange(xr)) < stuckAfter {
		severity = report.Warning // Crossplane lists a resource before it creates it.
	}
	d.add(reason.Dangling, severity, r, xp.String(xr)+" lists it, and it does not exist",
		"Crossplane creates another when it reconciles the XR. If it manages something outside of the cluster, restore it before that, or set its external-name")
}

// checkController finds out which object controls a resource that an XR lists, if it is not the XR.
func (d *diagnosis) checkController(xr, u *object) {
	if u.is(isControlled) && u.controller == xr.uid {
		return
	}
	r := u.Ref
	c, ok := xp.Controller(u.full())
	switch {
	case u.is(isDeleting) && (!ok || d.byUID[c.UID] != nil): // It is deleted, whichever object controls it.
	case !ok && d.of == Backup:
		d.add(reason.Uncontrolled, report.Warning, r, xr.String()+" lists it, and nothing controlled it at the backup",
			"a restore makes the XR its controller if its label names the XR's tree. In the source cluster, check what a restore or a user left there")
	case !ok:
		d.add(reason.Uncontrolled, report.Error, r, xr.String()+" lists it, and nothing controls it",
			"Crossplane adopts it when it reconciles the XR; check the XR's conditions for why it does not")
	case d.byUID[c.UID] != nil:
		d.addOtherController(xr, u, d.byUID[c.UID])
	case d.isUnreadKind(c.APIVersion, c.Kind):
	case d.of == Backup:
		d.addMissingController(xr, u, c)
	default:
		d.add(reason.DeadController, report.Error, r,
			fmt.Sprintf("%s lists it, and its controller %s %s does not exist with the UID %s", xr.String(), c.Kind, c.Name, c.UID),
			"pause it and remove that owner reference at once: the garbage collector deletes an object without existing owners. Crossplane then "+
				"makes the XR its controller")
	}
}

// addOtherController adds that an object which is there controls a resource that an XR lists.
func (d *diagnosis) addOtherController(xr, u, by *object) {
	if by.is(isDeleting) && by.is(isComposite|isForged) && hasMovedUp(xr, u) {
		d.add(reason.ControlledByAnother, report.Error, u.Ref, xr.String()+" lists it, and "+by.String()+", which is being deleted, controls it",
			"a restore of a backup from now makes "+xr.String()+" its controller. Here the garbage collector deletes it after "+by.String()+
				", unless you remove that owner reference before")

		return
	}
	d.add(reason.ControlledByAnother, report.Error, u.Ref, xr.String()+" lists it, and "+by.String()+" controls it",
		"backup, restore and Crossplane ignore such a link. Find out to which of the two it belongs, and remove it from the resourceRefs of the other")
}

// addMissingController adds that an object which is not in the backup controls a resource that an XR
// lists.
func (d *diagnosis) addMissingController(xr, u *object, c metav1.OwnerReference) {
	what := fmt.Sprintf("%s lists it, and %s %s, which is not in the backup, controls it", xr.String(), c.Kind, c.Name)
	if hasMovedUp(xr, u) {
		d.add(reason.Uncontrolled, report.Warning, u.Ref, what,
			"a restore makes "+xr.String()+" its controller. In the source cluster, check that the other is being deleted")

		return
	}
	d.add(reason.ControlledByAnother, report.Error, u.Ref, what,
		"a restore ignores such a link. In the source cluster, find out to which of the two it belongs")
}

// hasMovedUp reports whether a restore makes the XR the controller of u, which has none in the backup:
// u is of the XR's tree, and the backup has resolved the link. Its nested XR was being deleted.
func hasMovedUp(xr, u *object) bool {
	composite, alone := xp.CompositeFrom(xr.full()), u.full().DeepCopy()
	alone.SetOwnerReferences(nil)

	return xp.Composed(composite, alone) && !danglingOf(composite.Unstructured)[u.ID()]
}

// checkClaims finds pairs of a claim and an XR in which only one references the other.
func (d *diagnosis) checkClaims() {
	for _, o := range d.with(isClaim) {
		claim := o.full()
		r, ok := xp.ClaimFrom(claim).CompositeRef()
		if !ok || d.isHeldOrDeleting(o) {
			continue
		}
		switch xr := d.Get(r); {
		case xr == nil && d.IsUnread(r):
		case xr == nil:
			d.add(reason.Dangling, report.Error, xp.RefTo(claim), "its XR "+r.String()+" "+d.absent(),
				"restore the XR, or delete the claim: otherwise Crossplane creates another XR, and all that it composes, when it reconciles the claim")
		case !xp.Bound(xp.ClaimFrom(claim), xp.CompositeFrom(xr)):
			d.add(reason.OneSided, report.Error, xp.RefTo(claim), "it names "+r.String()+", which does not name it",
				"backup, restore and Crossplane ignore such a link. Correct the claim's spec.resourceRef, or delete the claim if it is forged")
		}
	}
	for _, o := range d.with(isComposite) {
		xr := o.full()
		r, ok := xp.CompositeFrom(xr).ClaimRef()
		if !ok || d.IsUnread(r) || d.isHeldOrDeleting(o) {
			continue
		}
		switch claim := d.Get(r); {
		case claim == nil:
			d.add(reason.OneSided, report.Warning, xp.RefTo(xr), "its claim "+r.String()+" "+d.absent(),
				"restore the claim, or delete the XR if what it composes is not needed")
		case !xp.Bound(xp.ClaimFrom(claim), xp.CompositeFrom(xr)):
			d.add(reason.OneSided, report.Error, xp.RefTo(xr), "it names "+r.String()+", which does not name it", d.oneSidedHint(xr, claim))
		}
	}
}

// oneSidedHint returns what to do about an XR whose claim references no XR or another one.
func (d *diagnosis) oneSidedHint(xr, claim *unstructured.Unstructured) string {
	other, ok := xp.ClaimFrom(claim).CompositeRef()
	if !ok || d.of == Backup || xp.Label(xr, xp.LabelRestore) == "" {
		return "backup, restore and Crossplane ignore such a link. Find out to which claim the XR belongs, and correct its spec.claimRef"
	}

	return "a restore brought it back, and the claim has " + other.String() + ". To give the claim this one instead, " + xp.HowToGetBack(xp.RefTo(claim))
}

// isHeldOrDeleting reports whether an object in a cluster is held or being deleted. Then a missing
// reference is no problem of its own.
func (d *diagnosis) isHeldOrDeleting(u *object) bool {
	return d.of == Cluster && u.is(isMarked|isDeleting)
}

// checkOrphans finds resources that an XR once composed and that no XR lists. checkUsages covers
// Usages.
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
			d.add(reason.Orphaned, report.Warning, xp.RefTo(u), whyOrphaned(u, owner)+" in the backup", "a restore brings it back without a controller, and holds a "+
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

	return "its label names the XR " + u.GetLabels()[xp.LabelComposite] + ", and no XR lists it"
}

func (d *diagnosis) addOrphan(u *unstructured.Unstructured, c metav1.OwnerReference, owner *object) {
	p := report.Problem{
		Code: reason.Orphaned, Severity: report.Error, Object: xp.RefTo(u), Reason: whyOrphaned(u, owner),
		Next: "nothing updates or deletes it. If another resource took its place, delete it and keep its external resource (managementPolicies without Delete). " +
			"Otherwise add it to the resourceRefs of its XR",
	}
	if restore := xp.Label(u, xp.LabelRestore); restore != "" {
		p.Reason += "; the restore " + restore + " brought it back"
		if xr, r, ok := d.replacementOf(u, owner); ok {
			p.Reason += ", and " + xr.String() + " lists " + r.String() + " in its place, which is newer: Crossplane reconciled the XR without its hold"
			p.Next = `choose which of the two to keep before you delete one: docs/gitops.md, "The hold was taken off"`
		} else if owner == nil && c.UID == "" && d.lacksXR(u) {
			p.Next = "if a restore refused its XR or left it out, repair that, then restore the same backup again: the XR adopts it. The errors of the restore have " +
				"the reason: " + xp.DescribeRestore(restore).String()
		}
	}
	switch {
	case owner != nil:
		p.Others = []xp.Ref{owner.Ref}
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
	if owner == nil {
		for _, xr := range d.roots[u.GetLabels()[xp.LabelComposite]] {
			if xr.Namespace == "" || xr.Namespace == u.GetNamespace() {
				p.Others = append(p.Others, xr.Ref)
			}
		}
	}
	d.found = append(d.found, p)
}

// lacksXR reports whether the XR that composed u does not exist: that in its mark, or the root of its
// tree.
func (d *diagnosis) lacksXR(u *unstructured.Unstructured) bool {
	if h, err := adoption.HoldOf(u); err == nil && h != nil && h.Owner != nil {
		return d.get(*h.Owner) == nil
	}

	return !slices.ContainsFunc(d.roots[xp.Label(u, xp.LabelComposite)], func(xr *object) bool { return xr.Namespace == "" || xr.Namespace == u.GetNamespace() })
}

// replacementOf returns the resource that an XR lists in place of a restored one: a younger one of
// the same kind that no restore created.
func (d *diagnosis) replacementOf(u *unstructured.Unstructured, owner *object) (xr *object, r xp.Ref, ok bool) {
	xrs := []*object{owner}
	if owner == nil {
		xrs = d.roots[xp.Label(u, xp.LabelComposite)]
	}
	for _, xr := range xrs {
		if xr.Namespace != "" && xr.Namespace != u.GetNamespace() {
			continue
		}
		for _, r := range xr.refs {
			other := d.get(r)
			if other == nil || r.GroupVersionKind().GroupKind() != u.GroupVersionKind().GroupKind() {
				continue
			}
			if adoption.TookPlaceOf(other.full(), u) {
				return xr, r, true
			}
		}
	}

	return nil, xp.Ref{}, false
}
