package restoreitem

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/label"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// remember keeps an XR of the backup until the first of its composed resources comes back. Velero
// leaves a live XR as it is, and a writer that applies XRs from Git can create it first. Crossplane
// creates the XR of a claim under another name.
func (a *Adopt) remember(i *item) error {
	refs, err := xp.CompositeFrom(i.original).ResourceRefs()
	_, claimed := xp.CompositeFrom(i.original).ClaimRef()
	if err != nil || len(refs) == 0 || claimed || !xp.IsComposite(i.original) || !i.mayTakeOver() {
		return nil //nolint:nilerr // What can't be read can't be held.
	}
	kept := xp.Inheritance(i.original)
	kept.Object["status"] = i.returnedStatus(append(i.neededStatus(), "conditions"))
	b, err := json.Marshal(kept.Object)
	if err != nil {
		return fmt.Errorf("cannot keep %s: %w", xp.String(i.original), err)
	}
	if !a.remembered.add(i.self().ID(), b) {
		a.remembered.full.Do(func() {
			i.warn(reason.NotRemembered.Messagef("If Git or another writer has created %s or XRs after it, the restore can't give these what they composed in the "+
				"backup: it keeps %d MiB of XRs that have no claim. Suspend other writers before a restore: docs/gitops.md", i.self(), rememberedLimit/mebibyte))
		})
	}

	return nil
}

// mayTakeOver reports whether what another writer created in the item's place can take over its
// composed resources. It must be held, and in the same namespace.
func (i *item) mayTakeOver() bool {
	return i.settings.Hold != setting.HoldNone && i.namespace == i.original.GetNamespace()
}

// takeOver gives the live XR that owns an item what it composed in the backup, if another writer has
// created it and it has composed nothing yet. It returns the XR as it is then.
func (a *Adopt) takeOver(i *item, owner *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	self := xp.RefTo(owner)
	b, ok := a.remembered.take(self.ID())
	if !ok {
		return owner, nil
	}
	if h, err := a.liveHold(i, owner); err != nil || h == nil && !hold.CanTakeOver(owner) || h != nil && !h.TakenOver {
		return owner, err
	}
	taken, err := a.takeOverAs(i, self, b)
	if err != nil {
		a.remembered.add(self.ID(), b) // The next composed resource tries again.

		return nil, apiErrorf("cannot take over %s: %w", self, err)
	}
	if taken == nil {
		return owner, nil
	}
	i.warn(takenOver(self))

	return taken, nil
}

// takeOverAs takes over the live XR self with the XR of the backup, which kept has as JSON. It
// returns nil if it changed nothing.
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
	held.Failing, held.Required = hold.FailingOf(original), a.Requested.requires(original)
	delete(status, "conditions")
	held.Status = slices.Sorted(maps.Keys(status))
	xr := &item{Unstructured: original, original: original, namespace: self.Namespace, restore: i.restore}
	a.awaitSecret(xr, &held)
	taken, err := a.cluster.TakeOver(context.Background(), key, original, self, held, labelsOf(i.restore))
	if err != nil || taken == nil || len(status) == 0 {
		return taken, err
	}
	if err := a.cluster.ReturnStatus(context.Background(), key, self, status); err != nil {
		return nil, apiErrorf("cannot bring its status back: %w", err)
	}

	return taken, nil
}

// takenOver returns the note about an XR or a claim that was taken over.
func takenOver(r xp.Ref) reason.Message {
	return reason.TakenOver.Messagef("Another writer created %s before this restore. It had composed nothing, so the restore gave it what it composed in the "+
		"backup. Before the next restore, suspend that writer: docs/gitops.md", r)
}

// holdOfTaken returns the hold of an XR or a claim that is taken over.
func (a *Adopt) holdOfTaken(i *item) hold.Hold {
	return hold.Hold{
		Restore: i.restoreName(), Since: a.now().UTC().Format(time.RFC3339), Quarantine: i.isQuarantined(), ByHand: i.settings.ByHand,
	}
}

// takeOverClaim gives a live claim that another writer created before this restore, and that has no
// XR yet, the XR of the backup. It returns nil if there is no such claim. Crossplane creates an XR
// at once, unless the claim is paused, its XRD is missing or Crossplane does not run.
func (a *Adopt) takeOverClaim(i *item) (*velero.RestoreItemActionExecuteOutput, error) {
	if _, bound := xp.ClaimFrom(i.original).CompositeRef(); !bound || !xp.IsClaim(i.original) || !i.mayTakeOver() {
		return nil, nil //nolint:nilnil // There is nothing to do.
	}
	if !i.updatesExisting() { // Else TakeOver looks at each claim as it is now.
		can, err := a.cluster.CanTakeOver(context.Background(), i.self())
		if err != nil && !isAbsent(err) {
			return nil, apiErrorf("cannot find out whether another writer created %s: %w", xp.String(i.original), err)
		}
		if !can {
			return nil, nil //nolint:nilnil // There is no such claim.
		}
	}
	key, err := a.key(i)
	if err != nil {
		return nil, err
	}
	taken, err := a.cluster.TakeOver(context.Background(), key, i.original, i.self(), a.holdOfTaken(i), labelsOf(i.restore))
	if err != nil {
		return nil, apiErrorf("cannot take over %s: %w", i.self(), err)
	}
	if taken == nil {
		return nil, nil //nolint:nilnil // Velero reports that it exists.
	}
	i.warn(takenOver(i.self()))
	out := (&velero.RestoreItemActionExecuteOutput{}).WithoutRestore()
	out.OperationID = operationID(i.self())

	return out, nil
}

// labelsOf returns the labels that Velero writes on what a restore creates (velero
// pkg/restore/restore.go, addRestoreLabels).
func labelsOf(r *velerov1.Restore) map[string]string {
	return map[string]string{
		xp.LabelRestore: label.GetValidName(r.Name), xp.LabelBackup: label.GetValidName(r.Spec.BackupName),
	}
}

// rememberedLimit is how many bytes of remembered XRs the process keeps: it shares the memory of
// Velero's Pod. An XR of 20 composed resources takes about 1 KiB.
const (
	mebibyte        = 1 << 20
	rememberedLimit = 16 * mebibyte
)

// rememberedXRs are XRs of the backup, as JSON, until the first of their composed resources is
// restored. What exceeds the limit is not kept.
type rememberedXRs struct {
	mu      sync.Mutex
	encoded map[xp.ID][]byte
	size    int
	// full is the first time that an XR had no room.
	full sync.Once
}

// add reports whether there was room for the XR.
func (r *rememberedXRs) add(id xp.ID, encoded []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := r.size - len(r.encoded[id]) + len(encoded)
	if size > rememberedLimit {
		return false
	}
	if r.encoded == nil {
		r.encoded = map[xp.ID][]byte{}
	}
	r.encoded[id], r.size = encoded, size

	return true
}

func (r *rememberedXRs) take(id xp.ID) (encoded []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	encoded, ok = r.encoded[id]
	r.size -= len(encoded)
	delete(r.encoded, id)

	return encoded, ok
}
