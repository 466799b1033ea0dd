// Package externalname knows for which kinds of well-known providers the external-name follows from
// what the provider reports in status.atProvider.id.
package externalname

import (
	_ "embed" // For the table.
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The command test/cmd/externalname writes it.
//
//go:embed table.txt
var table string

// whole stands for the external-name in a Rule.
const whole = "*"

// A Rule says how the external-name follows from an id: "*" if it is the id, "/subnets/*" if it is
// what follows "/subnets/" at the end of it, and "*:" if it is what comes before the first ":".
// Providers that are made with upjet derive the external-name from the id in these ways, and write
// it back at each observation (upjet pkg/config/externalname.go, IDAsExternalName and
// GetExternalNameFromTemplated).
type Rule string

// separators are what an external-name that is a part of an id can be told from the rest by.
const separators = "/:,|"

// IsValid reports whether it is a rule that Name knows.
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

// Name returns the external-name in an id, "" if the id is not what the rule is for.
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

// A Source is what a rule was read from.
type Source struct {
	// Provider, and the first and the last of its versions.
	Provider, First, Last string
}

// String names it for messages.
func (s Source) String() string { return s.Provider + " " + s.First + " to " + s.Last }

// ruleOf returns the rule that a table has for a kind, and what it was read from; false if it is
// not known.
func ruleOf(table string, gk schema.GroupKind) (Rule, Source, bool) {
	gk.Group = withoutScope(gk.Group)
	key := gk.String()
	if strings.ContainsAny(key, " \t\r\n#") {
		return "", Source{}, false // No kind has these, but what is read from a backup can.
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

// headerSource begins the line of the table that names a provider, the domain of its groups, and
// its first and last version.
const headerSource = "# from "

// sources returns what the table was read from, and the domain of the groups of each.
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

// scope is in the groups of kinds in namespaces, where those of cluster-scoped kinds have none:
// ec2.aws.m.upbound.io and ec2.aws.upbound.io.
const scope = ".m.upbound.io"

// withoutScope returns the group of the cluster-scoped kinds for one of those in namespaces. The
// table has both under that: their rules are the same.
func withoutScope(group string) string {
	if before, is := strings.CutSuffix(group, scope); is {
		return before + ".upbound.io"
	}

	return group
}
