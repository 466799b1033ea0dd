package adoption

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Whoever can write an object can write a mark.
func TestMarkOfNobody(t *testing.T) {
	for restore, possible := range map[string]bool{
		"velero/nightly": true, "velero/nightly-2026.01": true, "": true, "nightly": false, "velero/": false, "/nightly": false, "velero/a/b": false, "velero/-rf": false,
		"velero/--all": false, "velero/$(touch pwned)": false, "velero/a\nb": false, "velero/\x1b]0;pwned\x07": false, "../velero/nightly": false, "velero/\u202ea": false,
	} {
		b, err := json.Marshal(Hold{Restore: restore, Reason: "r"})
		if err != nil {
			t.Fatal(err)
		}
		h, err := HoldOf(xptest.XR("x", xptest.Annotated(AnnotationHold, string(b))))
		switch {
		case possible && (err != nil || h == nil || h.Restore != restore):
			t.Errorf("%q is one that Velero can have: %v, %v", restore, h, err)
		case !possible && (err == nil || !strings.Contains(err.Error(), "this plugin has not written it")):
			t.Errorf("%q is none that Velero can have: %v, %v", restore, h, err)
		}
	}
}
