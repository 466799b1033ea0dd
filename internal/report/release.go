package report

import (
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Kinds of Reports about holds.
const (
	KindRelease = "Release"
	// KindHold is about the live objects that the command hold holds.
	KindHold = "Hold"
)

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
