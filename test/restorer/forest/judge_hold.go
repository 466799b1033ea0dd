package forest

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func identity(s *Scenario) []string {
	var broken []string
	s.created(func(o *Object, u *unstructured.Unstructured) {
		if o.Role != RoleMR || s.composesNew() || s.holds() == setting.HoldNone {
			return // The user asked for that.
		}
		was, is := o.GetAnnotations()[xp.AnnotationExternalName], u.GetAnnotations()[xp.AnnotationExternalName]
		id, _ := xp.ProviderID(o.Unstructured)
		if is != was && (was != "" || is != id) {
			broken = append(broken, fmt.Sprintf("%s manages %q and did manage %q", xp.String(u), is, was))
		}
		unsure := xp.IdentityOf(o.Own) != xp.Known && xp.IdentityOf(o.Own) != xp.NeverCreated && is == ""
		if unsure && u.GetAnnotations()[xp.AnnotationPaused] != "true" && xp.MayCreate(u) {
			broken = append(broken, xp.String(u)+" would create a second external resource")
		}
	})

	return broken
}

func references(s *Scenario) []string {
	var broken []string
	s.created(func(o *Object, u *unstructured.Unstructured) {
		if o.Role != RoleXR && o.Role != RoleClaim || s.composesNew() {
			return
		}
		want := o.DeepCopy()
		xp.MapNamespaces(want, s.First.Of.Spec.NamespaceMapping)
		for _, field := range []string{"resourceRefs", "compositionRef", "compositionRevisionRef", "resourceRef", "claimRef", "writeConnectionSecretToRef"} {
			for _, path := range [][]string{{"spec", field}, {"spec", "crossplane", field}} {
				was, _, _ := unstructured.NestedFieldNoCopy(want.Object, path...)
				is, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
				if diff := cmp.Diff(was, is); diff != "" {
					broken = append(broken, fmt.Sprintf("the %s of %s (%s) are not what they were: %s", field, xp.String(u), o.Shape, diff))
				}
			}
		}
	})

	return broken
}

// holds returns the setting of the restore.
func (s *Scenario) holds() setting.Holding {
	return setting.Holding(s.First.Of.Annotations[setting.Prefix+setting.NameHold])
}

// isByHand reports whether a user lifts the holds.
func (s *Scenario) isByHand() bool {
	return s.First.Of.Annotations[setting.Prefix+setting.NameRelease] == "by-hand"
}

// whyNotHeld returns why an object is not held as it must be, "" if it is.
func whyNotHeld(s *Scenario, u *unstructured.Unstructured) string {
	h, err := hold.Of(u)
	switch {
	case err != nil:
		return err.Error()
	case h == nil:
		return "it has no mark"
	case u.GetAnnotations()[xp.AnnotationPaused] != "true":
		return "it is not paused"
	case h.Restore != "velero/"+s.First.Of.Name:
		return "its mark is that of " + h.Restore
	case s.isByHand() && !h.ByHand && !h.Quarantine && h.Clone == "" && !xp.IsSchedule(u):
		return "its mark does not show that a user lifts the hold"
	case h.Reason == "" || h.Since == "":
		return "its mark has no reason or no time"
	default:
		return ""
	}
}

func held(s *Scenario) []string {
	var broken []string
	s.created(func(o *Object, u *unstructured.Unstructured) {
		must := (o.Role == RoleXR || o.Role == RoleClaim) && (!s.composesNew() || s.isByHand()) || o.Kind.Reconciled() && s.holds() == setting.HoldAll
		// A pause that no user has set is the plugin's, and needs a mark.
		paused := u.GetAnnotations()[xp.AnnotationPaused] == "true" && o.Own.GetAnnotations()[xp.AnnotationPaused] != "true"
		if !must && !paused {
			return
		}
		if why := whyNotHeld(s, u); why != "" {
			broken = append(broken, fmt.Sprintf("%s (%s) is not held: %s", xp.String(u), o.Shape, why))
		}
	})

	return broken
}

// early checks that no MR is reconciled that comes back before ConfigMaps.
func early(s *Scenario) []string {
	var broken []string
	for _, c := range s.First.Created {
		o := s.Forest.byItem[c.Item]
		if c.Early && o != nil && o.Role == RoleMR && xp.IsManaged(o.Unstructured) && c.Object.GetAnnotations()[xp.AnnotationPaused] != "true" {
			broken = append(broken, fmt.Sprintf("%s (%s) comes before ConfigMaps and is not held", xp.String(c.Object), o.Shape))
		}
	}

	return broken
}

// settingsOf returns the user's settings that a hold changes.
func settingsOf(u *unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	for _, a := range []string{xp.AnnotationPaused, xp.AnnotationRestoreStatus, "example.org/theirs"} {
		if v, ok := u.GetAnnotations()[a]; ok {
			all[a] = v
		}
	}
	for _, path := range [][]string{{"spec", "compositionUpdatePolicy"}, {"spec", "crossplane", "compositionUpdatePolicy"}, {"spec", "managementPolicies"}} {
		if v, ok, _ := unstructured.NestedFieldNoCopy(u.Object, path...); ok {
			all[fmt.Sprint(path)] = v
		}
	}

	return all
}

func userSettings(s *Scenario) []string {
	var broken []string
	// Two items that manage one external resource are copies of each other if they are moved.
	observing := s.First.Of.Annotations[setting.Prefix+setting.NameClone] == string(setting.Observe)
	s.created(func(o *Object, u *unstructured.Unstructured) {
		if o.Role != RoleXR && o.Role != RoleClaim && o.Role != RoleMR || s.isCopy(o) || observing && s.restoredID(o) != xp.RefTo(o.Unstructured).ID() {
			return
		}
		u = u.DeepCopy()
		if err := hold.RemoveBackedUpHold(u); err != nil {
			broken = append(broken, err.Error())
		}
		if diff := cmp.Diff(settingsOf(o.Own), settingsOf(u)); diff != "" {
			broken = append(broken, fmt.Sprintf("%s (%s) is not as its user had it: -own +released\n%s", xp.String(u), o.Shape, diff))
		}
	})

	return broken
}

// isCopy reports whether an object may be a copy of a live one, which a setting decides on.
func (s *Scenario) isCopy(o *Object) bool {
	return s.restoredID(o) != xp.RefTo(o.Unstructured).ID() && len(s.First.Before) > 0
}

func pinned(s *Scenario) []string {
	var broken []string
	s.created(func(o *Object, u *unstructured.Unstructured) {
		i := xp.Instance{Unstructured: u}
		policy, _ := i.UpdatePolicy()
		if (o.Role == RoleXR || o.Role == RoleClaim) && !s.composesNew() && i.Revision() != "" && policy != xp.UpdateManual {
			broken = append(broken, fmt.Sprintf("%s (%s) follows the newest revision while it is held", xp.String(u), o.Shape))
		}
		for _, b := range o.Needs {
			if b.Kind == revision && s.isLost(b) {
				broken = append(broken, fmt.Sprintf("%s (%s) is without its %s, which is in the backup", xp.String(u), o.Shape, xp.String(b.Unstructured)))
			}
		}
	})

	return broken
}

// isLost reports whether an object is missing after the restore, though it is in the backup and
// passes the filters.
func (s *Scenario) isLost(o *Object) bool {
	i := itemOf(o.Unstructured)

	return s.Archive.Items[i] != nil && (&restore{Run: s.First}).passes(i) && s.First.Failed[i] == nil && s.First.After[s.restoredID(o)] == nil
}
