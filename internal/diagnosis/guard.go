package diagnosis

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// LabelGuard is on the policy of example/gitops/guard.yaml, of the kind KindGuard, and on its
// binding.
const LabelGuard = "velero.crossplane.x-k8s.io/guard"

// KindGuard is the kind of the policy.
var KindGuard = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}

// GuardUp returns the warning that a policy still lets only Velero and Crossplane create claims and
// XRs.
func GuardUp(policy *unstructured.Unstructured) report.Problem {
	return report.Problem{
		Code: reason.GuardUp, Severity: report.Warning, Object: xp.RefTo(policy),
		Reason: "only Velero and Crossplane can create claims and XRs since " + policy.GetCreationTimestamp().UTC().Format(time.RFC3339),
		Next: "when everything restored is adopted: " + xp.NewCommand("kubectl", "delete", "validatingadmissionpolicies,validatingadmissionpolicybindings").
			Word("-l").Word(LabelGuard).String(),
	}
}
