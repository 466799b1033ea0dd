package forest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// created calls do with each object that the first restore has created, as it is at the end, and
// its source.
func (s *Scenario) created(do func(o *Object, u *unstructured.Unstructured)) {
	for _, c := range s.First.Created {
		o, u := s.Forest.byItem[c.Item], s.First.After[xp.RefTo(c.Object).ID()]
		if o != nil && u != nil {
			do(o, u)
		}
	}
}

// restoredID returns where an object of the source is after the restore.
func (s *Scenario) restoredID(o *Object) xp.ID {
	id := xp.RefTo(o.Unstructured).ID()
	if to, ok := s.First.Of.Spec.NamespaceMapping[id.Namespace]; ok {
		id.Namespace = to
	}

	return id
}

// composesNew reports whether copies compose new resources, without what the backup has.
func (s *Scenario) composesNew() bool {
	return s.First.Of.Annotations[setting.Prefix+setting.NameClone] == string(setting.New) && len(s.First.Of.Spec.NamespaceMapping) > 0 && len(s.First.Before) > 0
}

// isRelated reports whether the plugin handles an object.
func (o *Object) isRelated() bool { return o.Role != RoleOther || o.isComposed() }

// isComposed reports whether an object claims to be composed, true or not.
func (o *Object) isComposed() bool { return xp.IsComposed(o.Unstructured) }

func liveOwners(s *Scenario) []string {
	var broken []string
	live := map[types.UID]xp.ID{}
	for id, u := range s.First.After {
		live[u.GetUID()] = id
	}
	s.created(func(o *Object, u *unstructured.Unstructured) {
		for _, r := range u.GetOwnerReferences() {
			id, ok := live[r.UID]
			if !ok || id.Kind != r.Kind || id.Name != r.Name || id.Namespace != "" && id.Namespace != u.GetNamespace() {
				broken = append(broken, fmt.Sprintf("%s (%s) has the owner %s %s with the UID %s, which is that of %v", xp.String(u), o.Shape, r.Kind, r.Name, r.UID, id))
			}
		}
		if !o.isOwned() {
			return // Velero removes its owners, and the plugin does not handle it.
		}
		old := func(uid string) {
			if _, ok := live[types.UID(uid)]; !ok && s.isOld(uid) {
				broken = append(broken, fmt.Sprintf("%s (%s) still has the UID %s of the backup", xp.String(u), o.Shape, uid))
			}
		}
		walk(u.Object, old)
	})

	return broken
}

// isOld reports whether a text is a UID of this forest.
func (s *Scenario) isOld(text string) bool {
	return len(text) == 36 && strings.HasPrefix(text, fmt.Sprintf("%08d-", s.Forest.Seed%1e8))
}

// walk calls do with each text in an object, and with each UID in the keys of its managedFields.
func walk(v any, do func(text string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if uid, ok := strings.CutPrefix(key, `k:{"uid":"`); ok {
				do(strings.TrimSuffix(uid, `"}`))
			}
			walk(value, do)
		}
	case []any:
		for _, value := range v {
			walk(value, do)
		}
	case string:
		do(v)
	}
}

func trueOwners(s *Scenario) []string {
	var broken []string
	s.created(func(o *Object, u *unstructured.Unstructured) {
		for _, r := range u.GetOwnerReferences() {
			was := false
			for _, old := range o.GetOwnerReferences() {
				was = was || old.Kind == r.Kind && old.Name == r.Name && old.APIVersion == r.APIVersion && isTrue(old.Controller) == isTrue(r.Controller)
			}
			if !was {
				broken = append(broken, fmt.Sprintf("%s (%s) has the owner %s %s, which it never had", xp.String(u), o.Shape, r.Kind, r.Name))
			}
			if !isTrue(r.Controller) || o.Kind == revision {
				continue
			}
			owner := s.Forest.owner(o)
			if owner == nil || owner.GetName() != r.Name || owner.Kind.Kind != r.Kind {
				broken = append(broken, fmt.Sprintf("%s (%s) is controlled by %s %s, which does not know it", xp.String(u), o.Shape, r.Kind, r.Name))
			}
		}
	})

	return broken
}

// owner returns the object that really controls another.
func (f *Forest) owner(o *Object) *Object {
	if o.Controlled {
		return o.Composer
	}
	for _, other := range f.Objects {
		if other.Publishes == o {
			return other
		}
	}

	return nil
}

// awaitsController reports whether an MR is held until a live and unpaused XR controls it.
func awaitsController(u, xr *unstructured.Unstructured) bool {
	h, err := hold.Of(u)

	return err == nil && h != nil && xr != nil && xp.IsPaused(u) && h.Owner != nil && h.Owner.ID() == xp.RefTo(xr).ID() && !xp.IsPaused(xr)
}

// controllers checks the controllers of restored objects.
func controllers(s *Scenario) []string {
	var broken []string
	place := map[xp.Item]int{}
	for n, c := range s.First.Created {
		place[c.Item] = n + 1
	}
	s.created(func(o *Object, u *unstructured.Unstructured) {
		if o.Role == RoleSecret || !o.Controlled || s.isCopy(o) {
			return
		}
		xr := s.First.After[s.restoredID(o.Composer)]
		c, ok := xp.Controller(u)
		switch {
		case ok && xr != nil && c.UID == xr.GetUID():
		case ok:
			broken = append(broken, fmt.Sprintf("%s (%s) is controlled by %s %s, which is not the XR that composed it", xp.String(u), o.Shape, c.Kind, c.Name))
		case xr == nil || xr.GetDeletionTimestamp() != nil || s.composesNew():
		case place[itemOf(o.Unstructured)] < place[itemOf(o.Composer.Unstructured)]:
			// It came first, since the XR asks for it or is below it. The XR is held then, and
			// becomes its controller when it is released.
		case awaitsController(u, xr):
		default:
			broken = append(broken, fmt.Sprintf("%s (%s) has lost its controller %s, which is live", xp.String(u), o.Shape, xp.String(xr)))
		}
	})

	return broken
}
