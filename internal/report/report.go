package report

import (
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// APIVersion of a Report's JSON. Fields are added to it, never changed or taken away.
const APIVersion = "report.velero.crossplane.io/v1"

// Kinds of Reports.
const (
	KindInspection = "Inspection"
	KindValidation = "Validation"
)

// A Report is about the trees of a backup or of a cluster.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Source is the file of the backup, or the context of the cluster.
	Source string    `json:"source"`
	Time   time.Time `json:"time"`
	// Restores are those that held what is reported, or that were asked for.
	Restores []Restore `json:"restores,omitempty"`
	Summary  Summary   `json:"summary"`
	// Problems are what is wrong, the gravest first.
	Problems []Problem `json:"problems"`
	Trees    []*Node   `json:"trees"`
	// Releases are what became of holds, of a release only, in the order in which they are lifted.
	Releases []Release `json:"releases,omitempty"`
	// Order is that of a restore, of a backup only.
	Order []Step `json:"order,omitempty"`
	// Versions are what the backup says of the versions in it.
	Versions []Version `json:"versions,omitempty"`
	// DryRun says what a restore of the backup would do, if that was asked.
	DryRun *DryRunResult `json:"against,omitempty"`
}

// A Summary counts.
type Summary struct {
	Claims   int `json:"claims"`
	XRs      int `json:"xrs"`
	Composed int `json:"composed"`
	// Managed are the MRs, composed or not.
	Managed int `json:"managed"`
	// Adopted are the composed resources that their XR lists and controls and that nothing holds;
	// in a backup, those that were.
	Adopted  int `json:"adopted"`
	Held     int `json:"held"`
	Problems int `json:"problems"`
	Warnings int `json:"warnings"`
}

// A Node is one resource with what it is made of: a claim with its XR, an XR with what it composes.
type Node struct {
	xp.Ref

	Role  Role  `json:"role"`
	State State `json:"state"`
	// ExternalName is an MR's, "" if it has none.
	ExternalName string `json:"externalName,omitempty"`
	// Composition and Revision are what an XR or claim runs on.
	Composition string `json:"composition,omitempty"`
	Revision    string `json:"revision,omitempty"`
	// Paused says that Crossplane leaves it alone.
	Paused bool       `json:"paused,omitempty"`
	Synced *Condition `json:"synced,omitempty"`
	Ready  *Condition `json:"ready,omitempty"`
	// Created is when it was, in the cluster that it is in.
	Created *time.Time `json:"created,omitempty"`
	Hold    *Hold      `json:"hold,omitempty"`
	// Restore says what a restore into the cluster would do, if that was asked.
	Restore *Outcome `json:"restore,omitempty"`
	// Problems are the codes of those that are about it.
	Problems []Code  `json:"problems,omitempty"`
	Children []*Node `json:"children,omitempty"`
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

// A State is how far the adoption of a resource is.
type State string

// States.
const (
	// Adopted resources are controlled as they should be, and nothing holds them.
	Adopted State = "adopted"
	// Held resources are held by this plugin, or wait for an XR that is.
	Held State = "held"
	// Missing resources are listed by their XR and don't exist.
	Missing State = "missing"
	// Foreign resources are listed by an XR that does not control them.
	Foreign State = "foreign"
	// Unread resources are of a kind that could not be read.
	Unread State = "unread"
	// Alone resources belong to no XR, and none is to be expected.
	Alone State = "alone"
	// Deleting resources are being deleted.
	Deleting State = "deleting"
)

// A Condition is one of Crossplane's.
type Condition struct {
	Status  string     `json:"status"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
}

// A Hold is one that this plugin has put on.
type Hold struct {
	// Restore is the one that did, as namespace/name.
	Restore string     `json:"restore"`
	Since   *time.Time `json:"since,omitempty"`
	// Waiting is what it waits for; empty if nothing is known.
	Waiting []string `json:"waiting,omitempty"`
	// Unpaused is when Crossplane was let reconcile it; nil if it was not yet.
	Unpaused *time.Time `json:"unpaused,omitempty"`
}

// A Restore is one of Velero's.
type Restore struct {
	// Name is namespace/name.
	Name string `json:"name"`
	// Phase is Velero's, or "Gone".
	Phase     string     `json:"phase"`
	Backup    string     `json:"backup,omitempty"`
	Started   *time.Time `json:"started,omitempty"`
	Completed *time.Time `json:"completed,omitempty"`
}

// An Outcome is what a restore would do with an item.
type Outcome struct {
	Action Action `json:"action"`
	// Reason is why, "" if it is what one expects.
	Reason string `json:"reason,omitempty"`
}

// DryRunResult is what a restore of a backup into a cluster would do.
type DryRunResult struct {
	// Cluster is the context of the kubeconfig, or the address of the API server.
	Cluster string `json:"cluster"`
	// Counts are how many items each Action is for.
	Counts map[Action]int `json:"counts"`
	// Items are those of which somebody wants to know, in the order of the restore: all but what is
	// created as one expects, or exists and is in no tree.
	Items []ItemResult `json:"items,omitempty"`
}

// An ItemResult is what becomes of an item of a backup.
type ItemResult struct {
	// Item is what it is called in the backup, and Resource what Velero calls its kind.
	Item     xp.Ref `json:"item"`
	Resource string `json:"resource"`
	// Namespace is where it goes, if that is another than it was in.
	Namespace string  `json:"namespace,omitempty"`
	Outcome   Outcome `json:"outcome"`
	// For is what asked for it, so that it comes before its kind's turn; nil if nothing did.
	For *xp.Ref `json:"for,omitempty"`
}

// An Action is what a restore does with an item.
type Action string

// Actions.
const (
	Create Action = "create"
	Keep   Action = "hold"
	Exists Action = "exists"
	Skip   Action = "skip"
	Refuse Action = "refuse"
	Clone  Action = "clone"
)

// NeverRestored is why Velero restores none of some kinds.
const NeverRestored = "Velero restores none of its kind"

// A Step is one kind in the order of a restore.
type Step struct {
	Resource string `json:"resource"`
	Items    int    `json:"items"`
	// Why it comes then.
	Why string `json:"why"`
}

// A Version is one that was found.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}
