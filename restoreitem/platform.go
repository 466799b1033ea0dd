package restoreitem

import (
	"context"
	"fmt"
	"math"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/label"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// numberRevision numbers a restored revision so that no live XR follows it. For an XR that names no
// revision Crossplane takes the one with the highest positive number that its selector matches and
// its Composition controls, and it takes control of what was restored (crossplane
// apis/apiextensions/v1, LatestRevision; internal/controller/apiextensions/composition, Reconcile).
// If the Composition returns to the revision's content, Crossplane gives it the next number, though
// not instead of 0, if there is no other revision.
//
// With the Composition of the same restore come the XRs that follow it, so its revisions keep their
// order. Velero labels that Composition, so Crossplane creates another revision, with a number that
// is one more than the highest. A restored one with the same number would be as new for ever, and
// XRs on Automatic would switch by chance. No even number is 1, or one more than another.
func (a *Adopt) numberRevision(i *item) error {
	number, found, err := unstructured.NestedInt64(i.Object, "spec", "revision")
	if err != nil {
		return fmt.Errorf("cannot read the number of %s: %w", xp.String(i.original), err)
	}
	own, err := a.bringsComposition(i)
	if err != nil {
		return err
	}
	switch {
	case !found || number < 0:
		return nil
	case !own || number == 0:
		number = -max(number, 1)
	case number <= math.MaxInt64/2:
		number *= 2
	}
	if err = unstructured.SetNestedField(i.Object, number, "spec", "revision"); err != nil {
		return fmt.Errorf("cannot number %s: %w", xp.String(i.original), err)
	}

	return nil
}

// bringsComposition reports whether this restore has created the revision's Composition.
func (a *Adopt) bringsComposition(revision *item) (bool, error) {
	ref, ok := xp.Controller(revision.original)
	if !ok {
		return false, nil
	}
	composition, err := a.owner(ref, "")
	if err != nil {
		return false, apiErrorf("cannot find the Composition of %s: %w", xp.String(revision.original), err)
	}
	if composition == nil {
		return false, nil
	}
	created := composition.GetCreationTimestamp() // A user can give a second Restore the name of the first.

	return xp.VerifyOwner(composition, revision.original, "") == "" &&
		xp.Label(composition, velerov1.RestoreNameLabel) == label.GetValidName(revision.restore.Name) &&
		!created.Before(&revision.restore.CreationTimestamp), nil
}

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
	of := xp.Strings(i.Object, "spec", "compositeTypeRef")
	others, err := a.cluster.Composing(context.Background(), key, schema.FromAPIVersionAndKind(of["apiVersion"], of["kind"]), i.GetName())
	if err != nil {
		return false, apiErrorf("cannot find the XRs that run on %s: %w", xp.String(i.original), err)
	}
	if len(others) == 0 {
		return false, nil
	}
	i.warn(reason.CompositionLeftOut.Messagef("It is not restored, because it is not in the cluster and %s, which the restore does not bring, would run on it. "+
		"Compare what it composes with what they have, then apply it yourself", xp.SomeOf(others)))

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
