package live

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A provider that publishes with a secret store chooses the type of the Secret. It may write to the
// Secret once that has its new UID.
func TestAdoptWritesTheUIDOnWhatIsInASecretStore(t *testing.T) {
	mr := restored(xptest.MR("b", xptest.StoresTo("default", "s"), xptest.Annotated(xp.AnnotationPaused, "false")))
	stored := &adoption.Stored{Namespace: "infra", Name: "s", UID: "old"}
	if _, err := adoption.Put(mr, adoption.Hold{Restore: "velero/monday", Reason: adoption.ReasonSecret, Stored: stored}); err != nil {
		t.Fatal(err)
	}
	s := newServer(mr)
	s.PrependReactor("list", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		l, _ := action.(clienttesting.ListActionImpl)
		none := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "SecretList"}}

		return !l.GetListRestrictions().Fields.Empty(), none, nil // None has Crossplane's type.
	})
	poll := func() adoption.Plan {
		t.Helper()
		plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(mr))
		if err != nil {
			t.Fatal(err)
		}

		return plans[xp.RefTo(mr).ID()]
	}
	if p := poll(); p.Done || !p.Blocked {
		t.Errorf("without the Secret the MR must wait; got %+v", p)
	}
	s.put(secrets, xptest.Object("v1", "Secret", "infra", "s", xptest.Field("Opaque", "type"), xptest.Labelled(xp.LabelOwnerUID, "old"), xptest.Labelled("app", "shop")))
	if p := poll(); !p.Done {
		t.Errorf("with the Secret the MR must be released; got %+v", p)
	}
	checkLetGo(t, s)
	if u := s.get(t, secrets, "infra", "s"); !xp.OwnsStored(mr, u) || u.GetLabels()["app"] != "shop" {
		t.Errorf("the Secret must belong to the MR again and else stay unchanged; got %v", u.GetLabels())
	}
}
