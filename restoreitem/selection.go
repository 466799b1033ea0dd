package restoreitem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/util/collections"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/policy"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A selection is what a Restore selects in a backup (velero pkg/restore/restore.go,
// getOrderedResourceCollection and restoreItem).
type selection struct {
	restore *velerov1.Restore
	// labels are the label selectors, of which one must match; none if all items match.
	labels []labels.Selector
	// policies are the filters in the Restore's resource policies.
	policies *policy.Policies
}

// newSelection fails if Velero would refuse the Restore's filters (velero
// pkg/controller/restore_controller.go, validateAndComplete), and if they can't be known.
func newSelection(ctx context.Context, cluster DryRunCluster, restore *velerov1.Restore) (selection, error) {
	s, spec := selection{restore: restore, policies: &policy.Policies{}}, restore.Spec
	errs := slices.Concat(
		collections.ValidateIncludesExcludes(spec.IncludedResources, spec.ExcludedResources),
		collections.ValidateIncludesExcludes(spec.IncludedNamespaces, spec.ExcludedNamespaces),
	)
	selectors := spec.OrLabelSelectors
	if spec.LabelSelector != nil {
		selectors = []*metav1.LabelSelector{spec.LabelSelector}
		if len(spec.OrLabelSelectors) > 0 {
			errs = append(errs, errors.New("it has both labelSelector and orLabelSelectors, and Velero takes one of them"))
		}
	}
	if spec.ResourcePolicy != nil {
		var err error
		if s.policies, err = readPolicies(ctx, cluster, restore.Namespace, spec.ResourcePolicy); err != nil {
			errs = append(errs, fmt.Errorf("its resource policies in ConfigMap %s/%s: %w", restore.Namespace, spec.ResourcePolicy.Name, err))
		}
	}
	for _, l := range selectors {
		selector, err := metav1.LabelSelectorAsSelector(l)
		errs = append(errs, err)
		s.labels = append(s.labels, selector)
	}
	if err := errors.Join(errs...); err != nil {
		return selection{}, fmt.Errorf("cannot use the filters of Restore %s: %w", restore.Name, err)
	}

	return s, nil
}

// leavesOut returns why Velero does not restore an item of the backup; zero if it does.
func (s selection) leavesOut(i archive.Item, requested bool) reason.Message {
	clusterScoped := i.Namespace == ""
	switch {
	case isFiltered(i.Item, s.restore):
		return reason.NotSelected.Messagef("the Restore does not select its resource")
	case !clusterScoped && !included(s.restore, i.Namespace):
		return reason.NotSelected.Messagef("the Restore does not select its namespace")
	case clusterScoped && !inScope(i.Item, s.restore):
		return reason.NotSelected.Messagef("the Restore has includeClusterResources: false")
	case requested:
		return reason.Message{}
	case clusterScoped && ofNamespaces(s.restore):
		return reason.NotSelected.Messagef("the Restore is of namespaces, and nothing in these requests it")
	}
	selected, applies := s.policies.Selects(policy.Object{
		Resource: i.GroupResource, Namespace: i.Namespace, Name: i.Name, Kind: i.Ref().Kind, Labels: func() map[string]string { return i.Object().GetLabels() },
	})
	switch {
	case applies && !selected:
		return reason.NotSelected.Messagef("the Restore's resource policies do not select it, and nothing requests it")
	case !applies && !s.matchesLabels(i):
		return reason.NotSelected.Messagef("the Restore does not select its labels, and nothing requests it")
	default:
		return reason.Message{}
	}
}

func readPolicies(ctx context.Context, cluster DryRunCluster, namespace string, named *corev1.TypedLocalObjectReference) (*policy.Policies, error) {
	if !strings.EqualFold(named.Kind, "configmap") {
		return nil, fmt.Errorf("Velero takes a ConfigMap, not a %q", named.Kind) //nolint:staticcheck // It is a name.
	}
	if cluster == nil {
		return nil, errors.New("without a cluster they can't be read")
	}
	data, err := cluster.ConfigMap(ctx, namespace, named.Name)
	if err != nil {
		return nil, err // The caller names the ConfigMap.
	}
	p, err := policy.Parse(data)
	if err != nil {
		return nil, err // The caller names the ConfigMap.
	}
	for _, f := range p.Filters() {
		if f.Kinds, err = cluster.WithoutShortNames(f.Kinds); err != nil {
			return nil, err // It says what can't be read.
		}
	}

	err = p.CheckRestore()

	return p, err
}

func (s selection) matchesLabels(i archive.Item) bool {
	if len(s.labels) == 0 {
		return true
	}
	of := labels.Set(i.Object().GetLabels())

	return slices.ContainsFunc(s.labels, func(l labels.Selector) bool { return l.Matches(of) })
}

// namespaceOf returns the index of the Namespace of an item, -1 if the backup has none. Velero
// creates it even if the Restore does not select it (velero pkg/restore/restore.go, restoreItem).
func namespaceOf(b *archive.Backup, i xp.Item) int {
	if i.Namespace == "" {
		return -1
	}

	return b.Index(xp.Item{GroupResource: resourceNamespaces, Name: i.Namespace})
}

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

// turn returns the position of an item's resource in Velero's order, which is by name within a turn.
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

// leftOutOutcome returns the outcome of an item that an action leaves out: because it exists or is
// not needed, or, with a warning of anything else, because it is refused.
func leftOutOutcome(remarked []remark) report.Outcome {
	if slices.ContainsFunc(remarked, func(r remark) bool { return r.Code == reason.KeptAsLive }) {
		return report.Outcome{Action: report.Exists, Code: reason.KeptAsLive}
	}
	if why := warnings(remarked); len(why) > 0 {
		return report.Outcome{Action: report.Refuse, Reason: reason.Join(why)}
	}
	var last remark
	if n := len(remarked); n > 0 {
		last = remarked[n-1]
	}

	return report.Outcome{Action: report.Skip, Reason: last.String()}
}

func warnings(remarked []remark) []reason.Message {
	var all []reason.Message
	for _, r := range remarked {
		if r.warns {
			all = append(all, r.Message)
		}
	}

	return all
}

// whyHeld returns why an item is held. It is "" for an XR or a claim that needs no user's consent,
// since all of these are held.
func whyHeld(u *unstructured.Unstructured, h *hold.Hold) string {
	if _, kept := h.AwaitsConsent(); (xp.IsComposite(u) || xp.IsClaim(u)) && !kept {
		return ""
	}

	return strings.TrimPrefix(h.Reason, "restored from a backup; ")
}

func isCopy(remarked []remark) bool {
	return slices.ContainsFunc(remarked, func(r remark) bool { return r.copied })
}
