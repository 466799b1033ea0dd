package diagnosis

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Defects returns a warning for each known defect of the Crossplane version in a cluster, or of the
// one where a backup was made. An unknown version has none. unserved is true if the cluster lacks a
// kind that something needs.
func Defects(of Subject, i adoption.Installation, unserved bool) []report.Problem {
	problems := make([]report.Problem, 0, 1)
	for _, d := range i.Defects(unserved) {
		why, next := "Crossplane "+i.Version+" "+d.What, "upgrade Crossplane to "+cmp.Or(d.Fixed, d.Before)+" or later"
		if of == Backup {
			why, next = "the source cluster ran Crossplane "+i.Version+", which "+d.What, "restore into "+d.Before+" or later"
		} else if d.Until != "" {
			next += "; until then " + d.Until
		}
		problems = append(problems, report.Problem{Code: reason.KnownDefect, Severity: report.Warning, Object: i.Ref(), Reason: why, Next: next})
	}

	return problems
}

// LacksComposed reports whether a cluster does not serve a kind that an XR composes, unless the kind
// is only not active.
func (o *Objects) LacksComposed(s ClusterState) bool {
	return slices.ContainsFunc(o.Composed(), func(gvk schema.GroupVersionKind) bool {
		return o.unserved[gvk.GroupKind()] && s.inactive(gvk.GroupKind()) == ""
	})
}

// RanOn returns the Crossplane whose Deployment is among the objects; the zero value if there is
// none.
func (o *Objects) RanOn() adoption.Installation {
	return adoption.FindInstallation(fullObjects(o.with(isInstallation)))
}

// PluginMissing returns the warning about the Deployment of a Velero server that does not bring this
// plugin.
func PluginMissing(server xp.Ref) report.Problem {
	return report.Problem{
		Code: reason.PluginMissing, Severity: report.Warning, Object: server,
		Reason: "no init container of Velero's server brings this plugin, so Velero restores without holds, and external resources can be created twice or deleted",
		Next:   "add it before the next backup or restore, as docs/install.md shows",
	}
}
