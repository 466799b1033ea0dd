package hooks

import (
	"fmt"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// lastAdoption returns the Restore with operations in a namespace that ended last; nil if there is
// none.
func lastAdoption(restores map[string]report.Restore, namespace string) *report.Restore {
	var last *report.Restore
	for _, r := range restores {
		ended := strings.HasPrefix(r.Name, namespace+"/") && r.Operations > 0 && r.Started != nil && r.Completed != nil
		if ended && (last == nil || r.Completed.After(*last.Completed) || r.Completed.Equal(*last.Completed) && r.Name < last.Name) {
			last = &r
		}
	}

	return last
}

// newestRestore returns the name of the Restore in a namespace that began last. late has a problem
// if it began longer ago than within, or if there is none.
func newestRestore(restores map[string]report.Restore, namespace string, now time.Time, within time.Duration) (name string, late []report.Problem) {
	var last report.Restore
	for _, r := range restores {
		in := strings.HasPrefix(r.Name, namespace+"/")
		if in && r.Started != nil && (last.Started == nil || r.Started.After(*last.Started) || r.Started.Equal(*last.Started) && r.Name < last.Name) {
			last = r
		}
	}
	_, name, _ = strings.Cut(last.Name, "/")
	missing := func(called, why string) []report.Problem {
		return []report.Problem{{
			Code: reason.NotFound, Severity: report.Error, Object: xp.Ref{APIVersion: "velero.io/v1", Kind: "Restore", Namespace: namespace, Name: called},
			Reason: why, Next: "check whether restores still run: velero restore get",
		}}
	}
	switch {
	case last.Started == nil:
		return "", missing("*", "no Restore has begun")
	case now.Sub(*last.Started) > within:
		return name, missing(name, fmt.Sprintf("it is the newest one and began %s ago, which is longer than %s", now.Sub(*last.Started).Round(time.Second), within))
	default:
		return name, nil
	}
}
