// Package externalname knows for which kinds of common providers the external-name follows from
// status.atProvider.id. The actions and internal/diagnosis import it; it has no client. Begin with
// Of (name.go).
package externalname

import (
	_ "embed" // It embeds the table.
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The command test/cmd/externalname writes it.
//
//go:embed table.txt
var table string

// whole stands for the external-name in a Rule.
const whole = "*"

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
	before, after, _ := strings.Cut(string(r), whole)
	switch {
	case !r.IsValid():
		return ""
	case before != "":
		n := strings.LastIndex(id, before[len(before)-1:]) + 1
		if !strings.HasSuffix(id[:n], before) {
			return ""
		}

		return id[n:]
	case after != "":
		n := strings.Index(id, after[:1])
		if n < 0 || !strings.HasPrefix(id[n:], after) {
			return ""
		}

		return id[:n]
	default:
		return id
	}
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
	gk.Group = withoutScope(gk.Group)
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
	for s, domain := range sources(table) {
		if gk.Group == domain || strings.HasSuffix(gk.Group, "."+domain) {
			return rule, s, rule.IsValid()
		}
	}

	return "", Source{}, false
}

// headerSource begins a line of the table with a provider, the domain of its groups, and its first
// and last version.
const headerSource = "# from "

// sources returns an iterator over the table's sources and the domain of the groups of each.
func sources(table string) func(yield func(Source, string) bool) {
	return func(yield func(Source, string) bool) {
		for line := range strings.Lines(table) {
			rest, is := strings.CutPrefix(line, headerSource)
			if f := strings.Fields(rest); is && len(f) >= 4 && !yield(Source{Provider: f[0], First: f[2], Last: f[3]}, f[1]) {
				return
			}
		}
	}
}

// scope is the end of the groups of namespaced kinds, such as ec2.aws.m.upbound.io. The
// cluster-scoped kind's group is ec2.aws.upbound.io.
const scope = ".m.upbound.io"

// withoutScope returns the group of the cluster-scoped kind for that of a namespaced one. Both have
// the same rule, and the table has it under the former.
func withoutScope(group string) string {
	if before, is := strings.CutSuffix(group, scope); is {
		return before + ".upbound.io"
	}

	return group
}
