package diagnosis

import (
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// Defects warns of those that the Crossplane is known to have which runs in a cluster, or ran where
// a backup was made. Nothing is said of a version that is not known.
func Defects(of Subject, i adoption.Installation) []report.Problem {
	problems := make([]report.Problem, 0, 1)
	for _, d := range i.Defects() {
		reason, next := "Crossplane "+i.Version+" "+d.What, "upgrade Crossplane to "+d.Before+" or later"
		if of == Backup {
			reason, next = "it was backed up where Crossplane "+i.Version+" ran, which "+d.What, "restore into "+d.Before+" or later"
		} else if d.Until != "" {
			next += "; until then " + d.Until
		}
		problems = append(problems, report.Problem{Code: report.KnownDefect, Severity: report.Warning, Object: i.Ref(), Reason: reason, Next: next})
	}

	return problems
}

// RanOn is the Crossplane whose Deployment is among the objects; the zero value is none.
func (o *Objects) RanOn() adoption.Installation {
	return adoption.FindInstallation(fullObjects(sorted(o.deployments)))
}
