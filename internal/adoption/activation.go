package adoption

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// inactiveAfter is how long the provider of an MR may be silent before a request is spent to find
// out whether the MR's kind is active.
const inactiveAfter = 30 * time.Second

// Definitions sets the function that finds out which kinds of MRs are not active. The Snapshot
// calls it only if an MR of the kind waits. The function returns the name of the
// ManagedResourceDefinition of a kind; "" if the kind is active, has no definition, or the
// definition can't be read. It must return the same each time.
func (s *Snapshot) Definitions(inactive func(schema.GroupKind) string) { s.inactive = inactive }

// inactiveFor returns the name of the ManagedResourceDefinition of an inactive kind; else "".
func (s *Snapshot) inactiveFor(gk schema.GroupKind) string {
	if s.inactive == nil || !xp.IsCustomGroup(gk.Group) || xp.IsCrossplaneGroup(gk.Group) {
		return ""
	}

	return s.inactive(gk)
}

// whyNotReconciled returns why the provider of an MR does not reconcile it, if the reason is that
// the MR's kind is not active; else zero. From Crossplane v2.4 on a provider does not run if none
// of its kinds is active. Before that it runs and ignores this kind.
func (s *Snapshot) whyNotReconciled(u *unstructured.Unstructured) reason.Message {
	if !xp.IsManaged(u) || s.now.Sub(s.lastSeen(u)) < inactiveAfter {
		return reason.Message{}
	}
	name := s.inactiveFor(u.GroupVersionKind().GroupKind())
	if name == "" {
		return reason.Message{}
	}

	return reason.KindNotActive.Messagef("its provider does not reconcile it, because its ManagedResourceDefinition %s is not active; "+
		"%s", name, xp.HowToActivate(name))
}
