package report

import (
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// KindRelease is the kind of a Report about what became of holds.
const KindRelease = "Release"

// A Release is what became of a hold, or would.
type Release struct {
	Object xp.Ref `json:"object"`
	// Restore put the hold on, and Phase is what that is in.
	Restore string     `json:"restore,omitempty"`
	Phase   string     `json:"phase,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Result  Result     `json:"result"`
	// Steps are what was done, or would be, in this order.
	Steps []string `json:"steps,omitempty"`
	// Settings are the person's own that came back, or would.
	Settings []string `json:"settings,omitempty"`
	// Risks are what can come of lifting the hold by force.
	Risks []string `json:"risks,omitempty"`
	// Reason is why it is not lifted, or what of the object is not as it was, and Next what to do.
	Reason string `json:"reason,omitempty"`
	Next   string `json:"next,omitempty"`
}

// A Result is what became of a hold.
type Result string

// Results.
const (
	// Released is that the hold is off, and Crossplane reconciled the object since if it is to.
	Released Result = "released"
	// Forced is the same, without all being there that was waited for.
	Forced Result = "forced"
	// Unproven is that the hold is off, and that Crossplane has not reconciled the object since.
	Unproven Result = "unproven"
	// StillHeld is that the hold is on.
	StillHeld Result = "held"
	// LeftAlone is that nothing was tried.
	LeftAlone Result = "left-alone"
	// WouldRelease and WouldForce are what would be done, and WouldWait is that the hold would stay
	// on for now.
	WouldRelease Result = "would-release"
	WouldForce   Result = "would-force"
	WouldWait    Result = "would-wait"
)
