package restoreitem

import (
	"strconv"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// The XRs of one tenant, whose composed resources never come, don't fill the memory, and don't make
// the plugin forget those of others.
func TestRememberedXRsAreBounded(t *testing.T) {
	id := func(name string) xp.ID { return xp.ID{Kind: "X", Name: name} }
	var r rememberedXRs
	r.add(id("other"), make([]byte, 3<<10))
	for n := range 200 {
		r.add(id(strconv.Itoa(n)), make([]byte, 3<<19))
	}
	size := 0
	for _, b := range r.xrs {
		size += len(b)
	}
	if size > maxRemembered || size != r.size || size < maxRemembered/2 {
		t.Errorf("%d bytes are remembered, and counted as %d", size, r.size)
	}
	if got := r.take(id("other")); len(got) != 3<<10 || r.take(id("other")) != nil {
		t.Errorf("the XR of another tenant has %d bytes", len(got))
	}
	for n := range 200 {
		r.take(id(strconv.Itoa(n)))
	}
	if r.size != 0 {
		t.Errorf("%d bytes are left", r.size)
	}
}
