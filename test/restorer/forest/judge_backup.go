package forest

import (
	"fmt"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// closure checks the content of the backup.
func closure(s *Scenario) []string {
	var broken []string
	want := wanted(s)
	for i := range want {
		if s.Archive.Items[i] == nil {
			broken = append(broken, fmt.Sprintf("%s is missing in the backup: %v", i, s.Archive.Failed[i]))
		}
	}
	for i := range s.Archive.Items {
		if o := s.Forest.byItem[i]; o != nil && !want[i] {
			broken = append(broken, fmt.Sprintf("%s (%s) is in the backup and does not belong there", i, o.Shape))
		}
	}

	return broken
}

// wanted returns what a backup must have: the selected objects and all that they need, as far as
// the filters allow it.
func wanted(s *Scenario) map[xp.Item]bool {
	want := map[xp.Item]bool{}
	var take func(o *Object)
	take = func(o *Object) {
		i := itemOf(o.Unstructured)
		if want[i] || o.GetDeletionTimestamp() != nil {
			return
		}
		want[i] = true
		for _, b := range o.Needs {
			if leftOut(s, o, b) == "" {
				take(b)
			}
		}
	}
	for _, o := range s.Forest.Objects {
		if isSelected(s.Archive.Of, o) {
			take(o)
		}
	}

	return want
}

// leftOut returns why a backup must not include o, which another object needs, "" if it must.
func leftOut(s *Scenario, of, o *Object) string {
	spec := s.Archive.Of.Spec
	switch {
	case o.GetDeletionTimestamp() != nil:
		return "it is being deleted"
	case o.GetNamespace() == "" && isFalse(spec.IncludeClusterResources):
		return "nothing cluster-scoped is wanted"
	case o.GetNamespace() == "" || included(spec.IncludedNamespaces, spec.ExcludedNamespaces, o.GetNamespace()):
		return ""
	case of.Publishes == o && spec.IncludeClusterResources == nil && included(nil, spec.ExcludedNamespaces, o.GetNamespace()),
		of.Publishes == o && isTrue(spec.IncludeClusterResources) && included(nil, spec.ExcludedNamespaces, o.GetNamespace()):
		return ""
	default:
		return "its namespace is not wanted"
	}
}

// namedInBackup checks that the log names what the backup did not follow.
func namedInBackup(s *Scenario) []string {
	var broken []string
	missing := func(of *Object, what string, r xp.Ref) {
		self := xp.String(of.Unstructured) + " names "
		names := func(kind string) bool {
			return s.Archive.Record.Names(self+kind+" "+r.Path()+", but ") || s.Archive.Record.Names(self+kind+" "+r.Name+", but ") ||
				s.Archive.Record.Names(self+kind+" "+of.GetNamespace()+"/"+r.Name+", but ")
		}
		k, _ := KindOf(r.GroupVersionKind().GroupKind())
		if !names(r.Kind) && !names(k.Resource().String()) {
			broken = append(broken, fmt.Sprintf("%s (%s) is in the backup, and nothing says that %s %s was not followed", xp.String(of.Unstructured), of.Shape, r, what))
		}
	}
	for i := range s.Archive.Items {
		o := s.Forest.byItem[i]
		if o == nil {
			continue
		}
		for _, r := range o.Unfollowed {
			missing(o, "leads astray and", r)
		}
		for _, b := range o.Needs {
			if why := leftOut(s, o, b); why != "" {
				missing(o, why+", and", xp.RefTo(b.Unstructured))
			}
		}
	}

	return broken
}
