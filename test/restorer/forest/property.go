package forest

import (
	"fmt"
	"slices"
	"strconv"
)

// A Property is a promise to users, with a function that finds where a scenario breaks it.
type Property struct {
	// Name begins with the number of the promise.
	Name string
	// Promise is the sentence for users.
	Promise string
	// Broken returns one sentence for each violation.
	Broken func(s *Scenario) []string
}

// Properties returns all promises.
func Properties() []Property {
	return []Property{
		{"P1-identity", "A restored MR manages what it managed, or is kept from creating anything until a person has said what.", identity},
		{"P2-references", "An XR and a claim reference what they did in the backup.", references},
		{"P2-controllers", "What an XR controlled it controls again, or nobody does and Crossplane takes it.", controllers},
		{"P3-live-owners", "An owner reference has the UID of a live object, and no other old UID is left in what has to do with Crossplane.", liveOwners},
		{"P3-true-owners", "An owner is written only if it was one, whatever anybody wrote.", trueOwners},
		{"P4-pinned", "What is held stays on the revision of the backup, which comes back with it.", pinned},
		{"P5-held", "Every XR and claim comes back held, marked, and with a reason.", held},
		{"P5-ahead", "No provider reconciles what comes back before it is its turn.", early},
		{"P5-given-back", "What a person had set can be got back exactly.", userSettings},
		{"P6-again", "A second restore changes nothing.", idempotent},
		{"P6-live", "What is Crossplane's and live is left as it is.", liveUnchanged},
		{"P7-backup", "A backup takes all that belongs to what it is of, and nothing else.", closure},
		{"P7-restore", "A restore of namespaces brings back nothing that is of others.", otherNamespaces},
		{"P7-foreign", "What has nothing to do with Crossplane comes back as with Velero alone.", unrelatedObjects},
		{"P8-backup", "Each reference that a backup does not follow is named, with a reason.", namedInBackup},
		{"P8-restore", "Each item and each owner that a restore leaves out is named, with a reason.", namedInRestore},
		{"order", "What must be there first is there first.", order},
		{"stands", "Nothing panics.", func(s *Scenario) []string {
			if s.Panic == "" {
				return nil
			}

			return []string{s.Panic}
		}},
	}
}

// Judge returns the violations, by the name of the property.
func Judge(s *Scenario) map[string][]string {
	broken := map[string][]string{}
	for _, p := range Properties() {
		if s.Panic != "" && p.Name != "stands" {
			continue
		}
		if found := p.Broken(s); len(found) > 0 {
			slices.Sort(found)
			broken[p.Name] = found
		}
	}

	return broken
}

// Describe returns a summary of the scenario.
func (s *Scenario) Describe() string {
	if s.First == nil {
		return fmt.Sprintf("a forest of %d", len(s.Forest.Objects))
	}

	return fmt.Sprintf("a forest of %d; backup of %v without %v, labels %v, cluster %v: %d items; restore of %v without %v, labels %v, resources %v without %v, "+
		"cluster %v, mapping %v, policy %q, settings %v, over %d live objects: %d created, %d refused", len(s.Forest.Objects),
		s.Archive.Of.Spec.IncludedNamespaces, s.Archive.Of.Spec.ExcludedNamespaces, s.Archive.Of.Spec.LabelSelector,
		deref(s.Archive.Of.Spec.IncludeClusterResources), len(s.Archive.Items), s.First.Of.Spec.IncludedNamespaces, s.First.Of.Spec.ExcludedNamespaces,
		s.First.Of.Spec.LabelSelector, s.First.Of.Spec.IncludedResources, s.First.Of.Spec.ExcludedResources,
		deref(s.First.Of.Spec.IncludeClusterResources), s.First.Of.Spec.NamespaceMapping, s.First.Of.Spec.ExistingResourcePolicy,
		s.First.Of.Annotations, len(s.First.Before), len(s.First.Created), len(s.First.Failed))
}

func deref(b *bool) string {
	if b == nil {
		return "auto"
	}

	return strconv.FormatBool(*b)
}
