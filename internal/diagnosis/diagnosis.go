// Package diagnosis builds the trees of claims, XRs and composed resources from the objects of a
// backup or a cluster, and finds what is wrong with them. It has no client and no clock; hooks,
// internal/cluster and internal/adopter import it. Start reading in diagnosis.go.
package diagnosis

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Subject is where the objects come from.
type Subject string

// Subjects.
const (
	Backup  Subject = "backup"
	Cluster Subject = "cluster"
)

// A ClusterState is what a diagnosis needs to know of a cluster besides its objects.
type ClusterState struct {
	Now time.Time
	// Plans are the release plans of held objects.
	Plans map[xp.ID]adoption.Plan
	// Restores are the phases of Velero's Restores, by namespace/name.
	Restores map[string]string
	// Installation is the Crossplane that runs; nil if unknown.
	Installation *adoption.Installation
	// Inactive returns the name of a kind's ManagedResourceDefinition, "" if that is active.
	Inactive func(schema.GroupKind) string
}

// inactive calls Inactive, if it is not nil and the kind can have a ManagedResourceDefinition.
func (s ClusterState) inactive(gk schema.GroupKind) string {
	if s.Inactive == nil || !xp.IsCustomGroup(gk.Group) || xp.IsCrossplaneGroup(gk.Group) {
		return ""
	}

	return s.Inactive(gk)
}

// Inspect returns the problems of a backup's objects, the worst first.
func Inspect(o *Objects) []report.Problem {
	d := &diagnosis{Objects: o, of: Backup, managerCounts: map[schema.GroupKind]map[string]int{}}
	d.checkBoth()
	d.checkPlatform()
	d.checkPipelineInputs()
	d.checkSecrets()
	d.checkInputs()
	d.checkUIDs()
	d.checkActivations()
	d.checkServiceAccounts()
	d.checkUnrestored()
	d.checkRights()
	d.checkHeld()

	return d.sorted()
}

// Validate returns the problems of a cluster's objects, the worst first.
func Validate(o *Objects, s ClusterState) []report.Problem {
	d := &diagnosis{Objects: o, of: Cluster, ClusterState: s, managerCounts: map[schema.GroupKind]map[string]int{}}
	d.checkBoth()
	d.checkDuplicates()
	d.checkHolds()
	d.checkConditions()
	d.checkDefinitions()

	return d.sorted()
}

type diagnosis struct {
	*Objects
	ClusterState

	of    Subject
	found []report.Problem
	// managerCounts caches countManagers, by kind and external-name.
	managerCounts map[schema.GroupKind]map[string]int
	// unsure caches the reasons of identity problems by code and object for shortened.
	unsure map[string]string
}

func (d *diagnosis) checkBoth() {
	d.found = append(d.found, d.malformed...)
	d.checkControl()
	d.checkClaims()
	d.checkClaimRefs()
	d.checkOrphans()
	d.checkIdentities()
	d.checkUsages()
	d.checkUnread()
}

func (d *diagnosis) add(code reason.Code, severity report.Severity, r xp.Ref, why, next string, others ...xp.Ref) {
	d.found = append(d.found, report.Problem{Code: code, Severity: severity, Object: r, Others: others, Reason: why, Next: next})
}

func (d *diagnosis) sorted() []report.Problem {
	report.Sort(d.found)

	return d.found
}

func (d *diagnosis) absent() string {
	if d.of == Backup {
		return "is not in the backup"
	}

	return "does not exist"
}

// checkUnread reports the kinds that could not be read.
func (d *diagnosis) checkUnread() {
	for gk, why := range d.unread {
		r := xp.Ref{APIVersion: gk.Group, Kind: gk.Kind, Name: "*"}
		if d.broken[gk] {
			d.add(reason.NotRead, report.Error, r, "objects of this kind can't be read: "+why, "the report lacks them. Repair that, and run the command again")

			continue
		}
		d.add(reason.NotRead, report.Warning, r, "you have no right to read objects of this kind: "+why,
			"the report lacks them. See docs/validate.md for the required rights")
	}
}
