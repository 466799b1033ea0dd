package report

import (
	"cmp"
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Problem is something that is wrong with an object.
type Problem struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Object   xp.Ref   `json:"object"`
	// Others are the objects that it is about too, such as the one that the Object is a duplicate
	// of.
	Others []xp.Ref `json:"others,omitempty"`
	// Reason says what is wrong, and Next what to do.
	Reason string `json:"reason"`
	Next   string `json:"next"`
}

// A Severity says whether a Problem is one.
type Severity string

// Severities. A warning may be as it should be; it makes no command fail unless that is asked to be
// strict.
const (
	Grave   Severity = "problem"
	Warning Severity = "warning"
)

// A Code names a kind of Problem. Programs may rely on it.
type Code string

// Codes, the gravest first.
const (
	// NotFound is what was asked for and is not there.
	NotFound Code = "NotFound"
	// Duplicated MRs manage one external resource.
	Duplicated Code = "Duplicated"
	// Orphaned resources carry the label of an XR, and no XR lists them.
	Orphaned Code = "Orphaned"
	// DeadController is an owner reference to an object that does not exist: the garbage collector
	// deletes what has only such owners.
	DeadController Code = "DeadController"
	// Uncontrolled resources are listed by an XR and controlled by nobody.
	Uncontrolled Code = "Uncontrolled"
	// NotItsOwn are resources that are listed by an XR and controlled by another.
	NotItsOwn Code = "NotItsOwn"
	// Dangling references lead to nothing.
	Dangling Code = "Dangling"
	// OneSided links are named by one end only, so nothing follows them.
	OneSided Code = "OneSided"
	// IdentityMissing and IdentityInFlight MRs may have an external resource that nothing names.
	IdentityMissing  Code = "IdentityMissing"
	IdentityInFlight Code = "IdentityInFlight"
	// NotObserved MRs of upjet's have an external-name under which upjet has not found anything
	// yet.
	NotObserved Code = "NotObserved"
	// LeakedHold is a hold that nothing works on any more, and HeldBack one that a restore works
	// on.
	LeakedHold Code = "LeakedHold"
	HeldBack   Code = "Held"
	// Quarantined is a hold that a person has asked for, and that a person ends.
	Quarantined Code = "Quarantined"
	// GuardUp is that only Velero and Crossplane can create claims and XRs.
	GuardUp Code = "GuardUp"
	// Exchanging is an XR or claim that an exchange has paused, and that no restore has taken over
	// yet.
	Exchanging Code = "Exchanging"
	// Malformed objects have something that can't be read.
	Malformed Code = "Malformed"
	// DefinitionDying is an XRD that is being deleted and can't be gone.
	DefinitionDying Code = "DefinitionDying"
	// RevisionMissing and DefinitionMissing XRs are in a backup without what they run on.
	RevisionMissing   Code = "RevisionMissing"
	DefinitionMissing Code = "DefinitionMissing"
	// SecretMissing is a connection secret that is not in the backup of what publishes it.
	SecretMissing Code = "SecretMissing"
	// InputMissing is a Secret that a provider reads for an MR, and that is not in the backup of
	// that.
	InputMissing Code = "InputMissing"
	// EnvironmentMissing is an EnvironmentConfig that a pipeline names and that is not in the
	// backup, and PipelineReads a pipeline that reads what can't be told to be there.
	EnvironmentMissing Code = "EnvironmentMissing"
	PipelineReads      Code = "PipelineReads"
	// NotActivated is a kind of MRs in a backup that may not be served where that is restored,
	// since nothing in it has the kind be active.
	NotActivated Code = "NotActivated"
	// SettingsMisplaced are on what only one revision of a package runs with.
	SettingsMisplaced Code = "SettingsMisplaced"
	// RightsMisplaced are given to what only one revision of a package runs as.
	RightsMisplaced Code = "RightsMisplaced"
	// KnownDefect is one that the version of Crossplane has which runs, or ran where a backup was
	// made.
	KnownDefect Code = "KnownDefect"
	// FormatUnknown is that of a backup which may have been written by a newer Velero.
	FormatUnknown Code = "FormatUnknown"
	// NotRestored items are ones that a restore would refuse, or leave out for another reason than
	// that they are made anew.
	NotRestored Code = "NotRestored"
	// Stuck resources have not been reconciled since they were released or changed.
	Stuck Code = "Stuck"
	// UsageLeftBehind is a Usage that no XR lists any more.
	UsageLeftBehind Code = "UsageLeftBehind"
	// NotSynced and NotReady resources say so themselves.
	NotSynced Code = "NotSynced"
	NotReady  Code = "NotReady"
	// NotRead kinds could not be read, so nothing is known of their objects.
	NotRead Code = "NotRead"
)

// order of the Codes, the gravest first.
var order = []Code{ //nolint:gochecknoglobals // It is a constant list.
	NotFound, Duplicated, Orphaned, DeadController, Uncontrolled, NotItsOwn, Dangling, OneSided, IdentityInFlight, IdentityMissing, NotObserved, LeakedHold,
	HeldBack, Quarantined, GuardUp, Exchanging, Malformed, NotRestored, DefinitionDying, RevisionMissing, DefinitionMissing, SecretMissing, InputMissing,
	EnvironmentMissing, PipelineReads, NotActivated, SettingsMisplaced, RightsMisplaced, KnownDefect, FormatUnknown, Stuck, UsageLeftBehind, NotSynced, NotReady,
	NotRead,
}

// Codes returns all of them, the gravest first.
func Codes() []Code { return slices.Clone(order) }

// Sort puts Problems into the order in which a person should read them: by severity, then code,
// then object.
func Sort(problems []Problem) {
	rank := map[Code]int{}
	for n, c := range order {
		rank[c] = n
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(rank[a.Code], rank[b.Code]), a.Object.Compare(b.Object), cmp.Compare(a.Reason, b.Reason))
	})
}
