package adoption

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// inactiveAfter is for how long the provider of an MR may say nothing until it is worth a request
// to find out whether its kind is active.
const inactiveAfter = 30 * time.Second

// causeInactive is the cause of what waits for its kind to be activated.
const causeInactive = "its kind is not active"

// Definitions has the Snapshot ask which kinds of MRs are not active, where something waits that is
// of one. The function returns the name of the ManagedResourceDefinition of a kind, "" if it is
// active, there is none, or that can't be found out. It must return the same each time.
func (s *Snapshot) Definitions(inactive func(schema.GroupKind) string) { s.inactive = inactive }

// inactiveFor returns the name of the ManagedResourceDefinition of a kind that is not active, and
// "" of any other.
func (s *Snapshot) inactiveFor(gk schema.GroupKind) string {
	if s.inactive == nil || !xp.IsCustomGroup(gk.Group) || xp.IsCrossplaneGroup(gk.Group) {
		return ""
	}

	return s.inactive(gk)
}

// whyNotReconciled says why the provider of an MR says nothing, if that is because its kind is not
// active: from Crossplane v2.4 on a provider of which no kind is does not run, and before that it
// does nothing about this one.
func (s *Snapshot) whyNotReconciled(u *unstructured.Unstructured) string {
	if !IsProviders(u) || s.now.Sub(s.lastSeen(u)) < inactiveAfter {
		return ""
	}
	name := s.inactiveFor(u.GroupVersionKind().GroupKind())
	if name == "" {
		return ""
	}

	return fmt.Sprintf("its provider says nothing of it, since its ManagedResourceDefinition %s is not active; %s", name, xp.HowToActivate(name))
}
