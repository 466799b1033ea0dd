package diagnosis

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Trees returns the trees that the objects make, in a stable order: claims with their XRs, XRs without a claim or a parent, and MRs that belong to no XR.
// Links are followed only if they hold both ways.
func (o *Objects) Trees() []*report.Node {
	f := &forest{objects: o, placed: map[xp.ID]bool{}}
	for _, claim := range sorted(o.claims) {
		f.roots = append(f.roots, f.claim(claim))
	}
	for _, xr := range sorted(o.composites) {
		if !f.placed[xp.RefTo(xr).ID()] && o.parent(xr) == nil {
			f.roots = append(f.roots, f.composite(xr))
		}
	}
	// What is left is a ring of XRs, each listed by another.
	for _, u := range sorted(slices.Concat(o.composites, o.managed)) {
		if !f.placed[xp.RefTo(u).ID()] {
			f.roots = append(f.roots, f.any(u))
		}
	}

	return f.roots
}

// parent returns the XR that composes u; nil if there is none.
func (o *Objects) parent(u *unstructured.Unstructured) *unstructured.Unstructured {
	for _, xr := range o.lists[xp.RefTo(u).ID()] {
		if isComposedBy(xr, u) {
			return xr
		}
	}

	return nil
}

type forest struct {
	objects *Objects
	// placed are the objects that are in a tree already: a ring of XRs, or an object that two XRs list, must not come twice.
	placed map[xp.ID]bool
	roots  []*report.Node
}

func (f *forest) any(u *unstructured.Unstructured) *report.Node {
	if xp.IsComposite(u) {
		return f.composite(u)
	}

	return f.node(u)
}

func (f *forest) claim(u *unstructured.Unstructured) *report.Node {
	n := f.node(u)
	claim := xp.ClaimFrom(u)
	n.Composition, n.Revision = claim.Composition(), claim.Revision()
	r, ok := claim.CompositeRef()
	if !ok {
		return n
	}
	xr := f.objects.Get(r)
	switch {
	case xr == nil && !f.objects.IsUnread(r):
		n.Children = append(n.Children, &report.Node{Ref: r, Role: report.RoleComposite, State: report.Missing})
	case xr != nil && xp.Bound(claim, xp.CompositeFrom(xr)):
		n.Children = append(n.Children, f.composite(xr))
	}

	return n
}

func (f *forest) composite(u *unstructured.Unstructured) *report.Node {
	n := f.node(u)
	xr := xp.CompositeFrom(u)
	n.Composition, n.Revision = xr.Composition(), xr.Revision()
	for _, r := range f.objects.refs[u.GetUID()] {
		child := f.objects.Get(r)
		switch {
		case child == nil && f.objects.IsUnread(r):
			n.Children = append(n.Children, &report.Node{Ref: r, Role: report.RoleOther, State: report.Unread})
		case child == nil:
			n.Children = append(n.Children, &report.Node{Ref: r, Role: report.RoleOther, State: report.Missing})
		case f.placed[r.ID()] || !isComposedBy(u, child):
			n.Children = append(n.Children, &report.Node{Ref: r, Role: roleOf(child), State: report.Foreign})
		default:
			n.Children = append(n.Children, f.any(child))
		}
	}

	return n
}

// node returns what a resource says of itself.
func (f *forest) node(u *unstructured.Unstructured) *report.Node {
	f.placed[xp.RefTo(u).ID()] = true
	n := &report.Node{
		Ref: xp.RefTo(u), Role: roleOf(u), State: f.state(u), ExternalName: u.GetAnnotations()[xp.AnnotationExternalName], Paused: xp.IsPaused(u),
		Synced: conditionOf(u, xp.ConditionSynced), Ready: conditionOf(u, xp.ConditionReady),
	}
	if created := u.GetCreationTimestamp(); !created.IsZero() {
		n.Created = &created.Time
	}
	if h, err := adoption.HoldOf(u); err == nil && h != nil {
		n.Hold = &report.Hold{Restore: h.Restore, Since: parsed(h.Since), Unpaused: parsed(h.Unpaused)}
	}

	return n
}

func (f *forest) state(u *unstructured.Unstructured) report.State {
	h, err := adoption.HoldOf(u)
	switch {
	case u.GetDeletionTimestamp() != nil:
		return report.Deleting
	case err != nil || h != nil:
		return report.Held
	case xp.IsClaim(u):
		return report.Adopted
	}
	xr := f.objects.parent(u)
	switch {
	case xr == nil && xp.IsComposite(u):
		return report.Adopted // It is nobody's but its own.
	case xr == nil:
		return report.Alone
	case isHeld(xr):
		return report.Held
	case !xp.Controls(xr, u):
		return report.Foreign
	default:
		return report.Adopted
	}
}

func roleOf(u *unstructured.Unstructured) report.Role {
	switch {
	case xp.IsClaim(u):
		return report.RoleClaim
	case xp.IsComposite(u):
		return report.RoleComposite
	case xp.IsUsage(u):
		return report.RoleUsage
	case xp.IsManaged(u):
		return report.RoleManaged
	default:
		return report.RoleOther
	}
}

func conditionOf(u *unstructured.Unstructured, conditionType string) *report.Condition {
	c, ok := xp.ConditionOf(u, conditionType)
	if !ok {
		return nil
	}
	condition := &report.Condition{Status: c.Status, Reason: c.Reason, Message: c.Message}
	if !c.Since.IsZero() {
		condition.Since = &c.Since
	}

	return condition
}

func parsed(stamp string) *time.Time {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return nil
	}

	return &t
}

// sorted returns the objects in the order of their Refs.
func sorted(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	refs := make(map[*unstructured.Unstructured]xp.Ref, len(objects)) // Reading them is what takes the time.
	for _, u := range objects {
		refs[u] = xp.RefTo(u)
	}

	return slices.SortedFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int { return refs[a].Compare(refs[b]) })
}
