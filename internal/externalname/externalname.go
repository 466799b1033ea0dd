// Package externalname knows for which kinds of common providers the external-name follows from
// status.atProvider.id. The actions and internal/diagnosis import it; it has no client. Begin with
// Of.
package externalname

import (
	_ "embed" // It embeds the table.
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// The command test/cmd/externalname writes it.
//
//go:embed table.txt
var table string

// whole stands for the external-name in a Rule.
const whole = "*"

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

// A Rule describes how the external-name follows from an id. With "*" it is the id, with
// "/subnets/*" the part after "/subnets/" at the end, and with "*:" the part before the first ":".
// Providers made with upjet derive the external-name from the id in these ways, and write it back
// at each observation (upjet pkg/config/externalname.go, IDAsExternalName and
// GetExternalNameFromTemplated).
type Rule string

// separators are the characters that can separate an external-name from the rest of an id.
const separators = "/:,|"

// IsValid reports whether Name supports the rule.
func (r Rule) IsValid() bool {
	before, after, found := strings.Cut(string(r), whole)
	switch {
	case !found || strings.ContainsAny(string(r), " \t\r\n") || strings.Contains(after, whole), before != "" && after != "":
		return false
	case before != "":
		return strings.ContainsAny(before[len(before)-1:], separators)
	default:
		return after == "" || strings.ContainsAny(after[:1], separators)
	}
}

// Name returns the external-name in an id, "" if the rule does not match the id.
func (r Rule) Name(id string) string {
	switch before, after, _ := strings.Cut(string(r), whole); {
	case !r.IsValid():
		return ""
	case before != "":
		if name := id[strings.LastIndexByte(id, before[len(before)-1])+1:]; strings.HasSuffix(id, before+name) {
			return name
		}
	case after == "":
		return id
	default:
		if name, _, _ := strings.Cut(id, after[:1]); strings.HasPrefix(id, name+after) {
			return name
		}
	}

	return ""
}

// A Source is a provider from which rules were read.
type Source struct {
	// First and Last are the first and the last of the provider's versions.
	Provider, First, Last string
}

// String returns the source for messages.
func (s Source) String() string { return s.Provider + " " + s.First + " to " + s.Last }

// ruleOf returns a kind's rule in a table and the rule's source; false if there is none.
func ruleOf(table string, gk schema.GroupKind) (Rule, Source, bool) {
	gk.Group = xp.GroupFamily(gk.Group) // The table has the rule of both under the cluster-scoped kind.
	key := gk.String()
	if strings.ContainsAny(key, " \t\r\n#") {
		return "", Source{}, false // No kind has these characters, but a backup can.
	}
	_, line, found := strings.Cut(table, "\n"+key+" ")
	if !found {
		return "", Source{}, false
	}
	line, _, _ = strings.Cut(line, "\n")
	rule := Rule(line)
	for line := range strings.Lines(table) {
		source, isSource := strings.CutPrefix(line, headerSource)
		if f := strings.Fields(source); isSource && len(f) >= 4 && (gk.Group == f[1] || strings.HasSuffix(gk.Group, "."+f[1])) {
			return rule, Source{Provider: f[0], First: f[2], Last: f[3]}, rule.IsValid()
		}
	}

	return "", Source{}, false
}

// headerSource begins a line of the table with a provider, the domain of its groups, and its first
// and last version.
const headerSource = "# from "
