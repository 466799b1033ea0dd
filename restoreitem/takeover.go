package restoreitem

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/label"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// fieldConditions is where a status says how well an object is.
const fieldConditions = "conditions"

// remember keeps what an XR is in the backup until the first that it composes comes back. Velero
// leaves what is live as it is, and whoever applies XRs from Git can be first. An XR with a claim
// Crossplane makes, under another name.
func (a *Adopt) remember(i *item) error {
	refs, err := xp.CompositeFrom(i.original).ResourceRefs()
	_, claimed := xp.CompositeFrom(i.original).ClaimRef()
	if err != nil || len(refs) == 0 || claimed || !xp.IsComposite(i.original) || !i.mayTakeOver() {
		return nil //nolint:nilerr // Nothing can be held that can't be read.
	}
	kept := maps.Clone(i.original.Object)
	kept["status"] = i.returnedStatus(append(i.neededStatus(), fieldConditions))
	u := &unstructured.Unstructured{Object: kept}
	kept["metadata"], _, _ = unstructured.NestedMap(kept, "metadata")
	unstructured.RemoveNestedField(kept, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	// There can be thousands of XRs, and they are much smaller as bytes.
	b, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("cannot keep %s: %w", xp.String(i.original), err)
	}
	a.remembered.Store(i.self().ID(), b)

	return nil
}

// mayTakeOver reports whether what somebody has made in the item's place can be given what it
// composed: that is held, and comes back to where it was.
func (i *item) mayTakeOver() bool {
	return i.settings.Hold != setting.HoldNone && i.namespace == i.original.GetNamespace()
}

// takeOver gives the live XR that is to own an item what it composed in the backup, if somebody
// else has made it before this restore and it has composed nothing yet. It returns the XR as it is
// then, or the given one.
func (a *Adopt) takeOver(i *item, owner *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	self := xp.RefTo(owner)
	kept, ok := a.remembered.LoadAndDelete(self.ID())
	b, isBytes := kept.([]byte)
	if !ok || !isBytes {
		return owner, nil
	}
	if h, err := a.liveHold(i, owner); err != nil || h == nil && !adoption.CanTakeOver(owner) || h != nil && !h.TakenOver {
		return owner, err
	}
	taken, err := a.takeOverAs(i, self, b)
	if err != nil {
		a.remembered.Store(self.ID(), kept) // The next that it composed tries again.

		return nil, fmt.Errorf("cannot take over %s: %w", self, err)
	}
	if taken == nil {
		return owner, nil
	}
	i.warn(logrus.Fields{"object": self.String()}, takenOverNote)

	return taken, nil
}

// takeOverAs takes over the live XR that self names as what was kept of it. It returns nil if it is
// not taken over.
func (a *Adopt) takeOverAs(i *item, self xp.Ref, kept []byte) (*unstructured.Unstructured, error) {
	original := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(kept, &original.Object); err != nil {
		return nil, fmt.Errorf("cannot read what was kept of it: %w", err)
	}
	key, err := a.key(i)
	if err != nil {
		return nil, err
	}
	status, _, _ := unstructured.NestedMap(original.Object, "status")
	held := a.holdOfTaken(i)
	held.Failing, held.Required = adoption.FailingOf(original), a.requested.requires(original)
	delete(status, fieldConditions)
	held.Status = slices.Sorted(maps.Keys(status))
	xr := &item{Unstructured: original, original: original, namespace: self.Namespace, restore: i.restore}
	a.awaitSecret(xr, &held)
	a.awaitStored(xr, &held)
	taken, err := a.cluster.TakeOver(context.Background(), key, original, self, held, labelsOf(i.restore))
	if err != nil || taken == nil || len(status) == 0 {
		return taken, err
	}
	if err := a.cluster.ReturnStatus(context.Background(), key, self, status); err != nil {
		return nil, fmt.Errorf("cannot bring its status back: %w", err)
	}

	return taken, nil
}

// takenOverNote is what is told of an XR or a claim that was taken over.
const takenOverNote = "Somebody else had made it before this restore came to it, and it had composed nothing yet. So it was given what it composed in the " +
	"backup, and is held until that is adopted; its spec is as they have made it. Suspend whoever applies it before the next restore: docs/gitops.md"

// holdOfTaken is what an XR or a claim is held by that was taken over.
func (a *Adopt) holdOfTaken(i *item) adoption.Hold {
	return adoption.Hold{
		Restore: i.restoreName(), Since: a.now().UTC().Format(time.RFC3339), Quarantine: i.isQuarantined(), ByHand: i.settings.ByHand,
	}
}

// takeOverClaim gives a live claim that somebody else has made before this restore, and that has no
// XR yet, the XR of the backup. It returns nil if there is none. Crossplane makes an XR for a claim
// at once, unless that is paused, its XRD is not there or Crossplane is not running.
func (a *Adopt) takeOverClaim(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
	if _, bound := xp.ClaimFrom(i.original).CompositeRef(); !bound || !xp.IsClaim(i.original) || !i.mayTakeOver() {
		return nil, nil //nolint:nilnil // There is nothing to do.
	}
	can, err := a.cluster.CanTakeOver(context.Background(), i.self())
	if err != nil && !isAbsent(err) {
		return nil, fmt.Errorf("cannot find out whether somebody has made %s: %w", xp.String(i.original), err)
	}
	if !can {
		return nil, nil //nolint:nilnil // Neither is here.
	}
	key, err := a.key(i)
	if err != nil {
		return nil, err
	}
	held := a.holdOfTaken(i)
	a.awaitStored(i, &held)
	taken, err := a.cluster.TakeOver(context.Background(), key, i.original, i.self(), held, labelsOf(i.restore))
	if err != nil {
		return nil, fmt.Errorf("cannot take over %s: %w", i.self(), err)
	}
	if taken == nil {
		return nil, nil //nolint:nilnil // Velero says that it exists.
	}
	i.warn(logrus.Fields{"object": i.self().String()}, takenOverNote)
	out := (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore()
	out.OperationID = operationID(i.self())

	return out, nil
}

// labelsOf are those that Velero writes on what a restore creates (velero pkg/restore/restore.go,
// addRestoreLabels).
func labelsOf(r *velerov1.Restore) map[string]string {
	return map[string]string{
		xp.LabelRestore: label.GetValidName(r.Name), xp.LabelBackup: label.GetValidName(r.Spec.BackupName),
	}
}

// isTakeable reports whether an owner can be an XR that somebody has made before a restore: it is
// to be the controller of something that was composed.
func isTakeable(ref metav1.OwnerReference, i *item) bool {
	return isController(ref) && xp.IsComposed(i.original)
}
