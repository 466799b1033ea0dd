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
	// Others are further objects that the problem is about, such as the other one of two
	// duplicates.
	Others []xp.Ref `json:"others,omitempty"`
	// Reason is what is wrong. Next is what to do.
	Reason string `json:"reason"`
	Next   string `json:"next"`
}

// A Severity is problem or warning.
type Severity string

// Severities. A warning may be intended. It makes a command fail only with --strict.
const (
	Grave   Severity = "problem"
	Warning Severity = "warning"
)

// A Code names a kind of Problem. Programs may rely on it.
type Code string

// Codes, the worst first.
const (
	// NotFound is a requested object that does not exist.
	NotFound Code = "NotFound"
	// Duplicated is an MR whose external resource another MR manages too.
	Duplicated Code = "Duplicated"
	// Orphaned is a resource with an XR's label that no XR lists.
	Orphaned Code = "Orphaned"
	// DeadController is an owner reference to an object that does not exist. The garbage collector
	// deletes an object if all its owners are absent.
	DeadController Code = "DeadController"
	// Uncontrolled is a resource that an XR lists and no object controls.
	Uncontrolled Code = "Uncontrolled"
	// ControlledByAnother is a resource that an XR lists and another object controls.
	ControlledByAnother Code = "ControlledByAnother"
	// Dangling is a reference to an object that does not exist.
	Dangling Code = "Dangling"
	// OneSided is a reference between a claim and an XR that only one of them has. Nothing follows
	// it.
	OneSided Code = "OneSided"
	// IdentityMissing is an MR that may have an external resource but has no external-name.
	// CreatePending is one whose creation was not confirmed.
	IdentityMissing Code = "IdentityMissing"
	CreatePending   Code = "CreatePending"
	// NotObserved is an MR of an upjet provider with an external-name that the provider has not
	// observed yet.
	NotObserved Code = "NotObserved"
	// LeakedHold is a hold, or a setting of one, that no Restore works on any more. HeldBack is a
	// hold that a Restore works on, or that waits for a user.
	LeakedHold Code = "LeakedHold"
	HeldBack   Code = "Held"
	// Quarantined is a hold that a user has asked for and ends.
	Quarantined Code = "Quarantined"
	// GuardUp is the guard: only Velero and Crossplane can create claims and XRs.
	GuardUp Code = "GuardUp"
	// Exchanging is an XR or claim that an exchange has paused and no restore has taken over yet.
	Exchanging Code = "Exchanging"
	// Malformed is an object with content that cannot be read.
	Malformed Code = "Malformed"
	// XRDTerminating is an XRD that is being deleted and still has XRs.
	XRDTerminating Code = "XRDTerminating"
	// RevisionMissing is an XR without its CompositionRevision in the backup. DefinitionMissing is
	// one without its XRD.
	RevisionMissing   Code = "RevisionMissing"
	DefinitionMissing Code = "DefinitionMissing"
	// SecretMissing is a connection secret that is not in the backup although its publisher is.
	SecretMissing Code = "SecretMissing"
	// InputMissing is a Secret that a provider reads for an MR and that is not in the backup.
	InputMissing Code = "InputMissing"
	// EnvironmentMissing is an EnvironmentConfig that a pipeline names and that is not in the
	// backup. PipelineReads is a pipeline that reads objects which the backup cannot be checked
	// for.
	EnvironmentMissing Code = "EnvironmentMissing"
	PipelineReads      Code = "PipelineReads"
	// NotActivated is a kind of MRs that nothing in the backup activates, so the target cluster may
	// not serve it.
	NotActivated Code = "NotActivated"
	// SettingsMisplaced are settings on the ServiceAccount of one package revision.
	SettingsMisplaced Code = "SettingsMisplaced"
	// RightsMisplaced is a role for the ServiceAccount of one package revision.
	RightsMisplaced Code = "RightsMisplaced"
	// KnownDefect is a defect of the Crossplane version that runs, or that ran where a backup was
	// made.
	KnownDefect Code = "KnownDefect"
	// FormatUnknown is a backup with an unknown format, perhaps from a newer Velero.
	FormatUnknown Code = "FormatUnknown"
	// NotRestored is an item that a restore would refuse.
	NotRestored Code = "NotRestored"
	// Stuck is a resource without a reconcile since its release or its last change.
	Stuck Code = "Stuck"
	// UsageLeftBehind is a Usage that no XR lists any more.
	UsageLeftBehind Code = "UsageLeftBehind"
	// NotSynced and NotReady are resources with such a condition.
	NotSynced Code = "NotSynced"
	NotReady  Code = "NotReady"
	// NotRead is a kind that could not be read, so its objects are unknown.
	NotRead Code = "NotRead"
)

// order is the order of the Codes, the worst first.
var order = []Code{ //nolint:gochecknoglobals // It is a constant.
	NotFound, Duplicated, Orphaned, DeadController, Uncontrolled, ControlledByAnother, Dangling, OneSided, CreatePending, IdentityMissing, NotObserved, LeakedHold,
	HeldBack, Quarantined, GuardUp, Exchanging, Malformed, NotRestored, XRDTerminating, RevisionMissing, DefinitionMissing, SecretMissing, InputMissing,
	EnvironmentMissing, PipelineReads, NotActivated, SettingsMisplaced, RightsMisplaced, KnownDefect, FormatUnknown, Stuck, UsageLeftBehind, NotSynced, NotReady,
	NotRead,
}

// Codes returns all codes, the worst first.
func Codes() []Code { return slices.Clone(order) }

// Sort sorts problems by severity, then code, then object.
func Sort(problems []Problem) {
	rank := map[Code]int{}
	for n, c := range order {
		rank[c] = n
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(rank[a.Code], rank[b.Code]), a.Object.Compare(b.Object), cmp.Compare(a.Reason, b.Reason))
	})
}
