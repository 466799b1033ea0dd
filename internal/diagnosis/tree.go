package diagnosis

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Trees returns the trees of the objects in a stable order: claims with their XRs, XRs without a
// claim or parent, and MRs without an XR. It follows a reference only if both sides agree.
func (o *Objects) Trees() []*report.Node {
	f := &treeBuilder{objects: o, placed: map[*object]bool{}}
	for _, claim := range o.with(isClaim) {
		f.addTree(f.claim(claim))
	}
	for _, xr := range o.with(isComposite) {
		if !f.placed[xr] && o.parent(xr) == nil {
			f.addTree(f.composite(xr))
		}
	}
	for _, u := range o.with(isForged) {
		f.addTree(f.node(u, u.source.Part(shapeNode)))
	}
	// The rest are rings of XRs, each listed by another one.
	for _, u := range o.with(isComposite | isManaged | isNew) {
		if !f.placed[u] && !o.isElsewhere(u) {
			f.addTree(f.subtree(u))
		}
	}

	return f.roots
}

// isElsewhere reports whether u, which no XR composes, is a cluster-scoped MR that does not belong
// to the namespace of Limit. An XR can list any MR, so that proves nothing.
func (o *Objects) isElsewhere(u *object) bool {
	return o.namespace != "" && u.Namespace == "" && !u.is(isComposite) && !o.isAddedXR(u.controller) &&
		xp.Label(u.source.Part(shapeOwner), xp.LabelClaimNamespace) != o.namespace
}

// parent returns the XR that composes u; nil if there is none.
func (o *Objects) parent(u *object) *object {
	for _, xr := range o.listers(u) {
		if o.isComposedBy(xr, u) {
			return xr
		}
	}

	return nil
}

// isComposedBy reports whether an XR that lists u composes it: no other object controls u.
func (o *Objects) isComposedBy(xr, u *object) bool {
	switch {
	case u.is(isForged) || xr.is(isForged):
		return false
	case u.is(isControlled):
		return controls(xr, u)
	}
	owner, known := o.owners[xr]
	if !known {
		owner = xp.CompositeFrom(xr.source.Part(shapeOwner))
		o.owners[xr] = owner
	}

	return xp.Composed(owner, u.source.Part(shapeOwner))
}

type treeBuilder struct {
	objects *Objects
	// placed are the objects in a tree: in a ring of XRs, or listed by two, none must appear twice.
	placed map[*object]bool
	roots  []*report.Node
	// level is the depth of the current XR. deeper are those below maxDepth, which become roots.
	level  int
	deeper []*object
}

// maxDepth limits the levels of a tree, whose output grows with their square.
const maxDepth = 100

// addTree adds a tree, and the XRs that are too deep for it.
func (f *treeBuilder) addTree(root *report.Node) {
	f.roots = append(f.roots, root)
	for len(f.deeper) > 0 {
		next := f.deeper[0]
		f.deeper = f.deeper[1:]
		if !f.placed[next] {
			f.roots = append(f.roots, f.composite(next))
		}
	}
}

func (f *treeBuilder) subtree(o *object) *report.Node {
	if o.is(isComposite) {
		return f.composite(o)
	}

	return f.node(o, o.source.Part(shapeNode))
}

func (f *treeBuilder) claim(o *object) *report.Node {
	u := o.full()
	n := f.node(o, u)
	claim := xp.ClaimFrom(u)
	n.Composition, n.Revision = claim.Composition(), claim.Revision()
	r, ok := claim.CompositeRef()
	switch xr := f.objects.get(r); {
	case !ok:
	case xr == nil && !f.objects.IsUnread(r):
		n.Children = append(n.Children, &report.Node{Ref: r, Role: report.RoleComposite, State: report.Missing})
	case xr != nil && !xr.is(isClaim|isForged) && xp.Bound(claim, xp.CompositeFrom(xr.full())):
		n.Children = append(n.Children, f.composite(xr))
	}

	return n
}

func (f *treeBuilder) composite(o *object) *report.Node {
	u := o.full()
	n := f.node(o, u)
	xr := xp.CompositeFrom(u)
	n.Composition, n.Revision = xr.Composition(), xr.Revision()
	f.level++
	for _, r := range o.refs {
		child, below := f.objects.get(r), &report.Node{Ref: r, Role: report.RoleOther, State: report.Missing}
		switch {
		case child == nil && f.objects.IsUnread(r):
			below.State = report.Unread
		case child == nil:
		case f.placed[child] || !f.objects.isComposedBy(o, child):
			below.Role, below.State = roleOf(child), report.Foreign
		case child.is(isComposite) && f.level == maxDepth:
			f.deeper = append(f.deeper, child)

			continue
		default:
			below = f.subtree(child)
		}
		n.Children = append(n.Children, below)
	}
	f.level--

	return n
}

// node returns the node of an object, without children.
func (f *treeBuilder) node(o *object, u *unstructured.Unstructured) *report.Node {
	f.placed[o] = true
	n := &report.Node{
		Ref: o.Ref, Role: roleOf(o), State: f.state(o), ExternalName: xp.Annotation(u, xp.AnnotationExternalName), Paused: xp.IsPaused(u),
		Synced: conditionOf(u, xp.ConditionSynced), Ready: conditionOf(u, xp.ConditionReady),
	}
	if created := u.GetCreationTimestamp(); !created.IsZero() {
		n.Created = &created.Time
	}
	if !o.is(isMarked) {
		return n
	}
	if h, err := hold.Of(o.full()); err == nil && h != nil {
		n.Hold = &report.Hold{Restore: h.Restore, Since: parseTime(h.Since), Unpaused: parseTime(h.Unpaused)}
	}

	return n
}

func (f *treeBuilder) state(u *object) report.State {
	switch {
	case u.is(isDeleting):
		return report.Deleting
	case u.is(isMarked):
		return report.Held
	case u.is(isForged):
		return report.Alone
	case u.is(isClaim):
		return report.Adopted
	}
	xr := f.objects.parent(u)
	switch {
	case xr == nil && u.is(isComposite):
		return report.Adopted // It is a root.
	case xr == nil:
		return report.Alone
	case xr.is(isMarked):
		return report.Held
	case !controls(xr, u):
		return report.Foreign
	default:
		return report.Adopted
	}
}

func roleOf(u *object) report.Role {
	switch {
	case u.is(isClaim | isForged):
		return report.RoleClaim
	case u.is(isComposite):
		return report.RoleComposite
	case u.is(isUsage):
		return report.RoleUsage
	case u.is(isManaged):
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
	if since := c.Since; !since.IsZero() {
		condition.Since = &since
	}

	return condition
}

func parseTime(stamp string) *time.Time {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return nil
	}

	return &t
}
