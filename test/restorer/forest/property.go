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
		{"P1-identity", "A restored MR manages its external resource of the backup, or creates nothing until a user names the resource.", identity},
		{"P2-references", "An XR and a claim have the references of the backup.", references},
		{"P2-controllers", "An XR controls its composed resources again, or they have no controller and Crossplane sets it.", controllers},
		{"P3-live-owners", "An owner reference has the UID of a live object, and no other old UID is left in an object of Crossplane's.", liveOwners},
		{"P3-true-owners", "An owner is written only if it was one, whatever other users have written.", trueOwners},
		{"P4-pinned", "A held XR stays on the revision of the backup, which is restored with it.", pinned},
		{"P5-held", "Every XR and claim comes back held, marked, and with a reason.", held},
		{"P5-ahead", "No provider reconciles an object that is restored before its turn.", early},
		{"P5-given-back", "A release restores a user's settings exactly.", userSettings},
		{"P6-again", "A second restore changes nothing.", idempotent},
		{"P6-live", "A live object of Crossplane's is not changed.", liveUnchanged},
		{"P7-backup", "A backup has all that its selected objects need, and nothing else.", closure},
		{"P7-restore", "A restore of some namespaces restores nothing of the others.", otherNamespaces},
		{"P7-foreign", "An object unrelated to Crossplane is restored as by Velero alone.", unrelatedObjects},
		{"P8-backup", "Each reference that a backup does not follow is named, with a reason.", namedInBackup},
		{"P8-restore", "Each item and each owner that a restore leaves out is named, with a reason.", namedInRestore},
		{"order", "An object is restored after the objects that it depends on.", order},
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
