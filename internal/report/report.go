// Package report defines the result of inspect, validate and release: trees of Crossplane's
// resources, their problems and what to do. It is data only, and any package may import it.
// docs/validate.md describes its JSON, which stays compatible within an APIVersion. Package printer
// prints it. Start reading at Report.
package report

import (
	"iter"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// APIVersion is the version of a Report's JSON. Fields may be added, never changed or removed.
const APIVersion = "report.velero.crossplane.io/v1"

// Kinds of Reports.
const (
	KindInspection = "Inspection"
	KindValidation = "Validation"
	KindRelease    = "Release"
	// KindHold is about the live objects that the command hold holds.
	KindHold = "Hold"
)

// A Report describes the trees of a backup or a cluster.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Source is the file of the backup, or the context of the cluster.
	Source string    `json:"source"`
	Time   time.Time `json:"time"`
	// Restores are those that hold a reported object, or that were asked for.
	Restores []Restore `json:"restores,omitempty"`
	// LastAdoption is the newest Restore of the cluster with operations of plugins that has ended.
	LastAdoption *Restore `json:"lastAdoption,omitempty"`
	Summary      Summary  `json:"summary"`
	// Problems are sorted, the worst first.
	Problems []Problem `json:"problems"`
	Trees    []*Node   `json:"trees"`
	// Releases are the results of a release, in the order in which holds are lifted.
	Releases []Release `json:"releases,omitempty"`
	// Order is the order in which a backup would be restored.
	Order []Step `json:"order,omitempty"`
	// Versions are the versions that a backup states.
	Versions []Version `json:"versions,omitempty"`
	// DryRun is what a restore of the backup would do, with --against.
	DryRun *DryRunResult `json:"against,omitempty"`
}

// A Summary has the counts of a Report.
type Summary struct {
	Claims   int `json:"claims"`
	XRs      int `json:"xrs"`
	Composed int `json:"composed"`
	// Managed are the MRs, composed or not.
	Managed int `json:"managed"`
	// Adopted are the composed resources that their XR lists and controls and that are not held. In
	// a backup it is the state at backup time.
	Adopted  int `json:"adopted"`
	Held     int `json:"held"`
	Problems int `json:"problems"`
	Warnings int `json:"warnings"`
}

// A Node is a resource with its children: a claim with its XR, an XR with its composed resources.
type Node struct {
	xp.Ref

	Role  Role  `json:"role"`
	State State `json:"state"`
	// ExternalName is an MR's external-name; "" if it has none.
	ExternalName string `json:"externalName,omitempty"`
	// Composition and Revision are those of an XR or claim.
	Composition string `json:"composition,omitempty"`
	Revision    string `json:"revision,omitempty"`
	// Paused is true if Crossplane does not reconcile the resource.
	Paused bool       `json:"paused,omitempty"`
	Synced *Condition `json:"synced,omitempty"`
	Ready  *Condition `json:"ready,omitempty"`
	// Created is the creation time in its cluster.
	Created *time.Time `json:"created,omitempty"`
	Hold    *Hold      `json:"hold,omitempty"`
	// Restore is what a restore into the cluster would do, with --against.
	Restore *Outcome `json:"restore,omitempty"`
	// Problems are the codes of the problems about it.
	Problems []reason.Code `json:"problems,omitempty"`
	Children []*Node       `json:"children,omitempty"`
}

// All returns an iterator over the nodes of trees, parents first.
func All(trees ...*Node) iter.Seq[*Node] {
	return func(yield func(*Node) bool) { visit(trees, yield) }
}

func visit(nodes []*Node, yield func(*Node) bool) bool {
	for _, n := range nodes {
		if !yield(n) || !visit(n.Children, yield) {
			return false
		}
	}

	return true
}

// A Role is what a resource is to Crossplane.
type Role string

// Roles.
const (
	RoleClaim     Role = "claim"
	RoleComposite Role = "composite"
	RoleManaged   Role = "managed"
	RoleUsage     Role = "usage"
	RoleOther     Role = "other"
)

// A State is the state of a resource's adoption.
type State string

// States.
const (
	// Adopted resources have the right controller and are not held.
	Adopted State = "adopted"
	// Held resources are held by this plugin, or belong to an XR that is.
	Held State = "held"
	// Missing resources are listed by their XR and do not exist.
	Missing State = "missing"
	// Foreign resources are listed by an XR that does not control them.
	Foreign State = "foreign"
	// Unread resources are of a kind that could not be read.
	Unread State = "unread"
	// Alone resources belong to no XR, and need none.
	Alone State = "alone"
	// Deleting resources are being deleted.
	Deleting State = "deleting"
)

// A Condition is a condition that Crossplane or a provider sets.
type Condition struct {
	Status  string     `json:"status"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
}

// A Hold is a hold of this plugin.
type Hold struct {
	// Restore is the Restore that added it, as namespace/name.
	Restore string     `json:"restore"`
	Since   *time.Time `json:"since,omitempty"`
	// Waiting are the causes that keep it on; empty if unknown.
	Waiting []string `json:"waiting,omitempty"`
	// Unpaused is the time at which the pause was taken off; null if the object is still paused.
	Unpaused *time.Time `json:"unpaused,omitempty"`
}

// A Restore is a Restore of Velero.
type Restore struct {
	// Name is namespace/name.
	Name string `json:"name"`
	// Phase is Velero's phase, or "Gone" if the Restore does not exist.
	Phase     string     `json:"phase"`
	Backup    string     `json:"backup,omitempty"`
	Started   *time.Time `json:"started,omitempty"`
	Completed *time.Time `json:"completed,omitempty"`
	// Operations is the number of operations that plugins began: each adopts something.
	Operations int `json:"operations,omitempty"`
	// Errors and Warnings are Velero's counts. Failure is why it has failed as a whole.
	Errors   int    `json:"errors,omitempty"`
	Warnings int    `json:"warnings,omitempty"`
	Failure  string `json:"failure,omitempty"`
}

// An Outcome is what a restore would do with an item.
type Outcome struct {
	Action Action `json:"action"`
	// Reason is why, with the codes of all messages; "" if the action is expected.
	Reason string `json:"reason,omitempty"`
	// Code is the code of the reason, if that is one message.
	Code reason.Code `json:"code,omitempty"`
}

// OutcomeOf returns the Outcome with an action and its reason.
func OutcomeOf(a Action, why reason.Message) Outcome {
	return Outcome{Action: a, Reason: why.String(), Code: why.Code}
}

// A DryRunResult is what a restore of a backup into a cluster would do.
type DryRunResult struct {
	// Cluster is the context of the kubeconfig, or the address of the API server.
	Cluster string `json:"cluster"`
	// Counts are the numbers of items by action.
	Counts map[Action]int `json:"counts"`
	// Items are the notable items in the order of the restore. Items that are created as expected,
	// or that exist and are in no tree, are left out.
	Items []ItemResult `json:"items,omitempty"`
}

// An ItemResult is what a restore would do with an item of a backup.
type ItemResult struct {
	// Item is the object in the backup. Resource is its kind as Velero names it.
	Item     xp.Ref `json:"item"`
	Resource string `json:"resource"`
	// Namespace is the target namespace, if it is another one.
	Namespace string  `json:"namespace,omitempty"`
	Outcome   Outcome `json:"outcome"`
	// For is the item that requested this one, so that it is restored earlier; null if none did.
	For *xp.Ref `json:"for,omitempty"`
}

// An Action is what a restore does with an item.
type Action string

// Actions.
const (
	Create Action = "create"
	Keep   Action = "hold"
	Exists Action = "exists"
	// Update gives a live object what the backup has.
	Update Action = "update"
	Skip   Action = "skip"
	Refuse Action = "refuse"
	Clone  Action = "clone"
)

// A Step is a kind in the order of a restore.
type Step struct {
	Resource string `json:"resource"`
	Items    int    `json:"items"`
	// Why is the reason for its position.
	Why string `json:"why"`
}

// A Version is a name and its version.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// A Release is what became of a hold, or would become of it: of its release, or of the command hold.
type Release struct {
	Object xp.Ref `json:"object"`
	// Restore is the Restore that added the hold. Phase is its phase.
	Restore string     `json:"restore,omitempty"`
	Phase   string     `json:"phase,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Result  Result     `json:"result"`
	// Steps are the steps that were taken, or would be, in order.
	Steps []string `json:"steps,omitempty"`
	// Settings are the user's own settings that came back, or would.
	Settings []string `json:"settings,omitempty"`
	// Risks are what can happen if the hold is lifted by force.
	Risks []string `json:"risks,omitempty"`
	// Code is why the hold stays, or what was lost with it; "" if Reason has the codes of several
	// reasons.
	Code reason.Code `json:"code,omitempty"`
	// Reason is the same in words, with its codes in brackets. Next is what to do.
	Reason string `json:"reason,omitempty"`
	Next   string `json:"next,omitempty"`
}

// A Result is what became of a hold.
type Result string

// Results.
const (
	// Released: the hold is off. Crossplane has reconciled the object since, unless its user has
	// paused it.
	Released Result = "released"
	// Forced: like Released, without all that the hold waited for.
	Forced Result = "forced"
	// Unproven: the hold is off, and Crossplane has not reconciled the object since.
	Unproven Result = "unproven"
	// StillHeld: the hold is still on.
	StillHeld Result = "held"
	// LeftAlone: nothing was tried.
	LeftAlone Result = "left-alone"
	// WouldRelease and WouldForce: a dry run would lift the hold. WouldWait: it would stay on for
	// now.
	WouldRelease Result = "would-release"
	WouldForce   Result = "would-force"
	WouldWait    Result = "would-wait"
	// Quiet: it is held, its controller has reported the pause, and nothing is in
	// flight. Waiting: it is not quiet yet. WouldHold: a dry run would hold it.
	Quiet     Result = "quiet"
	Waiting   Result = "waiting"
	WouldHold Result = "would-hold"
)
