package live

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// elsewhere returns a function that reports whether an object of a kind has nothing to do with the
// scope's namespace. If one cluster-scoped MR is missing, all of its kind are listed.
func (s *surveyor) elsewhere(gk schema.GroupKind) func(u *unstructured.Unstructured) bool {
	if s.scope.Namespace == "" || !s.categories[xp.CategoryManaged][gk] {
		return func(*unstructured.Unstructured) bool { return false }
	}
	isNamed := s.objects.Named()

	return func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() == "" && xp.Label(u, xp.LabelClaimNamespace) != s.scope.Namespace && !isNamed(u)
	}
}

// addUndecided adds the cluster-scoped XRs of trees with objects in the namespace, and the others
// as witnesses.
func (s *surveyor) addUndecided() {
	byID, linked := map[xp.ID]*unstructured.Unstructured{}, map[xp.ID][]xp.ID{}
	for _, u := range s.undecided {
		byID[xp.RefTo(u).ID()] = u
	}
	var queue []xp.ID
	for id, u := range byID {
		refs, _ := xp.CompositeFrom(u).ResourceRefs() // An XR whose references can't be read links to no other.
		for _, r := range refs {
			if to := byID[r.ID()]; to != nil && composes(u, to) {
				linked[id], linked[r.ID()] = append(linked[id], r.ID()), append(linked[r.ID()], id)
			}
		}
		if concerns(u, refs, s.scope.Namespace) {
			queue = append(queue, id)
		}
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		if u := byID[id]; u != nil {
			s.objects.Add(u)
			s.addToSnapshot(u)
			queue = append(queue, linked[id]...)
			delete(byID, id)
		}
	}
	for _, u := range byID {
		s.objects.AddWitness(u)
	}
	s.undecided = nil
}

// composes reports whether an XR composes another one that it lists. An XR with a claim is composed
// by none. Without a controller, which Velero alone does not restore, the label with the root of the
// tree has to be the same: an XR can list any other.
func composes(xr, listed *unstructured.Unstructured) bool {
	if c, ok := xp.Controller(listed); ok {
		return c.UID == xr.GetUID()
	}
	_, isClaimed := xp.CompositeFrom(listed).ClaimRef()
	root := xp.Label(listed, xp.LabelComposite)

	return !isClaimed && root != "" && (root == xr.GetName() || root == xp.Label(xr, xp.LabelComposite))
}

// concerns reports whether a cluster-scoped XR itself refers to the namespace.
func concerns(xr *unstructured.Unstructured, refs []xp.Ref, namespace string) bool {
	claim, ok := xp.CompositeFrom(xr).ClaimRef()

	return ok && claim.Namespace == namespace || xr.GetLabels()[xp.LabelClaimNamespace] == namespace ||
		slices.ContainsFunc(refs, func(r xp.Ref) bool { return r.Namespace == namespace })
}
