package restoreitem

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func (a *Adopt) putHold(i *item, h hold.Hold) error {
	key, err := a.key(i)
	if err != nil {
		return err
	}
	h.Restore, h.Since, h.Reported = i.restoreName(), a.now().UTC().Format(time.RFC3339), hold.ReportedOf(i.original)
	put, err := hold.Put(i.Unstructured, h)
	if err != nil {
		return err
	}
	a.Requested.held.add(i.self(), xp.IsManaged(i.original), h, put)
	if err := key.Sign(i.Unstructured, i.namespace); err != nil {
		return err
	}
	hold.Manage(i.Unstructured, i.withoutHold(), a.now())

	return nil
}

func (a *Adopt) key(i *item) (hold.Key, error) {
	key, err := a.cluster.MarkKey(context.Background(), i.restore.Namespace)
	if err != nil {
		return nil, apiErrorf("cannot hold %s: %w", xp.String(i.original), err)
	}

	return key, nil
}

// liveHold returns the hold that this plugin has put on a live object, nil if there is none.
func (a *Adopt) liveHold(i *item, u *unstructured.Unstructured) (*hold.Hold, error) {
	if !xp.HasAnnotation(u, hold.Annotation) {
		return nil, nil //nolint:nilnil // No hold is no error.
	}
	key, err := a.key(i)
	if err != nil {
		return nil, err
	}
	h, err := key.HoldOf(u)
	if err != nil {
		i.warn(cmp.Or(reason.CodeOf(err), reason.MarkForged).Messagef("This plugin did not write the mark of the hold on %s, so the restore ignores it: %v",
			xp.String(u), err))

		return nil, nil //nolint:nilnil // This plugin did not write it.
	}

	return h, nil
}

// hold puts a hold on an XR or a claim and returns the ID of the operation that releases it. A claim
// has one of its own only if its XR is not held or belongs to another claim.
func (a *Adopt) hold(i *item) (string, error) {
	held := hold.Hold{
		Failing: hold.FailingOf(i.original), Status: i.neededStatus(), Quarantine: i.isQuarantined(), ByHand: i.settings.ByHand,
		SecretWas: i.secretWas, FromUID: i.fromUID,
	}
	if i.ownerless != nil {
		held.Owner, held.Reason = i.ownerless, i.reasonOwnerless()
	}
	if xp.IsComposite(i.original) {
		a.awaitSecret(i, &held)
		held.Required = a.Requested.requires(i.original)
		i.warnOfUnrestored()
	}
	if err := a.putHold(i, held); err != nil {
		return "", err
	}
	ref, bound := xp.ClaimFrom(i.Unstructured).CompositeRef()
	if !bound || !xp.IsClaim(i.Unstructured) {
		return operationID(i.self()), nil
	}
	xr, err := a.find(ref, "")
	if err != nil {
		return "", apiErrorf("cannot find the XR %s of %s: %w", ref.Name, xp.String(i.original), err)
	}
	if xr == nil {
		return operationID(i.self()), nil
	}
	h, err := a.liveHold(i, xr)
	if claimRef, _ := xp.CompositeFrom(xr).ClaimRef(); h != nil && claimRef.ID() == i.self().ID() {
		return "", nil
	}

	return operationID(i.self()), err
}

// A rememberedHolds has the holds that this process has put on items and not released. Velero first
// polls operations in the process that ran the restore, so that can distinguish an item that has
// lost its hold from one that had none. Most holds are equal, so tens of thousands take a few MB.
type rememberedHolds struct {
	by   table[uint64, *hold.Hold] // By hashes of IDs, which take a tenth of the memory.
	same table[string, *hold.Hold]
}

var holdSeed = maphash.MakeSeed() //nolint:gochecknoglobals // It is constant in a process.

func hashOf(id xp.ID) uint64 { return maphash.Comparable(holdSeed, id) }

// add remembers a hold. The fields of an XR or claim have all but Quarantine and ByHand.
func (m *rememberedHolds) add(r xp.Ref, managed bool, of hold.Hold, h *hold.Hold) {
	if of.Clone != "" {
		return // No operation releases a copy.
	}
	kept := &hold.Hold{Quarantine: of.Quarantine, ByHand: of.ByHand}
	if managed {
		of.Policies = h.Policies
		kept = &of
	}
	kept.Restore, kept.Since = "", ""
	b, err := json.Marshal(kept)
	if err != nil {
		return // A hold of this plugin can always be marshaled.
	}
	if !m.same.add(string(b), kept) {
		kept, _ = m.same.get(string(b))
	}
	m.by.put(hashOf(r.ID()), kept)
}

func (m *rememberedHolds) get(id xp.ID) *hold.Hold {
	h, _ := m.by.get(hashOf(id))

	return h
}

// OnStep is called after each step of an adoption in this process.
func (ri *RequestedItems) OnStep(c hold.Change) {
	if c.Target != nil && c.Lifts() {
		ri.held.by.remove(hashOf(xp.RefTo(c.Target).ID()))
	}
}

// warnOfUnrestored warns of what an XR composes that Velero does not restore. Of a Pod or Job only
// the backup knows whether it had completed, and has then noted that nothing waits for it.
func (i *item) warnOfUnrestored() {
	xr := xp.CompositeFrom(i.original)
	refs, err := xr.ResourceRefs()
	if err != nil {
		return // The hold refuses it.
	}
	awaited, _ := xr.SavedRefs() // The refs can be read.
	refs = slices.DeleteFunc(refs, func(r xp.Ref) bool {
		gk := r.GroupVersionKind().GroupKind()

		return !xp.MayStayOut(gk) || !xp.IsNeverRestored(gk) && slices.Contains(awaited, r)
	})
	if len(refs) > 0 {
		i.warn(reason.MadeAgain.Messagef("It composes %s, which %s", xp.SomeOf(refs), xp.MadeAgain))
	}
}
