package externalname

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Path is where the table is in the repository.
const Path = "internal/externalname/table.txt"

// head is the newest commit. Its changes are in the next version, and often correct the versions
// before.
const head = "HEAD"

// headerSource begins a provider's line in the table, with the domain of its groups and its first
// and last version.
const headerSource = "# from "

// A Provider has the repository of a provider and the domain of its groups.
type Provider struct {
	Name, Domain string
	Repository   Repository
}

// Table is the table of all providers.
type Table struct {
	sections []section
}

// section is the part of one provider.
type section struct {
	Provider

	versions []string
	commit   string
	rules    map[schema.GroupKind]Rule
	// Uncertain counts the kinds whose external-name does not surely follow from the id, and
	// Changed those for which another version has another rule. Both are left out. Unmatched counts
	// the configured resources without a kind.
	Uncertain, Changed, Unmatched int
}

// Read reads all versions of the providers.
func Read(ctx context.Context, providers ...Provider) (Table, error) {
	t := Table{}
	for _, p := range providers {
		s, err := p.read(ctx)
		if err != nil {
			return Table{}, fmt.Errorf("cannot read the sources of %s: %w", p.Name, err)
		}
		t.sections = append(t.sections, s)
	}
	slices.SortFunc(t.sections, func(a, b section) int { return cmp.Compare(a.Name, b.Name) })

	return t, nil
}

func (p Provider) read(ctx context.Context) (section, error) {
	s := section{Provider: p, rules: map[schema.GroupKind]Rule{}}
	var err error
	if s.versions, err = p.Repository.Versions(ctx); err != nil {
		return s, err
	}
	if s.commit, err = p.Repository.Commit(ctx, head); err != nil {
		return s, err
	}
	changed := map[schema.GroupKind]bool{}
	for _, version := range append(slices.Clone(s.versions), head) {
		files, err := p.Repository.Files(ctx, version)
		if err != nil {
			return s, err
		}
		if err := s.add(files, changed); err != nil {
			return s, fmt.Errorf("version %s: %w", version, err)
		}
	}
	for gk, rule := range s.rules {
		switch {
		case changed[gk]:
			s.Changed++
		case rule == "":
			s.Uncertain++
		}
	}
	maps.DeleteFunc(s.rules, func(_ schema.GroupKind, rule Rule) bool { return rule == "" })

	return s, nil
}

// add adds a version. A kind whose rule differs from an earlier version's becomes uncertain.
func (s *section) add(files map[string][]byte, changed map[schema.GroupKind]bool) error {
	resources, err := kinds(files)
	if err != nil {
		return err
	}
	configured, err := rules(files)
	if err != nil {
		return err
	}
	if len(resources) == 0 || len(configured) == 0 {
		return fmt.Errorf("cannot find its kinds (%d) and its external-names (%d)", len(resources), len(configured))
	}
	used := map[string]bool{}
	for gk, resource := range resources {
		used[resource] = true
		rule := configured[resource]
		if gk.Group != s.Domain && !strings.HasSuffix(gk.Group, "."+s.Domain) {
			return fmt.Errorf("%s is not of a group of %s", gk, s.Domain)
		}
		if before, is := s.rules[gk]; is && before != rule {
			changed[gk] = true
			rule = ""
		}
		s.rules[gk] = rule
	}
	s.Unmatched = 0
	for resource := range configured {
		if !used[resource] {
			s.Unmatched++
		}
	}

	return nil
}

// intro begins the table.
const intro = `# The kinds of providers made with upjet whose external-name follows from status.atProvider.id, and how: "*" is all of it, "/subnets/*" is what
# follows that at the end, and "*:" what is before the first ":". Kinds in namespaces (groups like ec2.aws.m.upbound.io) have the rule of their cluster-scoped
# ones. In all versions that are named, and at the commit, the provider derives the external-name from the id like this, and writes it back at each
# observation. Kinds of which that is not certain are left out. make external-names writes this file.
`

// Render returns the table as the plugin reads it.
func (t Table) Render() []byte {
	b := bytes.NewBufferString(intro)
	var lines []string
	for _, s := range t.sections {
		fmt.Fprintf(b, "%s%s %s %s %s (%d versions) and commit %s: %d kinds; left out: %d not certain, %d changed between versions, %d without a kind\n",
			headerSource, s.Name, s.Domain, s.versions[0], s.versions[len(s.versions)-1], len(s.versions), s.commit, len(s.rules), s.Uncertain, s.Changed, s.Unmatched)
		for gk, rule := range s.rules {
			lines = append(lines, gk.String()+" "+string(rule)+"\n")
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		b.WriteString(line)
	}

	return b.Bytes()
}
