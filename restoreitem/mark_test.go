package restoreitem

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The mark of a restored object is signed for its namespace, with the key of Velero's namespace,
// whatever mark the backup has.
func TestAdoptSignsMarks(t *testing.T) {
	key := adoption.Key(strings.Repeat("k", adoption.KeySize))
	for name, item := range map[string]*unstructured.Unstructured{
		"XR":         xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b"))),
		"Claim":      xptest.Claim("o", xptest.OfXR(xptest.XR("x"))),
		"MR":         xptest.NamespacedMR("b", xptest.PublishesTo("", "s")),
		"BackedUp":   xptest.XRV2("x", xptest.Annotated(adoption.AnnotationHold, `{"restore":"velero/earlier","reason":"earlier","mac":"x"}`)),
		"Unreadable": xptest.XRV2("x", xptest.Annotated(adoption.AnnotationHold, `?`)),
	} {
		c := live()
		c.key = key
		out := adopt(t, c, item, restoreOf(map[string]string{xptest.Namespace: "team-b"}))
		if out.err != nil {
			t.Fatal(out.err)
		}
		created := out.object.DeepCopy()
		created.SetNamespace("team-b") // As Velero does.
		if h, err := key.HoldOf(created); err != nil || h == nil || h.Restore != "velero/monday" {
			t.Errorf("%s: got %+v, %v", name, h, err)
		}
		if _, err := key.HoldOf(out.object); !errors.Is(err, adoption.ErrForged) {
			t.Errorf("%s: the mark must count only in its own namespace; got %v", name, err)
		}
		if c.keyIn != "velero" {
			t.Errorf("%s: the plugin read the key in the namespace %q", name, c.keyIn)
		}
	}
	c := live()
	c.keyErr = errors.New("not for you")
	out := adopt(t, c, xptest.XRV2("x"), restoreOf(nil))
	if out.err == nil || !strings.Contains(out.err.Error(), "cannot hold Order team-a/x") {
		t.Errorf("an item that cannot be held must not come back: %v", out.err)
	}
}

// A live object's mark counts only if it is signed. Otherwise a tenant could take an MR's operation
// away, or have a status written.
func TestAdoptIgnoresForgedMarks(t *testing.T) {
	key := adoption.Key(strings.Repeat("k", adoption.KeySize))
	mark := `{"restore":"velero/monday","since":"2026-01-02T03:04:05Z","reason":"forged"}`
	xr := xptest.XRV2("x", xptest.UID("live"), xptest.Annotated(adoption.AnnotationHold, mark), xptest.Annotated(xp.AnnotationPaused, "true"))
	mr := xptest.NamespacedMR("b", xptest.ControlledBy(xptest.XRV2("x")), xptest.PublishesTo("", "s"))
	xr = xptest.With(xr, xptest.Refs(mr))
	c := live(xr)
	c.key = key
	if out := adopt(t, c, mr, restoreOf(nil)); out.err != nil || out.OperationID == "" {
		t.Errorf("the MR of an XR with a forged mark must have its own operation: %+v, %v", out.RestoreItemActionExecuteOutput, out.err)
	}
	if err := key.Sign(xr, xr.GetNamespace()); err != nil {
		t.Fatal(err)
	}
	if out := adopt(t, c, mr, restoreOf(nil)); out.err != nil || out.OperationID != "" {
		t.Errorf("an MR of a held XR must have no operation of its own: %+v, %v", out.RestoreItemActionExecuteOutput, out.err)
	}
}

// Velero removes the status from an item before it calls the actions.
func TestAdoptNotesHowAnXRFails(t *testing.T) {
	xr := xptest.XR("x", xptest.Synced("False", "ReconcileError", "no function"))
	out := adopt(t, live(), xr, restoreOf(nil))
	h, err := adoption.HoldOf(out.object)
	if err != nil || h == nil || h.Failing == "" || h.Failing != adoption.FailingOf(xr) {
		t.Errorf("got %+v, %v, %v", h, err, out.err)
	}
}
