package live

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// publishing returns an MR that is held until its Secret is restored.
func publishing(o ...xptest.Option) *unstructured.Unstructured {
	u := restored(xptest.MR("b", append(o, xptest.PublishesTo("infra", "s"), xptest.Annotated(xp.AnnotationPaused, "false"))...))
	if _, err := adoption.Put(u, adoption.Hold{Restore: "velero/monday", Reason: adoption.ReasonSecret}); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

func checkLetGo(t *testing.T, s *server) {
	t.Helper()
	u := s.get(t, buckets, "", "b")
	if h, err := adoption.HoldOf(u); h != nil || err != nil || u.GetAnnotations()[xp.AnnotationPaused] != "false" {
		t.Errorf("the MR must have its own settings back; got hold %+v, error %v, annotations %v", h, err, u.GetAnnotations())
	}
}

func TestAdoptReleasesAnMR(t *testing.T) {
	mr := publishing()
	s := newServer(mr)
	for range 2 {
		plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(mr))
		if err != nil || !plans[xp.RefTo(mr).ID()].Done {
			t.Fatalf("the first poll must release the MR, since all objects are restored by then; got %+v, %v", plans, err)
		}
		checkLetGo(t, s)
	}
	if patches := s.requests("patch"); len(patches) != 1 {
		t.Errorf("a released MR must not change again: %v", patches)
	}
}

// An MR waits for a Secret of the backup that could not be restored: its provider would publish
// another.
func TestAdoptHoldsAnMRWithoutItsSecret(t *testing.T) {
	mr := restored(xptest.MR("b", xptest.PublishesTo("infra", "s"), xptest.Annotated(xp.AnnotationPaused, "false")))
	if _, err := adoption.Put(mr, adoption.Hold{Restore: "velero/monday", Reason: adoption.ReasonSecret, Secret: true}); err != nil {
		t.Fatal(err)
	}
	s := newServer(mr)
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(mr))
	if p := plans[xp.RefTo(mr).ID()]; err != nil || p.Done || p.Patch != nil || !p.Blocked || len(s.steps()) > 0 {
		t.Errorf("without its Secret: %+v, %v", p, err)
	}
	s.put(secrets, restored(xptest.Secret("s", xptest.In("infra"))))
	plans, err = newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(mr))
	if err != nil || !plans[xp.RefTo(mr).ID()].Done {
		t.Errorf("with its Secret: %+v, %v", plans, err)
	}
	if c, ok := xp.Controller(s.get(t, secrets, "infra", "s")); !ok || c.UID != mr.GetUID() {
		t.Errorf("the Secret, which came back without its MR, is controlled by %+v", c)
	}
	checkLetGo(t, s)
}

// The operation of an XR releases its composed MRs before Crossplane reconciles the XR.
func TestAdoptReleasesComposedMRs(t *testing.T) {
	x := xptest.XR("x")
	mr := publishing(xptest.ControlledBy(x), xptest.Reconciled())
	xr := xptest.XR("x", xptest.Refs(mr))
	s := newServer(restored(xr), mr, restored(xptest.Revision(xptest.RevisionName, x)))
	simulateCrossplane(s)
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if err != nil || !plans[xp.RefTo(xr).ID()].Done {
		t.Fatalf("got %+v, %v", plans, err)
	}
	checkLetGo(t, s)
	// The plan of the MR may have the same step.
	if diff := cmp.Diff([]string{"buckets /b", "xorders /x"}, slices.Compact(s.requests("patch"))); diff != "" {
		t.Errorf("the MR is released first, then the XR is unpaused and released: -want, +requested:\n%s", diff)
	}
}

// A rejected patch of one MR does not block the others.
func TestAdoptReportsRejectedMR(t *testing.T) {
	mr := publishing()
	s := newServer(mr)
	s.failOn("patch", "buckets", 1<<30, apierrors.NewForbidden(buckets.GroupResource(), "b", errDown))
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(mr))
	if p := plans[xp.RefTo(mr).ID()]; err != nil || p.Done || len(p.Waiting) != 1 {
		t.Errorf("the plan must name the refusal of an admission policy; got %+v, %v", p, err)
	}
}

// A provider's kind can have the name Secret too. It has no type to select by.
func TestObserveListsSecretsOfOtherGroups(t *testing.T) {
	const gv = "secretsmanager.example.org/v1beta1"
	gvr := schema.GroupVersionResource{Group: "secretsmanager.example.org", Version: "v1beta1", Resource: "secrets"}
	mr := xptest.Object(gv, "Secret", "", "s")
	xr := restored(xptest.XR("x", xptest.Refs(mr)))
	revision := restored(xptest.Revision(xptest.RevisionName, xr))
	s := newServer()
	s.FakeDynamicClient = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		xorders: xptest.LegacyKind + "List", revisions: "CompositionRevisionList", gvr: "SecretList", secrets: "SecretList",
	}, xr, revision, mr)
	s.kinds[gv] = []metav1.APIResource{{Name: "secrets", Kind: "Secret"}}
	s.PrependReactor("list", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		l, _ := action.(clienttesting.ListActionImpl)
		if action.GetResource() == gvr && !l.GetListRestrictions().Fields.Empty() {
			return true, nil, apierrors.NewBadRequest("field label not supported: type") // As for every custom resource.
		}

		return false, nil, nil
	})
	w, err := s.cluster().Observe(context.Background(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(xr)})
	if err != nil || w.Get(xp.RefTo(mr)) == nil {
		t.Errorf("an MR from before the restore must be observed; got error %v", err)
	}
}

// A Secret that a provider reads can have any type and no labels. One list of metadata finds it.
func TestAdoptHoldsAnMRWithoutItsInput(t *testing.T) {
	var mrs []*unstructured.Unstructured
	for _, name := range []string{"a", "b"} {
		mr := restored(xptest.MR(name, xptest.Annotated(xp.AnnotationPaused, "false")))
		in := adoption.Input{Namespace: "infra", Name: "password-" + name}
		if _, err := adoption.Put(mr, adoption.Hold{Restore: "velero/monday", Reason: adoption.ReasonInput(in), Inputs: []adoption.Input{in}}); err != nil {
			t.Fatal(err)
		}
		mrs = append(mrs, mr)
	}
	secretOf := func(name string) *unstructured.Unstructured {
		return xptest.Object("v1", "Secret", "infra", name, xptest.Field("Opaque", "type"), xptest.Field(map[string]any{"p": "eA=="}, "data"))
	}
	s := newServer(append(mrs, secretOf("password-a"), secretOf("other"))...)
	s.PrependReactor("list", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		l, _ := action.(clienttesting.ListActionImpl)
		none := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "SecretList"}}

		return !l.GetListRestrictions().Fields.Empty(), none, nil // None has Crossplane's type.
	})
	w, err := s.cluster().Observe(context.Background(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(mrs[0]), xp.RefTo(mrs[1])})
	if err != nil {
		t.Fatal(err)
	}
	if all := w.All(kindSecret.GroupKind(), nil); len(all) != 1 || all[0].GetName() != "password-a" || all[0].Object["data"] != nil {
		t.Errorf("the snapshot must keep only the Secrets that are needed: %v", all)
	}
	lists := 0
	for _, a := range s.Actions() {
		if a, ok := a.(clienttesting.ListActionImpl); ok && a.GetResource() == secrets {
			lists++
			if a.GetNamespace() != "infra" {
				t.Errorf("listed in %q", a.GetNamespace())
			}
		}
	}
	if lists != 4 {
		t.Errorf("one list for both Secrets: labelled by the restore, by type, composed, and all; got %d lists", lists)
	}
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(mrs[1]))
	if p := plans[xp.RefTo(mrs[1]).ID()]; err != nil || p.Done || !p.Blocked || adoption.IsMarked(s.get(t, buckets, "", "a")) {
		t.Errorf("the MR with its Secret must be released, and the one without must wait: %+v, %v", plans, err)
	}
	s.put(secrets, secretOf("password-b"))
	plans, err = newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(mrs[1]))
	if err != nil || !plans[xp.RefTo(mrs[1]).ID()].Done {
		t.Errorf("with its Secret: %+v, %v", plans, err)
	}
}

// Without the right to list all Secrets of the namespace the XR waits, with a notice.
func TestAdoptWithoutRightToInputs(t *testing.T) {
	mr := restored(xptest.MR("b"))
	in := adoption.Input{Namespace: "infra", Name: "password"}
	if _, err := adoption.Put(mr, adoption.Hold{Restore: "velero/monday", Inputs: []adoption.Input{in}}); err != nil {
		t.Fatal(err)
	}
	s := newServer(mr)
	s.failOn("list", "secrets", 1<<30, apierrors.NewForbidden(secrets.GroupResource(), "", errDown))
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(mr))
	if p := plans[xp.RefTo(mr).ID()]; err != nil || p.Done || len(p.Waiting) != 1 || !strings.Contains(p.Waiting[0].String(), "can't be read") {
		t.Errorf("got %+v, %v", plans, err)
	}
}

// A list of all Secrets excludes their data.
func TestAllSecretsAreListedWithoutData(t *testing.T) {
	s := newServer()
	c := s.cluster()
	c.metadataPages = metadataOf(xptest.Object("v1", "Secret", "infra", "password"))
	found, err := c.List(context.Background(), kindSecret, "infra", metav1.ListOptions{})
	if err != nil || len(found) != 1 || xp.RefTo(found[0]).String() != "Secret infra/password" {
		t.Errorf("got %v, %v", found, err)
	}
	if exists, err := c.Exists(context.Background(), xp.RefTo(found[0])); !exists || err != nil {
		t.Errorf("got %v, %v", exists, err)
	}
	if lists := s.requests("list"); len(lists) > 0 {
		t.Errorf("Secrets were read whole: %v", lists)
	}
}
