package restoreitem

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// movesOthers reports whether a restore of namespaces must not bring a Composition: it is not in the
// cluster, and live XRs that have composed something name it. Crossplane would reconcile these under
// what the Composition was at the backup, and delete what that does not compose. The restored XRs
// stay on their revision, held.
func (a *Adopt) movesOthers(i *item) (bool, error) {
	if i.GroupVersionKind().GroupKind() != xp.KindComposition.GroupKind() || !ofNamespaces(i.restore) {
		return false, nil
	}
	live, err := a.find(i.self(), "")
	if err != nil {
		return false, apiErrorf("cannot find out whether %s exists: %w", xp.String(i.original), err)
	}
	if live != nil {
		return false, nil // Velero leaves it.
	}
	key, err := a.key(i)
	if err != nil {
		return false, err
	}
	of, _, _ := unstructured.NestedStringMap(i.Object, "spec", "compositeTypeRef")
	others, err := a.cluster.Composing(context.Background(), key, schema.FromAPIVersionAndKind(of["apiVersion"], of["kind"]), i.GetName())
	if err != nil {
		return false, apiErrorf("cannot find the XRs that run on %s: %w", xp.String(i.original), err)
	}
	if len(others) == 0 {
		return false, nil
	}
	const few = 3
	var named []string
	for _, r := range others[:min(few, len(others))] {
		named = append(named, r.String())
	}
	if more := len(others) - few; more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	i.warn(reason.CompositionLeftOut.Messagef("It is not restored, because it is not in the cluster and %s, which the restore does not bring, would run on it. "+
		"Compare what it composes with what they have, then apply it yourself", strings.Join(named, ", ")))

	return true, nil
}

// removeLabels removes the labels of an EnvironmentConfig that a restore of namespaces brings, and
// reports whether it had any. Functions of live XRs can select EnvironmentConfigs by label; restored
// XRs name this one. An XR that composes it needs the labels.
func (i *item) removeLabels() bool {
	if i.GroupVersionKind().GroupKind() != xp.KindEnvironment.GroupKind() || !ofNamespaces(i.restore) || len(i.GetLabels()) == 0 || xp.IsComposed(i.original) {
		return false
	}
	i.SetLabels(nil)
	i.warn(reason.LabelsLeftOut.Messagef("Restored without its labels, by which functions of other XRs could select it. If they may, label it as in the "+
		"backup: %s", xp.Kubectl("label", i.self())))

	return true
}
