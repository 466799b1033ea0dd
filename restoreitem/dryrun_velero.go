package restoreitem

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

var (
	resourceNamespaces = schema.GroupResource{Resource: "namespaces"}
	resourceCRDs       = schema.GroupResource{Group: archive.GroupCRD, Resource: "customresourcedefinitions"}
)

// high and low are the resources that Velero restores before and after all others, which come in
// alphabetical order (velero pkg/cmd/server/config/config.go, defaultRestorePriorities). The
// server's --restore-resource-priorities changes them.
var (
	high = []string{ //nolint:gochecknoglobals // The list is constant.
		"customresourcedefinitions.apiextensions.k8s.io", "namespaces", "storageclasses.storage.k8s.io", "volumesnapshotclass.snapshot.storage.k8s.io",
		"volumesnapshotcontents.snapshot.storage.k8s.io", "volumesnapshots.snapshot.storage.k8s.io", "datauploads.velero.io", "persistentvolumes",
		"persistentvolumeclaims", "clusterroles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io", "serviceaccounts",
		"clusterrolebindings.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "secrets", "configmaps", "limitranges",
		"priorityclasses.scheduling.k8s.io", "pods", "replicasets.apps", "clusterclasses.cluster.x-k8s.io", "endpoints", "services",
	}
	low = []string{ //nolint:gochecknoglobals // The list is constant.
		"clusterbootstraps.run.tanzu.vmware.com", "clusters.cluster.x-k8s.io", "clusterresourcesets.addons.cluster.x-k8s.io", "apps.kappctrl.k14s.io",
		"packageinstalls.packaging.carvel.dev",
	}
)

// turn returns the position of an item's resource in Velero's order. Resources of one turn are
// sorted by name already.
func turn(i xp.Item) int {
	name := i.GroupResource.String()
	if n := slices.Index(high, name); n >= 0 {
		return n
	}
	if n := slices.Index(low, name); n >= 0 {
		return len(high) + 1 + n
	}

	return len(high)
}

// unrestorable returns why Velero restores an item in no case; zero if it may.
func unrestorable(i archive.Item) reason.Message {
	switch xp.WhyUnrestored(i.Ref().GroupVersionKind().GroupKind(), i.Text) { //nolint:exhaustive // There are no other reasons.
	case reason.NeverRestored:
		return reason.NeverRestored.Messagef("Velero does not restore its kind")
	case reason.CompletedAtBackup:
		return reason.CompletedAtBackup.Messagef("it had completed at the backup, and Velero restores no completed one")
	default:
		return reason.Message{}
	}
}

// newItemShape is the part of an item that Velero gives to the first action: all but what the API
// server writes.
var newItemShape = &pack.Shape{ //nolint:gochecknoglobals // It is constant.
	Without: []string{"status"},
	Fields: map[string]*pack.Shape{"metadata": {Without: []string{
		"generateName", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences",
	}}},
}

// leftOutOutcome returns the outcome of an item that an action leaves out. It then keeps the live
// object, or has decided that the item is not needed. If it warned of anything else, the item is
// refused.
func leftOutOutcome(remarked []remark) report.Outcome {
	if slices.ContainsFunc(remarked, func(r remark) bool { return r.Code == reason.KeptAsLive }) {
		return report.Outcome{Action: report.Exists, Code: reason.KeptAsLive}
	}
	if why := warnings(remarked); why != "" {
		return report.Outcome{Action: report.Refuse, Reason: why}
	}
	why := ""
	for _, r := range remarked {
		why = r.String()
	}

	return report.Outcome{Action: report.Skip, Reason: why}
}

// warnings returns the texts of all warnings.
func warnings(remarked []remark) string {
	var all []reason.Message
	for _, r := range remarked {
		if r.warns {
			all = append(all, r.Message)
		}
	}

	return reason.Join(all)
}

// whyHeld returns why an item is held. It is "" for an XR or a claim that needs no user's consent,
// since all of these are held.
func whyHeld(u *unstructured.Unstructured, h *adoption.Hold) string {
	if _, kept := h.AwaitsConsent(); (xp.IsComposite(u) || xp.IsClaim(u)) && !kept {
		return ""
	}

	return strings.TrimPrefix(h.Reason, "restored from a backup; ")
}

// isCopy reports whether an action remarked that the item is a copy of a live object.
func isCopy(remarked []remark) bool {
	return slices.ContainsFunc(remarked, func(r remark) bool { return r.copied })
}
