package live

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Crossplane says in an Event only why the API server refuses what an XR composes.
func TestAdoptTellsWhatTheAPIServerRefuses(t *testing.T) {
	objects, _, _, child := restoredTree()
	s := newServer(objects...)
	simulateCrossplaneExcept(s, func(u *unstructured.Unstructured) bool {
		if refused := u.GetName() == child.GetName() && !xp.IsPaused(u); !refused {
			return false
		}
		s.put(xorders, xptest.With(u, xptest.Synced("False", "ReconcileError", "Unsynced resources: deep")))

		return true
	})
	event := func(name, of, message, at string) {
		s.put(events, xptest.Object("v1", "Event", "default", name, xptest.JSON(`{"type": "Warning", "involvedObject": {"uid": "`+of+`"}, "lastTimestamp": "`+at+`"}`),
			xptest.Field(message, "message")))
	}
	const refusal = `cannot apply composed resource "deep": Deployment.apps "d" is invalid: spec.selector: Invalid value: `
	event("old", string(child.GetUID()), refusal+`"older": field is immutable`, "2026-01-02T03:04:05Z")
	event("new", string(child.GetUID()), refusal+`"`+string(child.GetUID())+`": field is immutable`, "2026-01-02T03:04:06Z")
	event("another", "another", refusal+`"another": field is immutable`, "2026-01-02T03:04:07Z")
	event("ready", string(child.GetUID()), "not ready", "2026-01-02T03:04:08Z")
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(child))
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(reason.Strings(plans[xp.RefTo(child).ID()].Waiting), "\n")
	if !strings.Contains(said, string(child.GetUID())+`": field is immutable. Delete the object`) || !strings.Contains(said, "UIDInImmutable") {
		t.Errorf("the hold must name the cause; got %q", said)
	}
}
