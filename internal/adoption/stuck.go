package adoption

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Stuck returns why Crossplane or the provider probably does not reconcile u, and the next step.
func Stuck(u *unstructured.Unstructured, i Installation) string {
	deployment, running := i.Namespace+"/"+i.Name, strings.TrimSpace("Crossplane "+i.Version)
	restart := `run "` + i.kubectl("rollout", "restart").String() + `"`
	switch {
	case IsProviders(u):
		return "it is asked again; see whether the Deployment of its provider runs, and its log"
	case i.Hidden && isCircuitOpen(u):
		return "its circuit breaker is open, with which Crossplane drops events of what changes often (crossplane #7703); it is asked again until it lets one " +
			"pass. To have it at once, restart Crossplane"
	case i.Hidden:
		return "its Deployment could not be looked for, which takes the right to list Deployments; see whether Crossplane runs, and its log"
	case i.Name == "":
		return "there is no Deployment with the label " + LabelCrossplane + " in any namespace; start Crossplane, or restart it where it runs"
	case i.Replicas == 0:
		return `Crossplane (Deployment ` + deployment + `) is scaled to zero; run "` + i.kubectl("scale").Word("--replicas=1").String() + `"`
	case i.Ready == 0:
		return `no replica of Crossplane (Deployment ` + deployment + `) is ready; see why with "` + i.kubectl("describe").String() + `" and start it`
	case isCircuitOpen(u):
		return fmt.Sprintf("its circuit breaker is open, with which %s drops events of what changes often (crossplane #7703); it is asked again until it lets one "+
			"pass. To have it at once, %s; for good, raise --circuit-breaker-burst and --circuit-breaker-refill-rate", running, restart)
	case i.has(stopsWatching):
		return fmt.Sprintf("%s %s; %s, and for good upgrade to %s", running, stopsWatching.What, restart, stopsWatching.Before)
	case i.isAtLeast("2.1.0"):
		return fmt.Sprintf("%s drops events of XRs that change often (crossplane #7703), or can't watch the kind; it is asked again. See Crossplane's log "+
			"and the conditions of the XRD; if it stays so, %s", running, restart)
	default:
		return fmt.Sprintf("%s runs and says nothing of it; it is asked again. See Crossplane's log and the conditions of the XRD; if it stays so, %s",
			running, restart)
	}
}

// IsProviders reports whether a provider reconciles u, and not Crossplane.
func IsProviders(u *unstructured.Unstructured) bool {
	return xp.IsManaged(u) && !xp.IsComposite(u) && !xp.IsClaim(u)
}

func isCircuitOpen(u *unstructured.Unstructured) bool {
	c, ok := xp.ConditionOf(u, xp.ConditionResponsive)

	return ok && c.Status == "False" && c.Reason == xp.ReasonCircuitOpen
}
