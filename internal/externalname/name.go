package externalname

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
)

// A Name is the external-name of an MR that has only its provider's id of the external resource.
type Name struct {
	External string
	// By is where it is known from, for messages, such as "the setting external-name-from-id has
	// for its kind".
	By string
	// Chosen is set if a user's setting names the kind; otherwise the table does.
	Chosen bool
}

// Of returns the external-name of an MR of a kind with the id; false if it is not known. A user's
// settings take precedence over the table.
func Of(gk schema.GroupKind, id string, s setting.Settings) (Name, bool) {
	if slices.Contains(s.FromID, gk) {
		return Name{External: id, By: "the setting " + setting.NameFromID + " has for its kind", Chosen: true}, id != ""
	}
	if s.NoneKnown || slices.Contains(s.NotFromID, gk) || slices.Contains(s.Unnamed, gk) {
		return Name{}, false
	}

	return Known(gk, id)
}

// Known is Of without settings.
func Known(gk schema.GroupKind, id string) (Name, bool) {
	rule, source, ok := ruleOf(table, gk)
	external := rule.Name(id)

	return Name{External: external, By: "is known of its kind from " + source.String()}, ok && external != ""
}
