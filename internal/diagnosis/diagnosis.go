package diagnosis

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Subject is what the objects are of.
type Subject string

// Subjects.
const (
	Backup  Subject = "backup"
	Cluster Subject = "cluster"
)

// A ClusterState is what there is besides the objects of a cluster.
type ClusterState struct {
	Now time.Time
	// Plans are for what is held, by the object.
	Plans map[xp.ID]adoption.Plan
	// Restores are the phases of Velero's Restores, by namespace/name; PhaseUnread stands for that
	// of one that could not be read.
	Restores map[string]string
	// Installation is the Crossplane that runs; nil if that is not known.
	Installation *adoption.Installation
	// Inactive returns the name of the ManagedResourceDefinition of a kind that is not active, and
	// "" of any other; nil if nobody can be asked.
	Inactive func(schema.GroupKind) string
}

// inactive is Inactive, whether somebody can be asked or not.
func (s ClusterState) inactive(gk schema.GroupKind) string {
	if s.Inactive == nil || !xp.IsCustomGroup(gk.Group) || xp.IsCrossplaneGroup(gk.Group) {
		return ""
	}

	return s.Inactive(gk)
}

// Inspect returns what is wrong with the objects of a backup, the gravest first.
func Inspect(o *Objects) []report.Problem {
	d := &diagnosis{Objects: o, of: Backup}
	d.checkBoth()
	d.checkPlatform()
	d.checkReadings()
	d.checkSecrets()
	d.checkInputs()
	d.checkActivations()
	d.checkServiceAccounts()
	d.checkRights()
	d.checkHeld()

	return d.sorted()
}

// Validate returns what is wrong with the objects of a cluster, the gravest first.
func Validate(o *Objects, s ClusterState) []report.Problem {
	d := &diagnosis{Objects: o, of: Cluster, ClusterState: s}
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
	// managers are what managing has counted.
	managers map[schema.GroupKind]map[string]int
}

// checkBoth finds what backups and clusters can have.
func (d *diagnosis) checkBoth() {
	d.found = append(d.found, d.malformed...)
	d.checkControl()
	d.checkClaims()
	d.checkOrphans()
	d.checkIdentities()
	d.checkUsages()
	d.checkExchanges()
	d.checkUnread()
}

func (d *diagnosis) add(code report.Code, severity report.Severity, r xp.Ref, reason, next string) {
	d.found = append(d.found, report.Problem{Code: code, Severity: severity, Object: r, Reason: reason, Next: next})
}

func (d *diagnosis) sorted() []report.Problem {
	report.Sort(d.found)

	return d.found
}

// absent says that something is not there.
func (d *diagnosis) absent() string {
	if d.of == Backup {
		return "is not in the backup"
	}

	return "does not exist"
}

// checkUnread says which kinds nothing is known of.
func (d *diagnosis) checkUnread() {
	for gk, why := range d.unread {
		r := xp.Ref{APIVersion: gk.Group, Kind: gk.Kind, Name: "*"}
		if d.broken[gk] != "" {
			d.add(report.NotRead, report.Grave, r, "objects of this kind can't be read: "+why, "nothing is said of them; mend that, and ask again")

			continue
		}
		d.add(report.NotRead, report.Warning, r, "objects of this kind may not be read: "+why,
			"nothing is said of them; see docs/validate.md for the rights that are needed")
	}
}
