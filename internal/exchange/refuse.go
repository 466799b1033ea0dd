package exchange

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// refuseRoot returns why the live XR or claim can't be exchanged; none if it can.
func (s *Snapshot) refuseRoot() []string {
	root, saved := s.Live.Root, s.Saved.Root
	owner, owned := xp.Controller(root)
	claim, claimed := xp.CompositeFrom(root).ClaimRef()
	switch {
	case !xp.IsClaim(root) && !xp.IsComposite(root):
		return []string{"it is neither a claim nor an XR that Crossplane has reconciled"}
	case root.GetUID() == saved.GetUID() || root.GetCreationTimestamp().Time.Before(saved.GetCreationTimestamp().Time):
		return []string{"it was there when it was backed up, so nobody has made it anew; what it composes now has come since"}
	case owned:
		return []string{fmt.Sprintf("it is composed by %s %s; exchange that", owner.Kind, owner.Name)}
	case claimed && !xp.IsClaim(root):
		return []string{"it belongs to the claim " + claim.String() + "; exchange that"}
	}
	if why := refuseState(root); why != "" {
		return []string{why}
	}
	if refs, err := Listed(saved); err != nil || len(refs) == 0 {
		return []string{"in the backup it has composed nothing"}
	}
	if !xp.HasComposed(root) && !IsMarked(root) {
		return []string{"it has composed nothing, so the next restore gives it what it composed in the backup; restore again"}
	}

	return nil
}

// refuseState returns which operation on the live XR or claim an exchange would disturb; "" if
// there is none.
func refuseState(root *unstructured.Unstructured) string {
	switch {
	case root.GetDeletionTimestamp() != nil:
		return "it is being deleted; when it is gone, restore again"
	case xp.HasAnnotation(root, adoption.AnnotationHold):
		return "a restore holds it; wait until it is adopted, or see what it waits for: " + xp.ValidateCommand(xp.RefTo(root)).String()
	case xp.Label(root, xp.LabelRestore) != "":
		return "the restore " + xp.Label(root, xp.LabelRestore) + ` has made it, so it was not there first: docs/gitops.md, "The hold was taken off"`
	case xp.IsPaused(root) && !IsMarked(root):
		return "somebody has paused it; take the pause off first"
	default:
		return ""
	}
}

// refuseItem returns why an item can't be deleted; "" if it can.
func (s *Snapshot) refuseItem(u *unstructured.Unstructured, i Item) string {
	switch kind := u.GetKind(); {
	case xp.IsClaim(u):
		return "it is a claim of its own; exchange that first"
	case xp.HasAnnotation(u, adoption.AnnotationHold):
		return "a restore holds it"
	case !IsMarked(u) && xp.IsPaused(u):
		return "it is paused, so it would not go; take the pause off first"
	case !xp.IsCustomGroup(u.GroupVersionKind().Group) && kind == "Namespace", kind == "CustomResourceDefinition", xp.IsPlatform(u), xp.IsPackage(u):
		return "with it would go all that is in it or of it; exchange its XR by hand"
	case xp.Label(u, xp.LabelInUse) == "true" && !s.isReleased(u):
		return "a Usage protects it from being deleted; remove that first"
	case i.Managed:
		return refuseManaged(u, i)
	default:
		return ""
	}
}

func refuseManaged(mr *unstructured.Unstructured, i Item) string {
	synced, reported := xp.ConditionOf(mr, xp.ConditionSynced)
	_, can := Keep(mr)
	switch identity := xp.IdentityOf(mr); {
	case !reported:
		return "its provider has not reconciled it, so nobody would delete its external resource; is its provider running?"
	case identity == xp.CreatePending:
		return "its external resource is being created; wait until it has an external-name"
	case identity == xp.Unknown, identity == xp.Recoverable:
		return "it is not known which external resource it manages; wait until it has an external-name, or set it: " + synced.Message
	case i.Stays != "" && !i.Guarded && !can:
		return "its external resource is to stay, and its kind has neither managementPolicies nor a deletionPolicy to say so: " + i.Stays
	default:
		return ""
	}
}

// isReleased reports whether the Usage that protects u is deleted too.
func (s *Snapshot) isReleased(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(s.Live.Below, func(usage *unstructured.Unstructured) bool {
		used, ok := xp.Used(usage)

		return xp.IsUsage(usage) && ok && used.ID() == xp.RefTo(u).ID()
	})
}

// refuseSaved returns why objects of the backup could not come back.
func (s *Snapshot) refuseSaved() []string {
	var refused []string
	for _, r := range s.Saved.Missing {
		if !s.isDangling(r) {
			refused = append(refused, r.String()+": it was composed, and is not in the backup, so a restored XR would wait for it; give a backup that has it")
		}
	}
	owners := map[types.UID]bool{s.Live.Root.GetUID(): true}
	for _, u := range s.There {
		if xp.IsComposite(u) && !s.Live.has(u) {
			owners[u.GetUID()] = true
		}
	}
	for _, u := range s.There {
		if s.Live.has(u) {
			continue
		}
		if why := s.refuseThere(u, owners); why != "" {
			refused = append(refused, xp.String(u)+": "+why)
		}
	}

	return refused
}

// refuseThere returns why a live object of the backup can't stay where it is; "" if it can. The
// owners are XRs that it may belong to.
func (s *Snapshot) refuseThere(u *unstructured.Unstructured, owners map[types.UID]bool) string {
	c, ok := xp.Controller(u)
	claim, claimed := xp.CompositeFrom(u).ClaimRef()
	switch {
	case xp.HasAnnotation(u, adoption.AnnotationHold):
		return "a restore has brought it back and holds it; wait until it is adopted"
	case u.GetDeletionTimestamp() != nil:
		return "it is of the backup, and is being deleted; wait until it is gone"
	case claimed && claim.ID() == xp.RefTo(s.Live.Root).ID():
		return "" // It is the claim's XR of the backup; the claim has a new one too.
	case ok && owners[c.UID]:
		return ""
	case ok:
		return fmt.Sprintf("it is of the backup, and belongs to %s %s in this cluster", c.Kind, c.Name)
	default:
		return "it is of the backup and in this cluster, and nothing controls it; see whose it is, and delete it without its external resource if it is nobody's"
	}
}

// isDangling reports whether the backup records that an object did not exist.
func (s *Snapshot) isDangling(r xp.Ref) bool {
	return slices.ContainsFunc(s.Saved.XRs(), func(xr *unstructured.Unstructured) bool {
		refs, _ := xp.UnresolvedRefs(xr)

		return slices.ContainsFunc(refs, func(d xp.Ref) bool { return d.ID() == r.ID() })
	})
}
