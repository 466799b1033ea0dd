package exchange

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// refuseRoot returns why the live XR or claim can't be exchanged; none if it can.
func (s *Snapshot) refuseRoot() []reason.Message {
	root, saved := s.Live.Root, s.Saved.Root
	owner, owned := xp.Controller(root)
	claim, claimed := xp.CompositeFrom(root).ClaimRef()
	switch {
	case !xp.IsClaim(root) && !xp.IsComposite(root):
		return refuse(reason.NotTheRoot, "it is neither a claim nor an XR that Crossplane has reconciled")
	case root.GetUID() == saved.GetUID() || root.GetCreationTimestamp().Time.Before(saved.GetCreationTimestamp().Time):
		return refuse(reason.ExistedAtBackup, "it existed at the backup, so Crossplane composed its present resources since then; there is nothing to exchange")
	case owned:
		return refuse(reason.NotTheRoot, "%s %s composes it; exchange that", owner.Kind, owner.Name)
	case claimed && !xp.IsClaim(root):
		return refuse(reason.NotTheRoot, "it belongs to the claim %s; exchange that", claim)
	}
	if why := refuseState(root); !why.IsZero() {
		return []reason.Message{why}
	}
	if refs, err := Listed(saved); err != nil || len(refs) == 0 {
		return refuse(reason.NothingToExchange, "it has composed nothing in the backup; give the backup that has its composed resources")
	}
	if !xp.HasComposed(root) && !IsMarked(root) {
		return refuse(reason.NothingToExchange, "it has composed nothing in this cluster, so the next restore gives it its resources of the backup; restore again")
	}

	return nil
}

func refuse(code reason.Code, format string, args ...any) []reason.Message {
	return []reason.Message{code.Messagef(format, args...)}
}

// refuseState returns which operation on the live XR or claim an exchange would disturb; the zero
// Message if there is none.
func refuseState(root *unstructured.Unstructured) reason.Message {
	switch {
	case root.GetDeletionTimestamp() != nil:
		return reason.BeingDeleted.Messagef("it is being deleted; when it is gone, restore again")
	case xp.HasAnnotation(root, adoption.AnnotationHold):
		return reason.Held.Messagef("a restore holds it; wait until it is adopted, or see what it waits for: %s", xp.ValidateCommand(xp.RefTo(root)))
	case xp.Label(root, xp.LabelRestore) != "":
		return reason.CreatedByRestore.Messagef(`the restore %s created it, so it did not exist before the restore: docs/gitops.md, "The hold was taken off"`,
			xp.Label(root, xp.LabelRestore))
	case xp.IsPaused(root) && !IsMarked(root):
		return reason.PausedByUser.Messagef("a user has paused it; remove that pause first")
	default:
		return reason.Message{}
	}
}

// refuseItem returns why an item can't be deleted; the zero Message if it can.
func (s *Snapshot) refuseItem(u *unstructured.Unstructured, i Item) reason.Message {
	switch kind := u.GetKind(); {
	case xp.IsClaim(u):
		return reason.NotTheRoot.Messagef("it is a claim; exchange that first")
	case xp.HasAnnotation(u, adoption.AnnotationHold):
		return reason.Held.Messagef("a restore holds it; wait until it is adopted")
	case !IsMarked(u) && xp.IsPaused(u):
		return reason.PausedByUser.Messagef("it is paused, so its provider would not delete it; remove that pause first")
	case !xp.IsCustomGroup(u.GroupVersionKind().Group) && kind == "Namespace", kind == "CustomResourceDefinition", xp.IsPlatform(u), xp.IsPackage(u):
		return reason.DeletesOthers.Messagef("its deletion would delete other objects, which are in it or of its kinds; exchange its XR by hand")
	case xp.Label(u, xp.LabelInUse) == "true" && !s.isReleased(u):
		return reason.ProtectedByUsage.Messagef("a Usage protects it from deletion; remove the Usage first")
	case i.Managed:
		return refuseManaged(u, i)
	default:
		return reason.Message{}
	}
}

func refuseManaged(mr *unstructured.Unstructured, i Item) reason.Message {
	synced, reported := xp.ConditionOf(mr, xp.ConditionSynced)
	_, can := Keep(mr)
	switch identity := xp.IdentityOf(mr); {
	case !reported:
		return reason.Stuck.Messagef("its provider has not reconciled it, so its external resource would stay; is its provider running?")
	case identity == xp.CreatePending:
		return reason.CreatePending.Messagef("its external resource is being created; wait until it has an external-name")
	case identity == xp.Unknown, identity == xp.Recoverable:
		return reason.IdentityMissing.Messagef("it has no external-name, so its external resource is unknown; wait until it has one, or set it: %s", synced.Message)
	case i.Stays != "" && !i.Guarded && !can:
		return reason.KeepUnsupported.Messagef("its external resource must stay, and its kind has neither managementPolicies nor a deletionPolicy for that: %s",
			i.Stays)
	default:
		return reason.Message{}
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
func (s *Snapshot) refuseSaved() []reason.Message {
	var refused []reason.Message
	for _, r := range s.Saved.Missing {
		if !s.isDangling(r) {
			refused = append(refused, reason.NotInBackup.Messagef("%s: it was composed at the backup and is not in it, so a restored XR would wait for it; "+
				"give a backup that has it", r))
		}
	}
	owners := map[types.UID]bool{s.Live.Root.GetUID(): true}
	for _, u := range s.SameNames {
		if xp.IsComposite(u) && !s.Live.has(u) {
			owners[u.GetUID()] = true
		}
	}
	for _, u := range s.SameNames {
		if s.Live.has(u) {
			continue
		}
		if why := s.refuseSameName(u, owners); !why.IsZero() {
			refused = append(refused, of(xp.RefTo(u), why))
		}
	}

	return refused
}

// of returns a message about an object.
func of(r xp.Ref, why reason.Message) reason.Message {
	return why.Code.Messagef("%s: %s", r, why.Text)
}

// refuseSameName returns why a live object of the backup can't stay where it is; the zero Message
// if it can. The owners are XRs that it may belong to.
func (s *Snapshot) refuseSameName(u *unstructured.Unstructured, owners map[types.UID]bool) reason.Message {
	c, ok := xp.Controller(u)
	claim, claimed := xp.CompositeFrom(u).ClaimRef()
	switch {
	case xp.HasAnnotation(u, adoption.AnnotationHold):
		return reason.Held.Messagef("a restore has brought it back and holds it; wait until it is adopted")
	case u.GetDeletionTimestamp() != nil:
		return reason.BeingDeleted.Messagef("it is in the backup, and it is being deleted in this cluster; wait until it is gone")
	case claimed && claim.ID() == xp.RefTo(s.Live.Root).ID():
		return reason.Message{} // It is the claim's XR of the backup; the claim has a new one too.
	case ok && owners[c.UID]:
		return reason.Message{}
	case ok:
		return reason.ControlledByAnother.Messagef("it is in the backup, and it belongs to %s %s in this cluster", c.Kind, c.Name)
	default:
		return reason.Uncontrolled.Messagef("it is in the backup and in this cluster, and it has no controller; " +
			"find its owner, or delete it without its external resource if it has none")
	}
}

// isDangling reports whether the backup records that an object did not exist.
func (s *Snapshot) isDangling(r xp.Ref) bool {
	return slices.ContainsFunc(s.Saved.XRs(), func(xr *unstructured.Unstructured) bool {
		refs, _ := xp.UnresolvedRefs(xr)

		return slices.ContainsFunc(refs, func(d xp.Ref) bool { return d.ID() == r.ID() })
	})
}
