package forest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func again(s *Scenario) []string {
	return changed(s.Second.Before, s.Second.After, func(xp.ID) bool { return true })
}

func leavesLive(s *Scenario) []string {
	return changed(s.First.Before, s.First.After, func(id xp.ID) bool {
		o := s.Forest.byID[id]

		return s.First.Before[id] != nil && (o == nil || o.isCrossplanes())
	})
}

// changed says which of the objects that are asked about are not the same any more.
func changed(before, after map[xp.ID]*unstructured.Unstructured, about func(xp.ID) bool) []string {
	var broken []string
	for id, was := range before {
		if is := after[id]; about(id) && !reflect.DeepEqual(was, is) {
			broken = append(broken, fmt.Sprintf("%s has changed: %s", xp.String(was), cmp.Diff(was, is)))
		}
	}
	for id, is := range after {
		if before[id] == nil && about(id) {
			broken = append(broken, xp.String(is)+" is new")
		}
	}

	return broken
}

func ofOthers(s *Scenario) []string {
	spec := s.First.Of.Spec
	if len(spec.IncludedNamespaces)+len(spec.ExcludedNamespaces) == 0 || isTrue(spec.IncludeClusterResources) {
		return nil
	}
	var broken []string
	s.created(func(o *Object, u *unstructured.Unstructured) {
		switch ns := o.GetNamespace(); {
		case ns != "" && !included(spec.IncludedNamespaces, spec.ExcludedNamespaces, ns):
			broken = append(broken, fmt.Sprintf("%s (%s) was in none of the namespaces", xp.String(u), o.Shape))
		case ns == "" && o.Role != RolePlatform && o.Role != RoleConfig:
			if whose := s.Forest.claimant(o); whose == "" || !included(spec.IncludedNamespaces, spec.ExcludedNamespaces, whose) {
				broken = append(broken, fmt.Sprintf("%s (%s) is of namespace %q", xp.String(u), o.Shape, whose))
			}
		}
	})

	return broken
}

// claimant is the namespace of the claim that brought an object about; "" if none did.
func (f *Forest) claimant(o *Object) string {
	for seen := map[*Object]bool{}; o != nil && !seen[o]; o = o.parent {
		seen[o] = true
		if ns := text(o.Unstructured, "spec", "claimRef", "namespace"); ns != "" && o.Role == RoleXR {
			return ns
		}
	}

	return ""
}

func foreign(s *Scenario) []string {
	var broken []string
	s.created(func(o *Object, u *unstructured.Unstructured) {
		if o.isCrossplanes() {
			return
		}
		want := reset(o.Unstructured)
		want.SetNamespace(u.GetNamespace())
		u = reset(u)
		l := u.GetLabels()
		delete(l, velerov1.RestoreNameLabel)
		delete(l, velerov1.BackupNameLabel)
		if len(l) == 0 {
			l = nil
		}
		u.SetLabels(l)
		if s.Mask != nil {
			s.Mask(want)
			s.Mask(u)
		}
		if diff := cmp.Diff(want.Object, u.Object); diff != "" {
			broken = append(broken, fmt.Sprintf("%s (%s) is not as Velero alone restores it: %s", xp.String(u), o.Shape, diff))
		}
	})

	return broken
}

// namedInRestore looks for what was left out in the log, and in the errors.
func namedInRestore(s *Scenario) []string {
	broken := leftOutInSilence(s)
	s.created(func(o *Object, u *unstructured.Unstructured) {
		if !o.isCrossplanes() || o.Role == RolePlatform && o.Kind != revision || s.isCopy(o) {
			return
		}
		for _, was := range o.GetOwnerReferences() {
			kept := false
			for _, is := range u.GetOwnerReferences() {
				kept = kept || is.Kind == was.Kind && is.Name == was.Name
			}
			if kept || !o.isOwned() || o.Composer != nil && awaits(u, s.First.After[s.at(o.Composer)]) ||
				s.First.Said.Names("name="+xp.String(o.Unstructured), "owner="+was.Kind+" "+was.Name, "reason=") {
				continue
			}
			broken = append(broken, fmt.Sprintf("%s (%s) has lost its owner %s %s, and nothing says so", xp.String(u), o.Shape, was.Kind, was.Name))
		}
	})

	return broken
}

// leftOutInSilence are those that the restore came to and did not create, and nothing says so.
func leftOutInSilence(s *Scenario) []string {
	var broken []string
	created := map[xp.Item]bool{}
	for _, c := range s.First.Created {
		created[c.Item] = true
	}
	for i := range s.First.Tried {
		o := s.Forest.byItem[i]
		if o == nil || created[i] || s.First.Before[s.at(o)] != nil || s.First.After[s.at(o)] != nil {
			continue
		}
		self, err := xp.String(o.Unstructured), s.First.Failed[i]
		if s.says(err, o) || s.First.Said.Names("ot restored", self, "reason=") || s.First.Said.Names("Not restored: ", self) ||
			s.First.Said.Names("Not restored, like others of its kind", "name="+o.Kind.Kind+" ") {
			continue
		}
		broken = append(broken, fmt.Sprintf("%s (%s) was left out, and nothing says so: %v", self, o.Shape, err))
	}

	return broken
}

// says reports whether an error of the restore names an object, or its kind if nothing serves that.
func (s *Scenario) says(err error, o *Object) bool {
	if err == nil {
		return false
	}
	there := s.at(o)

	return strings.Contains(err.Error(), xp.String(o.Unstructured)) || strings.Contains(err.Error(), there.Namespace+"/"+there.Name) ||
		strings.Contains(err.Error(), "no matches for kind")
}

// isOwned reports whether the owners of an object are the plugin's to bring back.
func (o *Object) isOwned() bool {
	return o.Role == RoleSecret || o.Role == RoleUsage || o.Kind == revision || o.isComposed()
}

func order(s *Scenario) []string {
	var broken []string
	place := map[*Object]int{}
	for n, c := range s.First.Created {
		if o := s.Forest.byItem[c.Item]; o != nil {
			place[o] = n + 1
		}
	}
	for o := range place {
		for _, pair := range s.ordered(o) {
			first, then := pair[0], pair[1]
			if place[first] > place[then] && place[then] > 0 && !s.Forest.asks(first, then) {
				broken = append(broken, fmt.Sprintf("%s (%s) was restored before %s (%s)",
					xp.String(then.Unstructured), then.Shape, xp.String(first.Unstructured), first.Shape))
			}
		}
	}

	return broken
}

// ordered are the pairs with an object of which one has to come before the other.
func (s *Scenario) ordered(o *Object) [][2]*Object {
	var pairs [][2]*Object
	if o.Composer != nil && o.Controlled && o.isComposed() && !s.bringsComposed(o.Composer) {
		pairs = append(pairs, [2]*Object{o.Composer, o})
	}
	for _, b := range o.Brings {
		switch {
		case o.Role == RoleXR && b.Kind == revision, o.Role == RoleClaim && b.Role == RoleXR:
			pairs = append(pairs, [2]*Object{b, o})
		case o.Publishes == b && !s.bringsComposed(o):
			pairs = append(pairs, [2]*Object{o, b})
		}
	}

	return pairs
}

// asks reports whether an object asks for another, or for something that does: if each asks for the
// other, one of them must come first.
func (f *Forest) asks(of, other *Object) bool {
	seen := map[*Object]bool{}
	var visit func(o *Object) bool
	visit = func(o *Object) bool {
		if o == nil || seen[o] {
			return false
		}
		seen[o] = true
		var next []*Object
		for _, r := range append(xp.Owners(o.Unstructured), xp.Uses(o.Unstructured)...) {
			id := r.ID()
			if k, ok := KindOf(r.GroupVersionKind().GroupKind()); ok && !k.Namespaced {
				id.Namespace = ""
			}
			if other := f.byID[id]; other == nil || other != o.Publishes { // What publishes comes first, whoever owns it.
				next = append(next, other)
			}
		}
		if o.Role == RoleClaim {
			next = append(next, o.Brings...)
		}

		return slices.Contains(next, other) || slices.ContainsFunc(next, visit)
	}

	return visit(of)
}

// bringsComposed reports whether an XR must ask for what it composes itself, since nothing else
// may.
func (s *Scenario) bringsComposed(xr *Object) bool {
	spec := s.First.Of.Spec

	return spec.LabelSelector != nil || len(spec.IncludedNamespaces)+len(spec.ExcludedNamespaces) > 0 && text(xr.Unstructured, "spec", "claimRef", "name") != ""
}
