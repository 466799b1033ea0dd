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
	local := xptest.ModernXR("x", xptest.UID("new"), xptest.Refs(xptest.NamespacedMR("b")))
	composed := xptest.MR("b", publishes, xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))))
	inXR2 := xptest.NamespacedMR("b", locally, xptest.ControlledBy(xptest.ModernXR("x", xptest.UID("old"))))
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
		"Standalone":           {reason: "Nothing else would let it go.", item: free, live: live(), want: want{Op: op}},
		"StandaloneNamespaced": {reason: "The same for Crossplane v2.", item: xptest.NamespacedMR("b", locally), live: live(), want: want{Op: localOp}},
		"OwnPause": {
			reason: "A person's own pause is kept for later.", item: xptest.With(free, paused), live: live(), want: want{Op: op, Paused: ptr.To("true")},
		},
		"Composed": {reason: "The operation of its held XR is its own too.", item: composed, live: live(heldWith(x))},
		"ComposedOwnPause": {
			reason: "The same, with its own pause kept.", item: xptest.With(composed, paused), live: live(heldWith(x)), want: want{Paused: ptr.To("true")},
		},
		"ComposedInXR2": {reason: "The same for Crossplane v2.", item: inXR2, live: live(heldWith(local))},
		"Mapped": {
			reason: "Its XR is looked for where both are restored to.", item: inXR2, live: live(heldWith(xptest.With(local, xptest.In("copy")))),
			restore: restoreOf(toCopy()),
		},
		"XRLiveAllAlong": {reason: "An XR that is not held has no operation.", item: composed, live: live(x), want: want{Op: op}},
		"XRHeldEarlier": {
			reason: "Nor has one that an earlier restore holds an operation of this one.", item: composed, live: live(marked(x)), want: want{Op: op},
		},
		"XRUnreadable": {
			reason: "Nor may one whose mark can't be read let it go.", item: composed, live: live(xptest.With(x, xptest.Annotated(adoption.AnnotationHold, "?"))),
			want: want{Op: op},
		},
		"XRMissing": {reason: "Nor has one that did not come back.", item: composed, live: live(), want: want{Op: op}},
		"XRLater":   {reason: "In a restore by labels the XR comes after it.", item: composed, live: live(), restore: labelled, want: want{Op: op}},
		"XRDeleting": {
			reason: "What is being deleted does not take it over.", item: composed, live: live(heldWith(xptest.With(x, xptest.Deleting()))), want: want{Op: op},
		},
		"XRDoesNotListIt": {
			reason: "Nor does a held XR that does not know it.", item: composed, live: live(heldWith(xptest.With(x, xptest.Refs()))), want: want{Op: op},
		},
		"XRIsACopy": {
			reason: "The operation of a copy fails at once, or there is none.", item: composed, want: want{Op: op},
			live: live(copiedXR(x)),
		},
		"Again": {
			reason: "One that was backed up on hold is put on hold anew, with the settings that its person had.", item: marked(free), live: live(), want: want{Op: op},
		},
		"AgainWithOwnPause": {
			reason: "The same.", item: marked(xptest.With(free, paused)), live: live(), want: want{Op: op, Paused: ptr.To("true")},
		},
		"MarkOnly": {
			reason: "A mark is never left to nobody, also on what publishes no more.", item: marked(plain), live: live(), want: want{Op: op},
		},
		"MarkOnComposed": {
			reason: "The XR lifts that one.", item: marked(xptest.With(composed, xptest.Without("spec", "writeConnectionSecretToRef"))), live: live(heldWith(x)),
		},
		"MarkUnreadable": {
			reason: "Nor one that can't be read.", item: xptest.With(plain, xptest.Annotated(adoption.AnnotationHold, "?")), live: live(), want: want{Op: op},
		},
		"MarkOfAnEarlierCopy": {
			reason: "What was held as a copy, and is one no more, is let go.", item: func() *unstructured.Unstructured {
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
				t.Errorf("%s\nthe item is not held as it should be: %+v", tc.reason, h)
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
		"Comes":      {"It is in the backup.", xptest.Secret("s", xptest.In("infra")), free, restoreOf(nil), true},
		"ComesLocal": {"The same for Crossplane v2.", xptest.Secret("s", xptest.In("team-a")), local, restoreOf(nil), true},
		"Mapped":     {"Both go to another namespace.", xptest.Secret("s", xptest.In("team-a")), local, restoreOf(toCopy()), true},
		"Another":    {"That is not the one.", xptest.Secret("s", xptest.In("team-b")), free, restoreOf(nil), false},
		"Opaque": {
			"That is no connection secret.", xptest.Secret("s", xptest.In("infra"), xptest.Field("Opaque", "type")), free, restoreOf(nil), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			requested := &RequestedItems{}
			failing := func(schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
				return schema.GroupVersionResource{}, false, errAPI
			}
			owned := xptest.With(tc.secret, xptest.ControlledBy(tc.mr))
			if _, err := NewOrder(Crossplane(), ResourceMapperFn(failing), requested, log).Execute(inputFor(owned, tc.restore)); err != nil {
				t.Fatal(err)
			}
			out, err := NewAdopt(Crossplane(), live(), nil, log, WithRequestedItems(requested)).Execute(inputFor(tc.mr, tc.restore))
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
	xr := xptest.ModernXR("x")
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
		t.Errorf("A failure that passes must not decide whether it has an operation; got %+v", out)
	}
}

// A namespaced XR composes resources in its namespace, which the list of unresolved references
// lacks.
func TestAdoptMapsDanglingRefs(t *testing.T) {
	gone, there := xptest.NamespacedMR("gone"), xptest.NamespacedMR("b")
	out := adopt(t, live(), xptest.ModernXR("x", xptest.Refs(there, gone), xptest.Dangling(gone)), restoreOf(toCopy()))
	if out.err != nil {
		t.Fatal(out.err)
	}
	h, err := adoption.HoldOf(xptest.With(out.object, xptest.In("copy")))
	if err != nil || h == nil {
		t.Fatal(h, err)
	}
	if diff := cmp.Diff([]xp.Ref{xp.RefTo(xptest.With(there, xptest.In("copy")))}, h.Refs); diff != "" {
		t.Errorf("What dangled is not waited for: -want, +got:\n%s", diff)
	}
}

// A copy of a claim without an XR is a claim only by its mark when it is created.
func TestAdoptHoldsACopyOfAnUnboundClaim(t *testing.T) {
	claim := xptest.Claim("o")
	out := adopt(t, live(claim), claim, restoreOf(toCopy()))
	created := xptest.With(out.object, xptest.In("copy"))
	w := adoption.NewSnapshot(adoption.Unverified)
	w.Add(created)
	if p := adoption.Next(w, xp.RefTo(created)); p.Done || !strings.Contains(p.Failed, "stays held") || out.OperationID == "" {
		t.Errorf("Its operation says that it stays held; got %+v", p)
	}
}

// Velero allows an empty mapping.
func TestAdoptIgnoresAnEmptyMapping(t *testing.T) {
	for name, item := range map[string]*unstructured.Unstructured{
		"XR": xptest.XR("x"), "Unlabelled": xptest.MR("b", xptest.Without("metadata", "labels"), xptest.PublishesTo("infra", "s")),
	} {
		out := adopt(t, live(), item, restoreOf(map[string]string{"": "copy"}))
		if out.err != nil || out.object.GetNamespace() != "" || len(out.object.GetLabels()) > 0 || strings.Contains(out.OperationID, "copy") {
			t.Errorf("%s: what is cluster-scoped stays so; got %+v", name, out)
		}
	}
}
