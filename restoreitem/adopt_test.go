package restoreitem

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

// heldWith returns u as a restore holds it.
func heldWith(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	if _, err := adoption.Put(u, adoption.Hold{Restore: "velero/monday"}); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

// An owner has the compared fields of an owner reference.
type owner struct {
	Name       string
	UID        types.UID
	Controller bool
}

// Crossplane deletes an unwanted resource before it removes it from the XR's list.
func TestAdoptHoldsWhatAReconciledXRLists(t *testing.T) {
	old := xptest.XR("x", xptest.UID("old"))
	bucket := xptest.MR("b", xptest.ControlledBy(old), xptest.Annotated(xp.AnnotationExternalName, "external"))
	x := xptest.XR("x", xptest.UID("new"), xptest.Refs(bucket))
	cases := map[string]struct {
		reason string
		live   *cluster
		hold   string
		held   bool
	}{
		"Reconciled": {reason: "The XR may not want the composed resource any more.", live: live(x), held: true},
		"Paused":     {reason: "Crossplane does not reconcile a paused XR.", live: live(xptest.With(x, xptest.Annotated(xp.AnnotationPaused, "true")))},
		"Held":       {reason: "The held XR waits for its composed resource.", live: live(heldWith(x))},
		"NoHold":     {reason: "The setting turns holds off.", live: live(x), hold: "none"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.live.config = map[string]string{"hold": tc.hold}
			if tc.hold == "" {
				tc.live.config = nil
			}
			out := adopt(t, tc.live, bucket, restoreOf(nil))
			if out.err != nil {
				t.Fatal(out.err)
			}
			h, err := adoption.HoldOf(out.object)
			if err != nil {
				t.Fatal(err)
			}
			var owner *xp.Ref
			if h != nil {
				owner = h.Owner
			}
			var want *xp.Ref
			if tc.held {
				want = new(xp.RefTo(x))
			}
			if diff := cmp.Diff(want, owner); diff != "" || xp.IsPaused(out.object) != tc.held || (out.OperationID != "") != tc.held || (len(out.object.GetOwnerReferences()) == 0) != tc.held {
				t.Errorf("%s\n%v, operation %q\n-want, +got:\n%s", tc.reason, out.object, out.OperationID, diff)
			}
		})
	}
}

func TestAdoptOwners(t *testing.T) {
	const oldUID, newUID = types.UID("old"), types.UID("new")
	old := xptest.XR("x", xptest.UID(oldUID))
	local := xptest.XRV2("x", xptest.UID(oldUID))
	bucket, namespaced := xptest.MR("b", xptest.ControlledBy(old)), xptest.NamespacedMR("b", xptest.ControlledBy(local))
	paused := xptest.Annotated(xp.AnnotationPaused, "true")
	x := xptest.XR("x", xptest.UID(newUID), xptest.Refs(bucket), paused)
	helper := xptest.Object("v1", "ConfigMap", "team-a", "helper", xptest.UID(newUID))
	helperRef := xptest.OwnedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "helper", UID: oldUID})
	controller := []owner{{Name: "x", UID: newUID, Controller: true}}
	type want struct {
		Owners []owner
		// Dropped are the reasons for dropped owners, in order.
		Dropped []string
		Err     error
	}
	cases := map[string]struct {
		reason  string
		live    *cluster
		mapping map[string]string
		item    *unstructured.Unstructured
		want    want
	}{
		"Composed": {reason: "The restored XR has another UID.", live: live(x), item: bucket, want: want{Owners: controller}},
		"Reconciled": {
			reason: "Crossplane makes the XR the controller if the XR still wants the resource.", live: live(xptest.XR("x", xptest.UID(newUID), xptest.Refs(bucket))), item: bucket,
		},
		"ComposedInXR2": {
			reason: "Crossplane v2 keeps XR and composed resource in a namespace.", live: live(xptest.XRV2("x", xptest.UID(newUID), xptest.Refs(namespaced), paused)), item: namespaced,
			want: want{Owners: controller},
		},
		"Mapped": {
			reason: "Both are restored to the mapped namespace, so the owner is there.", mapping: map[string]string{"team-a": "copy"},
			live: live(xptest.XRV2("x", xptest.In("copy"), xptest.UID(newUID), xptest.Refs(namespaced), paused)), item: namespaced,
			want: want{Owners: controller},
		},
		"NestedXR": {
			reason: "A nested XR is a composed resource too.", item: xptest.XR("child", xptest.ControlledBy(old)),
			live: live(xptest.XR("x", xptest.UID(newUID), xptest.Refs(xptest.XR("child")))), want: want{Owners: controller},
		},
		"Absent": {
			reason: "An owner that is not in the cluster must be dropped rather than written with its old UID.", live: live(), item: bucket,
			want: want{Dropped: []string{"it is not in the cluster"}},
		},
		"Unserved": {
			reason: "An owner whose kind is not served is not in the cluster.", item: bucket,
			live: failingCluster(&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "XOrder"}}), want: want{Dropped: []string{"it is not in the cluster"}},
		},
		"Deleting": {
			reason: "The garbage collector deletes it with the XR that is being deleted.", live: live(xptest.With(x, xptest.Deleting())), item: bucket,
			want: want{Dropped: []string{"it is being deleted"}},
		},
		"OneSided": {
			reason: "Any tenant can write an owner reference, so the XR's own list decides.", item: bucket,
			live: live(heldWith(xptest.XR("x", xptest.UID(newUID)))), want: want{Dropped: []string{"the owner does not list it in its resourceRefs"}},
		},
		"TemporaryError": {reason: "A temporary API error must not drop an owner.", live: failingCluster(errAPI), item: bucket, want: want{Err: errAPI}},
		"Helper": {
			reason: "An owner that is not the controller is kept in the item's own namespace.",
			live:   live(helper, xptest.XRV2("x", xptest.UID(newUID), xptest.Refs(namespaced), paused)), item: xptest.With(namespaced, helperRef),
			want: want{Owners: append(controller[:1:1], owner{Name: "helper", UID: newUID})},
		},
		"HelperInOtherNamespace": {
			reason: "An owner that is not the controller must not reach into another namespace.", live: live(x, helper),
			item: xptest.With(bucket, helperRef), want: want{Owners: controller, Dropped: []string{"it is not in the cluster"}},
		},
		"ClusterHelper": {
			reason: "A namespaced item does not keep a cluster-scoped owner that is not the controller.", live: live(x), item: xptest.NamespacedMR("b", xptest.ControlledBy(old),
				func(u *unstructured.Unstructured) {
					refs := u.GetOwnerReferences()
					refs[0].Controller = ptr.To(false)
					u.SetOwnerReferences(refs)
				}),
			want: want{Dropped: []string{"it is not the controller, and in another scope"}},
		},
		"Secret": {
			reason: "A connection secret belongs to the object that publishes to it.", item: xptest.Secret("s", xptest.ControlledBy(xptest.Claim("o"))),
			live: live(xptest.Claim("o", xptest.UID(newUID), xptest.PublishesTo("", "s"))), want: want{Owners: []owner{{Name: "o", UID: newUID, Controller: true}}},
		},
		"SecretOfAnother": {
			reason: "The claim publishes to another Secret.", item: xptest.Secret("s", xptest.ControlledBy(xptest.Claim("o"))),
			live: live(xptest.Claim("o", xptest.UID(newUID), xptest.PublishesTo("", "t"))),
			want: want{Dropped: []string{"the owner does not publish its connection details in it"}},
		},
		"Revision": {
			reason: "A revision belongs to the Composition that its label names.",
			item:   xptest.Revision("r", x, xptest.ControlledBy(xptest.Composition("orders", x, xptest.UID(oldUID)))),
			live:   live(xptest.Composition("orders", x, xptest.UID(newUID))), want: want{Owners: []owner{{Name: "orders", UID: newUID, Controller: true}}},
		},
		"Usage": {
			reason: "A Usage belongs to the object in spec.by and is deleted with it.", live: live(helper),
			item: xptest.Object("protection.crossplane.io/v1beta1", "Usage", "team-a", "u", helperRef), want: want{Owners: []owner{{Name: "helper", UID: newUID}}},
		},
		"NoOwners": {reason: "A revision without owners needs no look-up.", live: failingCluster(errAPI), item: xptest.Revision("r", x, xptest.Without("metadata", "ownerReferences"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, tc.live, tc.item, restoreOf(tc.mapping))
			got := want{Err: out.err}
			for _, line := range out.logged {
				_, why, _ := strings.Cut(line, ": ")
				why, _, _ = strings.Cut(why[strings.Index(why, ": ")+2:], ". ")
				got.Dropped = append(got.Dropped, why)
			}
			if out.object != nil {
				for _, r := range out.object.GetOwnerReferences() {
					got.Owners = append(got.Owners, owner{Name: r.Name, UID: r.UID, Controller: ptr.Deref(r.Controller, false)})
					if r.UID == oldUID {
						t.Errorf("an owner reference has its old UID: %v", r)
					}
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAdoptRenamesManagedFields(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))), xptest.JSON(
		`{"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"old\"}":{}}}}}]}}`))
	for name, tc := range map[string]struct {
		reason string
		live   *cluster
		want   string
	}{
		"Live": {
			reason: "Velero writes managedFields as the backup has them.",
			live:   live(xptest.XR("x", xptest.UID("new"), xptest.Refs(bucket))), want: `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"new\"}":{}}}}`,
		},
		"Absent": {reason: "A dropped owner reference must not stay in managedFields.", live: live(), want: `{}`},
	} {
		out := adopt(t, tc.live, bucket, restoreOf(nil))
		if out.err != nil {
			t.Fatal(out.err)
		}
		entries, _, _ := unstructured.NestedSlice(out.object.Object, "metadata", "managedFields")
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
	heldXR := heldWith(bound)
	notes := []xptest.Option{xptest.RestoreFirst("a.b//c"), xptest.UnresolvedRefs(), xptest.Annotated("theirs", "kept")}
	const xrOperation, claimOperation = "XOrder.v1alpha1.example.org//x", "OrderClaim.v1alpha1.example.org/team-a/o"
	type want struct {
		Operation string
		Err       string
	}
	cases := map[string]struct {
		reason  string
		live    *cluster
		mapping map[string]string
		item    *unstructured.Unstructured
		want    want
	}{
		"XR": {reason: "The XR's operation releases the hold.", live: live(), item: xptest.XR("x", notes...), want: want{Operation: xrOperation}},
		"ModernXR": {
			reason: "A namespaced XR of Crossplane v2 has an operation too.",
			live:   live(), item: xptest.XRV2("x", notes...), want: want{Operation: "Order.v1.example.org/team-a/x"},
		},
		"MappedXR": {
			reason: "The operation names the XR in the mapped namespace.", live: live(), mapping: map[string]string{"team-a": "copy"}, item: xptest.XRV2("x", notes...),
			want: want{Operation: "Order.v1.example.org/copy/x"},
		},
		"Claim":      {reason: "The operation of the held XR also releases the claim.", live: live(heldXR), item: xptest.With(claim, notes...)},
		"ClaimAlone": {reason: "The XR did not come back, so the claim needs an operation.", live: live(), item: claim, want: want{Operation: claimOperation}},
		"ClaimOfNoXR": {
			reason: "A claim without an XR needs an operation.",
			live:   failingCluster(errAPI), item: xptest.Claim("o"), want: want{Operation: claimOperation},
		},
		"UnservedXR": {
			reason: "The XR's kind is not served, so the claim needs an operation.",
			live:   failingCluster(&meta.NoKindMatchError{}), item: claim, want: want{Operation: claimOperation},
		},
		"LiveXR": {
			reason: "A live XR that is not in the restore has no operation, so the claim needs one.",
			live:   live(bound), item: claim, want: want{Operation: claimOperation},
		},
		"XROfOtherClaim": {
			reason: "The operation of another claim's XR does not release this claim.",
			live:   live(xptest.With(heldXR, xptest.ClaimedBy(xptest.Claim("p")))), item: claim, want: want{Operation: claimOperation},
		},
		"UnreadableXR": {
			reason: "The operation of an XR with an unreadable mark does not release the claim.",
			live:   live(xptest.With(bound, xptest.Annotated(adoption.AnnotationHold, "?"))), item: claim, want: want{Operation: claimOperation},
		},
		"MappedClaim": {
			reason: "The XR's claimRef names the backup's namespace, so the XR does not belong to the new claim.",
			live:   live(heldXR), mapping: map[string]string{"team-a": "copy"}, item: claim, want: want{Operation: "OrderClaim.v1alpha1.example.org/copy/o"},
		},
		"TemporaryError": {
			reason: "A temporary API error must not decide which operation releases the claim.",
			live:   failingCluster(errAPI), item: claim, want: want{Err: "cannot find the XR x of OrderClaim team-a/o: " + errAPI.Error()},
		},
		"Unreadable": {
			reason: "An item whose mark cannot be read still comes back.", live: live(),
			item: xptest.XR("x", xptest.Annotated(adoption.AnnotationHold, "?")), want: want{Operation: "XOrder.v1alpha1.example.org//x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, tc.live, tc.item, restoreOf(tc.mapping))
			if out.err != nil || tc.want.Err != "" {
				if out.err == nil || !strings.HasPrefix(out.err.Error(), tc.want.Err) {
					t.Errorf("%s\ngot error %v, want %q", tc.reason, out.err, tc.want.Err)
				}

				return
			}
			if diff := cmp.Diff(tc.want, want{Operation: out.OperationID}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			got := out.object
			h, err := adoption.HoldOf(got)
			if err != nil || h == nil || h.Restore != "velero/monday" || h.Since != "2026-01-02T03:04:05Z" || !xp.IsPaused(got) {
				t.Errorf("want another hold: hold %+v, error %v", h, err)
			}
			if xp.HasBackupMetadata(got) {
				t.Error("the plugin's fields in the backup must not get into the cluster")
			}
			if got.GetAnnotations()["theirs"] != tc.item.GetAnnotations()["theirs"] {
				t.Error("a tenant's annotation was lost")
			}
		})
	}
}
