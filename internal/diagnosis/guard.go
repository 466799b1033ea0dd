package diagnosis

import (
	"fmt"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Guard is a guard that is up.
type Guard struct {
	Policy xp.Ref
	// Namespaces are the guarded ones; empty means all.
	Namespaces []string
	By         string
	Made       time.Time
}

// Check reports the guard. It is a problem, not a warning, if no object is held and all Restores
// begun since are over; restores is nil if they could not be read.
func (g Guard) Check(restores map[string]report.Restore, held bool) report.Problem {
	begun, busy := false, false
	for _, r := range restores {
		begun = begun || r.Started != nil && !r.Started.Before(g.Made)
		busy = busy || IsUnderWay(r.Phase)
	}
	where := "everywhere"
	if len(g.Namespaces) > 0 {
		where = "in " + strings.Join(g.Namespaces, ", ")
	}
	p := report.Problem{
		Code: reason.GuardUp, Severity: report.Warning, Object: g.Policy,
		Reason: fmt.Sprintf("only Velero and Crossplane can create claims and XRs %s: the guard is up since %s", where, g.Made.UTC().Format(time.RFC3339)),
		Next:   "when everything restored is adopted: " + xp.Program + " guard off",
	}
	if g.By != "" {
		p.Reason += ", put up by " + g.By
	}
	switch {
	case restores == nil:
	case held, busy:
		p.Reason += ", and a restore has not ended"
	case !begun:
		p.Reason += ", and no Restore has started since"
		p.Next = "restore, or take it down: " + xp.Program + " guard off"
	default:
		p.Severity = report.Error
		p.Reason += ". All Restores since then have ended, and nothing is held"
		p.Next = "take it down: " + xp.Program + " guard off"
	}

	return p
}
