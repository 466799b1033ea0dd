package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// marked returns u as a backup has it that was taken while u was held.
func marked(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	if _, err := adoption.Put(u, adoption.Hold{Restore: "velero/sunday", Reason: adoption.ReasonSecret}); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

// A provider must not publish before the backup's Secret is restored: Velero would then leave that
// out.
func TestAdoptHoldsWhatPublishes(t *testing.T) {
	publishes, locally := xptest.PublishesTo("infra", "s"), xptest.PublishesTo("", "s")
	free := xptest.MR("b", publishes)
	x := xptest.XR("x", xptest.UID("new"), xptest.Refs(free))
	local := xptest.XRV2("x", xptest.UID("new"), xptest.Refs(xptest.NamespacedMR("b")))
	composed := xptest.MR("b", publishes, xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))))
	inXR2 := xptest.NamespacedMR("b", locally, xptest.ControlledBy(xptest.XRV2("x", xptest.UID("old"))))
	paused := xptest.Annotated(xp.AnnotationPaused, "true")
	plain := xptest.MR("b")
	labelled := &velerov1.Restore{ObjectMeta: restoreOf(nil).ObjectMeta, Spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}}}
	const op, localOp = "Bucket.v1alpha1.cloud.example.org//b", "Bucket.v1alpha1.cloud.example.org/team-a/b"
	type want struct {
		Op string
		// Paused is the user's own setting in the hold.
		Paused *string
	}
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		live    *cluster
		restore *velerov1.Restore
		want    want
	}{
		"Standalone":           {reason: "Only its own operation can release an MR without an XR.", item: free, live: live(), want: want{Op: op}},
		"StandaloneNamespaced": {reason: "A namespaced MR of Crossplane v2 needs its own operation too.", item: xptest.NamespacedMR("b", locally), live: live(), want: want{Op: localOp}},
		"OwnPause": {
			reason: "The mark keeps a user's pause for later.", item: xptest.With(free, paused), live: live(), want: want{Op: op, Paused: ptr.To("true")},
		},
		"Composed": {reason: "The operation of the held XR also releases the MR.", item: composed, live: live(heldWith(x))},
		"ComposedOwnPause": {
			reason: "The held XR's operation keeps the user's pause on the MR.", item: xptest.With(composed, paused), live: live(heldWith(x)), want: want{Paused: ptr.To("true")},
		},
		"ComposedInXR2": {reason: "The held XR of Crossplane v2 also releases the MR.", item: inXR2, live: live(heldWith(local))},
		"Mapped": {
			reason: "The plugin looks for the XR in the mapped namespace.", item: inXR2, live: live(heldWith(xptest.With(local, xptest.In("copy")))),
			restore: restoreOf(toCopy()),
		},
		"XRNotHeld": {reason: "An XR that is not held has no operation.", item: composed, live: live(x), want: want{Op: op}},
		"XRHeldEarlier": {
			reason: "An XR that an earlier restore holds has no operation of this restore.", item: composed, live: live(marked(x)), want: want{Op: op},
		},
		"XRUnreadable": {
			reason: "An XR with an unreadable mark must not release the MR.", item: composed, live: live(xptest.With(x, xptest.Annotated(adoption.AnnotationHold, "?"))),
			want: want{Op: op},
		},
		"XRMissing": {reason: "An XR that did not come back has no operation.", item: composed, live: live(), want: want{Op: op}},
		"XRLater":   {reason: "In a restore by labels the XR comes after the MR.", item: composed, live: live(), restore: labelled, want: want{Op: op}},
		"XRDeleting": {
			reason: "An XR that is being deleted does not adopt the MR.", item: composed, live: live(heldWith(xptest.With(x, xptest.Deleting()))), want: want{Op: op},
		},
		"XRDoesNotListIt": {
			reason: "A held XR that does not list the MR does not adopt it.", item: composed, live: live(heldWith(xptest.With(x, xptest.Refs()))), want: want{Op: op},
		},
		"XRIsACopy": {
			reason: "The operation of a copy fails at once or does not exist.", item: composed, want: want{Op: op},
			live: live(copiedXR(x)),
		},
		"Again": {
			reason: "An MR that was held in the backup is held again, with the user's own settings.", item: marked(free), live: live(), want: want{Op: op},
		},
		"AgainWithOwnPause": {
			reason: "A second hold keeps the user's pause too.", item: marked(xptest.With(free, paused)), live: live(), want: want{Op: op, Paused: ptr.To("true")},
		},
		"MarkOnly": {
			reason: "A marked MR always has an operation, even if it no longer publishes.", item: marked(plain), live: live(), want: want{Op: op},
		},
		"MarkOnComposed": {
			reason: "The XR's operation releases a marked composed MR.", item: marked(xptest.With(composed, xptest.Without("spec", "writeConnectionSecretToRef"))), live: live(heldWith(x)),
		},
		"MarkUnreadable": {
			reason: "A marked MR has an operation even if the mark is unreadable.", item: xptest.With(plain, xptest.Annotated(adoption.AnnotationHold, "?")), live: live(), want: want{Op: op},
		},
		"MarkOfAnEarlierCopy": {
			reason: "An MR that was held as a copy and is no copy now is released.", item: func() *unstructured.Unstructured {
				u := xptest.With(plain)
				if _, err := adoption.Put(u, adoption.Hold{Restore: "velero/sunday", Clone: "Bucket z", Reason: "a copy"}); err != nil {
					t.Fatal(err)
				}

				return u
			}(), live: live(), want: want{Op: op},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			restore := tc.restore
			if restore == nil {
				restore = restoreOf(nil)
			}
			out := adopt(t, tc.live, tc.item, restore)
			if out.err != nil || out.object == nil {
				t.Fatalf("%s\ngot %+v", tc.reason, out)
			}
			h, err := adoption.HoldOf(out.object)
			if err != nil || h == nil {
				t.Fatalf("%s\ngot hold %+v, error %v", tc.reason, h, err)
			}
			if diff := cmp.Diff(tc.want, want{Op: out.OperationID, Paused: h.Paused}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			why := adoption.ReasonSecret
			if !xp.Publishes(out.object) {
				why = adoption.ReasonMarked
			}
			if h.Restore != "velero/monday" || h.Since != "2026-01-02T03:04:05Z" || h.Clone != "" || h.Pinned || !strings.HasPrefix(h.Reason, why) ||
				!xp.IsPaused(out.object) {
				t.Errorf("%s\nwant another hold: %+v", tc.reason, h)
			}
		})
	}
}

// A Secret that the restore has reached may still fail, and must exist before its MR is released.
// If no item is one, nothing waits.
func TestAdoptKnowsWhichSecretsComeBack(t *testing.T) {
	free, local := xptest.MR("b", xptest.PublishesTo("infra", "s")), xptest.NamespacedMR("b", xptest.PublishesTo("", "s"))
	for name, tc := range map[string]struct {
		reason  string
		secret  *unstructured.Unstructured
		mr      *unstructured.Unstructured
		restore *velerov1.Restore
		want    bool
	}{
		"Comes":      {"The backup has the Secret.", xptest.Secret("s", xptest.In("infra")), free, restoreOf(nil), true},
		"ComesLocal": {"The backup has the Secret of a namespaced MR of Crossplane v2.", xptest.Secret("s", xptest.In("team-a")), local, restoreOf(nil), true},
		"Mapped":     {"Secret and MR move to the same namespace.", xptest.Secret("s", xptest.In("team-a")), local, restoreOf(toCopy()), true},
		"Another":    {"A Secret of the same name in another namespace is another Secret.", xptest.Secret("s", xptest.In("team-b")), free, restoreOf(nil), false},
		"Opaque": {
			"An Opaque Secret is no connection secret.", xptest.Secret("s", xptest.In("infra"), xptest.Field("Opaque", "type")), free, restoreOf(nil), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			requested := &RequestedItems{}
			failing := func(schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
				return schema.GroupVersionResource{}, false, errAPI
			}
			owned := xptest.With(tc.secret, xptest.ControlledBy(tc.mr))
			if _, err := NewOrder(Crossplane(), kindsFn(failing), log, Shared{Requested: requested}).Execute(inputFor(owned, tc.restore)); err != nil {
				t.Fatal(err)
			}
			out, err := NewAdopt(Crossplane(), live(), nil, log, Shared{Requested: requested}).Execute(inputFor(tc.mr, tc.restore))
			if err != nil {
				t.Fatal(err)
			}
			h, err := adoption.HoldOf(&unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()})
			if err != nil || h == nil || h.Secret != tc.want {
				t.Errorf("%s Got hold %+v, error %v", tc.reason, h, err)
			}
		})
	}
}

// copiedXR returns a held copy of an XR.
func copiedXR(x *unstructured.Unstructured) *unstructured.Unstructured {
	x = x.DeepCopy()
	if _, err := adoption.Put(x, adoption.Hold{Restore: "velero/monday", Clone: "XOrder z", Reason: "a copy"}); err != nil {
		panic(err) // The test is wrong.
	}

	return x
}

// A copy that observes publishes, too. Its XR is held as a copy and has no operation, so the MR has
// one.
func TestAdoptHoldsCopiesThatPublish(t *testing.T) {
	locally := xptest.PublishesTo("", "s")
	xr := xptest.XRV2("x")
	mr := xptest.NamespacedMR("b", locally, xptest.ControlledBy(xr))
	xr = xptest.With(xr, xptest.Refs(mr))
	free := xptest.NamespacedMR("f", locally)
	copied := copiedXR(xptest.With(xr, xptest.In("copy")))
	type want struct {
		Skip, Paused bool
		Op, Clone    string
		Policies     []string
	}
	for name, tc := range map[string]struct {
		item  *unstructured.Unstructured
		clone string
		want  want
	}{
		"Observe":     {xptest.With(mr, policies(`["*"]`)), "observe", want{Paused: true, Op: "Bucket.v1alpha1.cloud.example.org/copy/b", Policies: []string{"Observe"}}},
		"ObserveFree": {xptest.With(free, policies(`["*"]`)), "observe", want{Paused: true, Op: "Bucket.v1alpha1.cloud.example.org/copy/f", Policies: []string{"Observe"}}},
		"Hold":        {mr, "hold", want{Paused: true, Clone: "Order team-a/x"}},
		"HoldFree":    {free, "hold", want{Paused: true, Op: "Bucket.v1alpha1.cloud.example.org/copy/f", Clone: "Bucket team-a/f"}},
		"New":         {mr, "new", want{Skip: true}},
	} {
		c := live(xr, mr, free, copied)
		c.config = set(tc.clone)
		out := adopt(t, c, tc.item, restoreOf(toCopy()))
		if out.err != nil {
			t.Fatal(out.err)
		}
		got := want{Skip: out.SkipRestore, Op: out.OperationID}
		if out.object != nil {
			h, _ := adoption.HoldOf(out.object)
			got.Paused, got.Clone = xp.IsPaused(out.object), ptr.Deref(h, adoption.Hold{}).Clone
			got.Policies, _, _ = unstructured.NestedStringSlice(out.object.Object, "spec", "managementPolicies")
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}

func TestAdoptHoldsWhatPublishesErrors(t *testing.T) {
	item := xptest.MR("b", xptest.PublishesTo("infra", "s"), xptest.ControlledBy(xptest.XR("x")))
	if out := adopt(t, failingCluster(errAPI), item, restoreOf(nil)); out.err == nil {
		t.Errorf("a temporary API error must not decide whether it has an operation; got %+v", out)
	}
}

// A namespaced XR composes resources in its namespace, which the list of unresolved references
// lacks.
func TestAdoptMapsDanglingRefs(t *testing.T) {
	gone, there := xptest.NamespacedMR("gone"), xptest.NamespacedMR("b")
	out := adopt(t, live(), xptest.XRV2("x", xptest.Refs(there, gone), xptest.UnresolvedRefs(gone)), restoreOf(toCopy()))
	if out.err != nil {
		t.Fatal(out.err)
	}
	h, err := adoption.HoldOf(xptest.With(out.object, xptest.In("copy")))
	if err != nil || h == nil {
		t.Fatal(h, err)
	}
	if diff := cmp.Diff([]xp.Ref{xp.RefTo(xptest.With(there, xptest.In("copy")))}, h.Refs); diff != "" {
		t.Errorf("the hold must not name missing resources: -want, +got:\n%s", diff)
	}
}

// A copy of a claim without an XR is a claim only by its mark when it is created.
func TestAdoptHoldsACopyOfAnUnboundClaim(t *testing.T) {
	claim := xptest.Claim("o")
	out := adopt(t, live(claim), claim, restoreOf(toCopy()))
	created := xptest.With(out.object, xptest.In("copy"))
	w := adoption.NewSnapshot(adoption.Unverified)
	w.Add(created)
	if p := adoption.Next(w, xp.RefTo(created)); p.Done || !strings.Contains(p.Failed.String(), "stays held") || out.OperationID == "" {
		t.Errorf("the operation must report that it stays held; got %+v", p)
	}
}

// Velero allows an empty mapping.
func TestAdoptIgnoresAnEmptyMapping(t *testing.T) {
	for name, item := range map[string]*unstructured.Unstructured{
		"XR": xptest.XR("x"), "Unlabelled": xptest.MR("b", xptest.Without("metadata", "labels"), xptest.PublishesTo("infra", "s")),
	} {
		out := adopt(t, live(), item, restoreOf(map[string]string{"": "copy"}))
		if out.err != nil || out.object.GetNamespace() != "" || len(out.object.GetLabels()) > 0 || strings.Contains(out.OperationID, "copy") {
			t.Errorf("%s: a mapping must not move a cluster-scoped item; got %+v", name, out)
		}
	}
}
