package restoreitem

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// live finds the objects that are given. Cluster-scoped ones are found from any namespace.
func live(objects ...*unstructured.Unstructured) FinderFn {
	return func(_ context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error) {
		for _, u := range objects {
			if u.GetAPIVersion() == ref.APIVersion && u.GetKind() == ref.Kind && u.GetName() == ref.Name && (u.GetNamespace() == "" || u.GetNamespace() == namespace) {
				return u, nil
			}
		}

		return nil, apierrors.NewNotFound(schema.GroupResource{}, ref.Name)
	}
}

func nobody(err error) FinderFn {
	return func(context.Context, metav1.OwnerReference, string) (*unstructured.Unstructured, error) {
		return nil, err
	}
}

// noRanks has nothing to outrank.
func noRanks(context.Context, *unstructured.Unstructured) error { return nil }

func restoreOf(mapping map[string]string) *velerov1.Restore {
	return &velerov1.Restore{
		ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "monday"},
		Spec:       velerov1.RestoreSpec{NamespaceMapping: mapping},
	}
}

// at is a clock that stands still.
func at(seconds int) func() time.Time {
	return func() time.Time { return time.Date(2026, 1, 2, 3, 4, seconds, 0, time.UTC) }
}

// An owner is what matters of an owner reference.
type owner struct {
	Name       string
	UID        types.UID
	Controller bool
}

func TestAdoptOwners(t *testing.T) {
	const oldUID, newUID = types.UID("old"), types.UID("new")
	old := xptest.XR("x", xptest.UID(oldUID))
	local := xptest.ModernXR("x", xptest.UID(oldUID))
	bucket, namespaced := xptest.MR("b", xptest.ControlledBy(old)), xptest.NamespacedMR("b", xptest.ControlledBy(local))
	x := xptest.XR("x", xptest.UID(newUID), xptest.Refs(bucket))
	helper := xptest.Object("v1", "ConfigMap", "team-a", "helper", xptest.UID(newUID))
	helperRef := xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "helper", UID: oldUID})
	controller := []owner{{Name: "x", UID: newUID, Controller: true}}
	type want struct {
		Owners []owner
		// Dropped are the reasons, in order.
		Dropped []string
		Err     error
	}
	cases := map[string]struct {
		reason  string
		finder  FinderFn
		mapping map[string]string
		item    *unstructured.Unstructured
		want    want
	}{
		"Composed": {reason: "Its XR has another UID now.", finder: live(x), item: bucket, want: want{Owners: controller}},
		"ComposedInXR2": {
			reason: "The same in a namespace.", finder: live(xptest.ModernXR("x", xptest.UID(newUID), xptest.Refs(namespaced))), item: namespaced,
			want: want{Owners: controller},
		},
		"Mapped": {
			reason: "The owner is looked for where both are restored to.", mapping: map[string]string{"team-a": "copy"},
			finder: live(xptest.ModernXR("x", xptest.In("copy"), xptest.UID(newUID), xptest.Refs(namespaced))), item: namespaced,
			want: want{Owners: controller},
		},
		"MappedAway": {
			reason: "The XR that is still where the backup was taken is not the one that was restored.", mapping: map[string]string{"team-a": "copy"},
			finder: live(xptest.ModernXR("x", xptest.UID(newUID), xptest.Refs(namespaced))), item: namespaced,
			want: want{Dropped: []string{"it is not in the cluster"}},
		},
		"NestedXR": {
			reason: "A nested XR is a composed resource too.", item: xptest.XR("child", xptest.ControlledBy(old)),
			finder: live(xptest.XR("x", xptest.UID(newUID), xptest.Refs(xptest.XR("child")))), want: want{Owners: controller},
		},
		"Absent": {
			reason: "An owner that is not in the cluster must be dropped rather than written with its old UID.", finder: live(), item: bucket,
			want: want{Dropped: []string{"it is not in the cluster"}},
		},
		"Unserved": {
			reason: "The same if its kind is not there at all.", item: bucket,
			finder: nobody(&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "XOrder"}}), want: want{Dropped: []string{"it is not in the cluster"}},
		},
		"Deleting": {
			reason: "What is owned by an XR that is being deleted is deleted with it.", finder: live(xptest.With(x, xptest.Deleting())), item: bucket,
			want: want{Dropped: []string{"it is being deleted"}},
		},
		"OneSided": {
			reason: "Any tenant can write an owner reference; the XR knows what it composes.", finder: live(xptest.XR("x", xptest.UID(newUID))), item: bucket,
			want: want{Dropped: []string{"the owner does not list it in its resourceRefs"}},
		},
		"Passing": {reason: "An owner that can't be found for now must not be lost.", finder: nobody(errAPI), item: bucket, want: want{Err: errAPI}},
		"Helper": {
			reason: "An owner that is not the controller is kept in the item's own namespace.",
			finder: live(helper, xptest.ModernXR("x", xptest.UID(newUID), xptest.Refs(namespaced))), item: xptest.With(namespaced, helperRef),
			want: want{Owners: append(controller[:1:1], owner{Name: "helper", UID: newUID})},
		},
		"HelperElsewhere": {
			reason: "Such an owner says nothing of the item, so it must not reach into another scope.", finder: live(x, helper),
			item: xptest.With(bucket, helperRef), want: want{Owners: controller, Dropped: []string{"it is not in the cluster"}},
		},
		"ClusterHelper": {
			reason: "The same for a cluster-scoped owner of a namespaced item.", finder: live(x), item: xptest.NamespacedMR("b", xptest.ControlledBy(old),
				func(u *unstructured.Unstructured) {
					refs := u.GetOwnerReferences()
					refs[0].Controller = ptr.To(false)
					u.SetOwnerReferences(refs)
				}),
			want: want{Dropped: []string{"it is not the controller, and in another scope"}},
		},
		"Secret": {
			reason: "A connection secret belongs to what publishes in it.", item: xptest.Secret("s", xptest.ControlledBy(xptest.Claim("o"))),
			finder: live(xptest.Claim("o", xptest.UID(newUID), xptest.PublishesTo("", "s"))), want: want{Owners: []owner{{Name: "o", UID: newUID, Controller: true}}},
		},
		"SecretOfAnother": {
			reason: "The claim publishes in another.", item: xptest.Secret("s", xptest.ControlledBy(xptest.Claim("o"))),
			finder: live(xptest.Claim("o", xptest.UID(newUID), xptest.PublishesTo("", "t"))),
			want:   want{Dropped: []string{"the owner does not publish its connection details in it"}},
		},
		"Revision": {
			reason: "A revision belongs to the Composition that it is labelled with.",
			item:   xptest.Revision("r", x, xptest.ControlledBy(xptest.Composition("orders", x, xptest.UID(oldUID)))),
			finder: live(xptest.Composition("orders", x, xptest.UID(newUID))), want: want{Owners: []owner{{Name: "orders", UID: newUID, Controller: true}}},
		},
		"NoOwners": {reason: "A revision that lost its owner before stays without.", finder: nobody(errAPI), item: xptest.Revision("r", x)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			before := tc.item.DeepCopy()
			out, err := NewAdopt(tc.finder, RankerFn(noRanks), nil, log).Execute(inputFor(tc.item, restoreOf(tc.mapping)))
			got := want{Err: err}
			for _, e := range hook.AllEntries() {
				got.Dropped = append(got.Dropped, e.Data["reason"].(string)) //nolint:forcetypeassert // The test fails.
			}
			if out != nil {
				for _, r := range (&unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}).GetOwnerReferences() {
					got.Owners = append(got.Owners, owner{Name: r.Name, UID: r.UID, Controller: ptr.Deref(r.Controller, false)})
					if r.UID == oldUID {
						t.Errorf("an owner reference has its old UID: %v", r)
					}
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, tc.item); diff != "" {
				t.Errorf("the backed-up item was changed: %s", diff)
			}
		})
	}
}

func TestAdoptRenamesManagedFields(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))), xptest.JSON(
		`{"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"old\"}":{}}}}}]}}`))
	log, _ := logtest.NewNullLogger()
	for name, tc := range map[string]struct {
		reason string
		finder FinderFn
		want   string
	}{
		"Live": {
			reason: "Velero writes managedFields back as they are.",
			finder: live(xptest.XR("x", xptest.UID("new"), xptest.Refs(bucket))), want: `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"new\"}":{}}}}`,
		},
		"Absent": {reason: "A UID of nobody is managed by nobody.", finder: live(), want: `{"f:metadata":{}}`},
	} {
		out, err := NewAdopt(tc.finder, RankerFn(noRanks), nil, log).Execute(inputFor(bucket, restoreOf(nil)))
		if err != nil {
			t.Fatal(err)
		}
		entries, _, _ := unstructured.NestedSlice(out.UpdatedItem.UnstructuredContent(), "metadata", "managedFields")
		fields := entries[0].(map[string]any)["fieldsV1"] //nolint:forcetypeassert // The test fails.
		var want any
		if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, fields); diff != "" {
			t.Errorf("%s: %s\n-want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

func TestAdoptHolds(t *testing.T) {
	x := xptest.XR("x", xptest.UID("new"))
	claim := xptest.Claim("o", xptest.OfXR(x))
	bound := xptest.With(x, xptest.ClaimedBy(claim))
	heldXR := bound.DeepCopy()
	if _, err := adoption.Put(heldXR, "velero/monday", ""); err != nil {
		t.Fatal(err)
	}
	notes := []xptest.Option{xptest.Annotated(xp.AnnotationTree, `["a.b//c"]`), xptest.Annotated(xp.AnnotationDangling, `[]`), xptest.Annotated("theirs", "kept")}
	const xrOperation, claimOperation = "XOrder.v1alpha1.example.org//x", "OrderClaim.v1alpha1.example.org/team-a/o"
	type want struct {
		Operation string
		Err       string
	}
	cases := map[string]struct {
		reason  string
		finder  FinderFn
		mapping map[string]string
		item    *unstructured.Unstructured
		want    want
	}{
		"XR": {reason: "Its operation lifts the hold.", finder: live(), item: xptest.XR("x", notes...), want: want{Operation: xrOperation}},
		"ModernXR": {
			reason: "The same for Crossplane v2.",
			finder: live(), item: xptest.ModernXR("x", notes...), want: want{Operation: "Order.v1.example.org/team-a/x"},
		},
		"MappedXR": {
			reason: "The operation names the XR that is created.", finder: live(), mapping: map[string]string{"team-a": "copy"}, item: xptest.ModernXR("x", notes...),
			want: want{Operation: "Order.v1.example.org/copy/x"},
		},
		"Claim":      {reason: "Its XR's operation lifts its hold.", finder: live(heldXR), item: xptest.With(claim, notes...)},
		"ClaimAlone": {reason: "There is no operation of its XR if its XR did not come back.", finder: live(), item: claim, want: want{Operation: claimOperation}},
		"ClaimOfNoXR": {
			reason: "There is no operation of its XR if it has none.",
			finder: nobody(errAPI), item: xptest.Claim("o"), want: want{Operation: claimOperation},
		},
		"UnservedXR": {
			reason: "There is no operation of its XR if that can't come back.",
			finder: nobody(&meta.NoKindMatchError{}), item: claim, want: want{Operation: claimOperation},
		},
		"LiveXR": {
			reason: "There is no operation of its XR if that was live all along and is not in the restore.",
			finder: live(bound), item: claim, want: want{Operation: claimOperation},
		},
		"AnothersXR": {
			reason: "The operation of somebody else's XR does not lift this claim's hold, and nobody would say so.",
			finder: live(xptest.With(heldXR, xptest.ClaimedBy(xptest.Claim("p")))), item: claim, want: want{Operation: claimOperation},
		},
		"UnreadableXR": {
			reason: "Nor does that of an XR whose marker can't be read.",
			finder: live(xptest.With(bound, xptest.Annotated(adoption.AnnotationHold, "?"))), item: claim, want: want{Operation: claimOperation},
		},
		"MappedClaim": {
			reason: "An XR whose claimRef is that of the namespace in the backup does not belong to the claim that is created.",
			finder: live(heldXR), mapping: map[string]string{"team-a": "copy"}, item: claim, want: want{Operation: "OrderClaim.v1alpha1.example.org/copy/o"},
		},
		"Passing": {
			reason: "A failure that passes must not decide.",
			finder: nobody(errAPI), item: claim, want: want{Err: "cannot find the XR x of OrderClaim team-a/o: " + errAPI.Error()},
		},
		"Unreadable": {
			reason: "What has a marker that can't be read comes back all the same.", finder: live(),
			item: xptest.XR("x", xptest.Annotated(adoption.AnnotationHold, "?")), want: want{Operation: "XOrder.v1alpha1.example.org//x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			a := NewAdopt(tc.finder, RankerFn(noRanks), nil, log)
			a.now = at(5)
			before := tc.item.DeepCopy()
			out, err := a.Execute(inputFor(tc.item, restoreOf(tc.mapping)))
			if err != nil || tc.want.Err != "" {
				if err == nil || err.Error() != tc.want.Err {
					t.Errorf("%s\ngot error %v, want %q", tc.reason, err, tc.want.Err)
				}

				return
			}
			if diff := cmp.Diff(tc.want, want{Operation: out.OperationID}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			got := &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
			h, err := adoption.HoldOf(got)
			if err != nil || h == nil || h.Restore != "velero/monday" || h.Since != "2026-01-02T03:04:05Z" || !xp.IsPaused(got) {
				t.Errorf("the item is not held as it should be: hold %+v, error %v", h, err)
			}
			for _, key := range []string{xp.AnnotationTree, xp.AnnotationDangling} {
				if _, ok := got.GetAnnotations()[key]; ok {
					t.Errorf("%s is the backup's, and must not get into the cluster", key)
				}
			}
			if got.GetAnnotations()["theirs"] != before.GetAnnotations()["theirs"] {
				t.Error("a tenant's annotation was lost")
			}
			if diff := cmp.Diff(before, tc.item); diff != "" {
				t.Errorf("the backed-up item was changed: %s", diff)
			}
		})
	}
}

func TestAdoptLeavesAlone(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	a := NewAdopt(nobody(errAPI), RankerFn(func(context.Context, *unstructured.Unstructured) error { return errAPI }), nil, log)
	for name, item := range map[string]*unstructured.Unstructured{
		"FreeMR":       xptest.MR("b"),
		"Secret":       xptest.Secret("s", xptest.Field("Opaque", "type"), xptest.ControlledBy(xptest.XR("x"))),
		"Composition":  xptest.Composition("orders", xptest.XR("x")),
		"ControlPlane": xptest.Object("spaces.upbound.io/v1beta1", "ControlPlane", "team-a", "c", xptest.JSON(`{"spec":{"crossplane":{"version":"1.20"}}}`)),
		"Owned":        xptest.Object("example.org/v1", "Thing", "team-a", "t", xptest.ControlledBy(xptest.Claim("o"))),
	} {
		out, err := a.Execute(inputFor(item, restoreOf(nil)))
		if err != nil || out.UpdatedItem != nil || out.OperationID != "" || out.SkipRestore || out.AdditionalItems != nil {
			t.Errorf("%s is none of our business, and must go through untouched, without a request; got %+v, %v", name, out, err)
		}
	}
}

func TestAdoptSkipsWhatIsRebuilt(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	out, err := NewAdopt(nobody(errAPI), nil, nil, log).Execute(inputFor(
		xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p"), restoreOf(nil)))
	if err != nil || !out.SkipRestore {
		t.Errorf("What the control plane makes anew is not restored; got %+v, %v", out, err)
	}
	if len(hook.AllEntries()) != 1 || !strings.Contains(hook.LastEntry().Message, "Not restored") {
		t.Errorf("Nothing is skipped silently; got %v", hook.AllEntries())
	}
}

func TestAdoptOutranks(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	var asked []string
	ranker := RankerFn(func(_ context.Context, u *unstructured.Unstructured) error {
		asked = append(asked, xp.String(u))

		return errAPI
	})
	a := NewAdopt(live(), ranker, nil, log)
	_, err := a.Execute(inputFor(xptest.Revision("r", xptest.XR("x")), restoreOf(nil)))
	if diff := cmp.Diff([]string{"CompositionRevision r"}, asked); diff != "" || !errors.Is(err, errAPI) {
		t.Errorf("A revision is not restored before the newest one is sure to stay so: error %v, -want, +asked:\n%s", err, diff)
	}
	if _, err := a.Execute(inputFor(xptest.XR("x"), restoreOf(nil))); err != nil || len(asked) != 1 {
		t.Errorf("Only revisions have a rank: error %v, asked %v", err, asked)
	}
}
