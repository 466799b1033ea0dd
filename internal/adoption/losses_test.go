package adoption

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestLosses(t *testing.T) {
	xr, back, replacement := lostTree()
	w := investigated(withRestored(snapshot(replacement), xr, back), xr)
	plans := map[xp.ID]Plan{xp.RefTo(xr).ID(): Next(w, xp.RefTo(xr)), xp.RefTo(back).ID(): {Failed: reason.Message{Text: "for another reason"}}}
	got := Losses(w, plans)
	if len(got) != 1 || got[0].Event != EventStopped || !got[0].Warning || got[0].Message != lostWhy || got[0].Patch != nil || got[0].Target.GetUID() != xr.GetUID() {
		t.Errorf("an XR without a mark must get a warning about its loss; got %+v", got)
	}
}
