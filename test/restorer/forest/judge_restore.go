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

func idempotent(s *Scenario) []string {
	return changed(s.Second.Before, s.Second.After, func(xp.ID) bool { return true })
}

func liveUnchanged(s *Scenario) []string {
	return changed(s.First.Before, s.First.After, func(id xp.ID) bool {
		o := s.Forest.byID[id]

		return s.First.Before[id] != nil && (o == nil || o.isRelated())
	})
}

// changed describes the selected objects that differ.
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

func otherNamespaces(s *Scenario) []string {
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

// claimant returns the namespace of the claim at the root of an object's tree, "" if there is none.
func (f *Forest) claimant(o *Object) string {
	for seen := map[*Object]bool{}; o != nil && !seen[o]; o = o.parent {
		seen[o] = true
		if ns := stringAt(o.Unstructured, "spec", "claimRef", "namespace"); ns != "" && o.Role == RoleXR {
			return ns
		}
	}

	return ""
}

func unrelatedObjects(s *Scenario) []string {
	var broken []string
	s.created(func(o *Object, u *unstructured.Unstructured) {
		if o.isRelated() {
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

// namedInRestore checks that the log or an error names what the restore left out.
func namedInRestore(s *Scenario) []string {
	broken := silentlyLeftOut(s)
	s.created(func(o *Object, u *unstructured.Unstructured) {
		if !o.isRelated() || o.Role == RolePlatform && o.Kind != revision || s.isCopy(o) {
			return
		}
		for _, was := range o.GetOwnerReferences() {
			kept := false
			for _, is := range u.GetOwnerReferences() {
				kept = kept || is.Kind == was.Kind && is.Name == was.Name
			}
			if kept || !o.isOwned() || o.Composer != nil && awaitsController(u, s.First.After[s.restoredID(o.Composer)]) ||
				s.First.Record.Names("name="+xp.String(o.Unstructured), was.Kind+" "+was.Name) {
				continue
			}
			broken = append(broken, fmt.Sprintf("%s (%s) has lost its owner %s %s, and nothing says so", xp.String(u), o.Shape, was.Kind, was.Name))
		}
	})

	return broken
}

// silentlyLeftOut describes the items that the restore tried and did not create without a message.
func silentlyLeftOut(s *Scenario) []string {
	var broken []string
	created := map[xp.Item]bool{}
	for _, c := range s.First.Created {
		created[c.Item] = true
	}
	for i := range s.First.Tried {
		o := s.Forest.byItem[i]
		if o == nil || created[i] || s.First.Before[s.restoredID(o)] != nil || s.First.After[s.restoredID(o)] != nil {
			continue
		}
		self, err := xp.String(o.Unstructured), s.First.Failed[i]
		if s.errorNames(err, o) || s.First.Record.Names("not restored", self) ||
			s.First.Record.Names("[Rebuilt]", "name="+o.Kind.Kind+" ") {
			continue
		}
		broken = append(broken, fmt.Sprintf("%s (%s) was left out, and nothing says so: %v", self, o.Shape, err))
	}

	return broken
}

// errorNames reports whether an error names an object, or its kind if that is not served.
func (s *Scenario) errorNames(err error, o *Object) bool {
	if err == nil {
		return false
	}
	there := s.restoredID(o)

	return strings.Contains(err.Error(), xp.String(o.Unstructured)) || strings.Contains(err.Error(), there.Namespace+"/"+there.Name) ||
		strings.Contains(err.Error(), "no matches for kind")
}

// isOwned reports whether the plugin restores the owners of an object.
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
			if place[first] > place[then] && place[then] > 0 && !s.Forest.dependsOn(first, then) {
				broken = append(broken, fmt.Sprintf("%s (%s) was restored before %s (%s)",
					xp.String(then.Unstructured), then.Shape, xp.String(first.Unstructured), first.Shape))
			}
		}
	}

	return broken
}

// ordered returns the pairs with o of which the first must be restored before the second.
func (s *Scenario) ordered(o *Object) [][2]*Object {
	var pairs [][2]*Object
	if o.Composer != nil && o.Controlled && o.isComposed() && !s.bringsComposed(o.Composer) {
		pairs = append(pairs, [2]*Object{o.Composer, o})
	}
	for _, b := range o.Needs {
		switch {
		case o.Role == RoleXR && b.Kind == revision, o.Role == RoleClaim && b.Role == RoleXR:
			pairs = append(pairs, [2]*Object{b, o})
		case o.Publishes == b && !s.bringsComposed(o):
			pairs = append(pairs, [2]*Object{o, b})
		}
	}

	return pairs
}

// dependsOn reports whether an object asks for another, directly or not. If two ask for each other,
// either may be first.
func (f *Forest) dependsOn(of, other *Object) bool {
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
			if other := f.byID[id]; other == nil || other != o.Publishes { // The publisher comes first, with any owner.
				next = append(next, other)
			}
		}
		if o.Role == RoleClaim {
			next = append(next, o.Needs...)
		}

		return slices.Contains(next, other) || slices.ContainsFunc(next, visit)
	}

	return visit(of)
}

// bringsComposed reports whether an XR must ask for its composed resources, since nothing else may.
func (s *Scenario) bringsComposed(xr *Object) bool {
	spec := s.First.Of.Spec

	ofNamespaces := len(spec.IncludedNamespaces)+len(spec.ExcludedNamespaces) > 0

	return spec.LabelSelector != nil || ofNamespaces && stringAt(xr.Unstructured, "spec", "claimRef", "name") != ""
}
