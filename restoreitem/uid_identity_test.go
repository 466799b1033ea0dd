package restoreitem

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// What may be an identity is held, however many other fields have the UID, and also if the backup was
// taken while an earlier restore held it for that.
func TestAdoptHoldsEachIdentityFromUID(t *testing.T) {
	const firstUID = "0e0e0e0e-1111-4222-8333-444444444444"
	old := xptest.XR("x", xptest.UID(oldUID))
	x := heldWith(xptest.XR("x", xptest.UID(newUID), xptest.Refs(xptest.MR("b"))))
	mr := xptest.MR("b", xptest.ControlledBy(old), xptest.PublishesTo("infra", "s"))
	labelled := xptest.With(mr, xptest.JSON(`{"metadata": {"labels": {"a": "`+oldUID+`", "b": "`+oldUID+`", "c": "`+oldUID+`", "d": "`+oldUID+`", "e": "`+oldUID+`"}},
		"spec": {"forProvider": {"name": "`+oldUID+`"}}}`))
	again := xptest.With(mr, xptest.Annotated(xp.AnnotationExternalName, "db-"+firstUID))
	if _, err := adoption.Put(again, adoption.Hold{Restore: "velero/monday", FromUID: &adoption.FromUID{
		XR: xp.RefTo(old), UID: firstUID, Fields: []string{"metadata.annotations[crossplane.io/external-name]"},
	}}); err != nil {
		t.Fatal(err)
	}
	for name, item := range map[string]*unstructured.Unstructured{"BesideLabels": labelled, "HeldAtTheBackup": again} {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, live(x), item, restoreOf(nil))
			if out.err != nil || out.object == nil {
				t.Fatalf("got %+v", out)
			}
			h, err := adoption.HoldOf(out.object)
			if err != nil || h == nil || h.FromUID == nil {
				t.Errorf("got hold %+v, error %v, want one with FromUID", h, err)
			}
		})
	}
}
