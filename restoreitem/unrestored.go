package restoreitem

import (
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

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
