package restoreitem

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// heldWith returns u as a restore holds it.
func heldWith(u *unstructured.Unstructured) *unstructured.Unstructured {
	return held(u, hold.Hold{Restore: "velero/monday"})
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
	lists := xp.RefTo(x)
	runAdopts(t, map[string]adoptCase[*xp.Ref]{
		"Reconciled": {reason: "The XR may not want the composed resource any more.", item: bucket, live: live(x), want: &lists},
		"Paused":     {reason: "Crossplane does not reconcile a paused XR.", item: bucket, live: live(xptest.With(x, xptest.Annotated(xp.AnnotationPaused, "true")))},
		"Held":       {reason: "The held XR waits for its composed resource.", item: bucket, live: live(heldWith(x))},
		"NoHold":     {reason: "The setting turns holds off.", item: bucket, live: live(x), config: map[string]string{"hold": "none"}},
	}, func(t *testing.T, out adopted) *xp.Ref {
		t.Helper()
		h := out.hold(t)
		if is := h != nil; xp.IsPaused(out.object) != is || (out.OperationID != "") != is || (len(out.object.GetOwnerReferences()) == 0) != is {
			t.Errorf("got %v, operation %q", out.object, out.OperationID)
		}

		return ptr.Deref(h, hold.Hold{}).Owner
	})
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
	}
	runAdopts(t, map[string]adoptCase[want]{
		"Composed": {reason: "The restored XR has another UID.", live: live(x), item: bucket, want: want{Owners: controller}},
		"Mapped": {
			reason: "Both are restored to the mapped namespace, so the owner is there.", restore: restoreOf(toCopy()),
			live: live(xptest.XRV2("x", xptest.In("copy"), xptest.UID(newUID), xptest.Refs(namespaced), paused)), item: namespaced, want: want{Owners: controller},
		},
		"NestedXR": {
			reason: "A nested XR is a composed resource too.", item: xptest.XR("child", xptest.ControlledBy(old)),
			live: live(xptest.XR("x", xptest.UID(newUID), xptest.Refs(xptest.XR("child")))), want: want{Owners: controller},
		},
		"Unserved": {
			reason: "An owner whose kind is not served is not in the cluster.", item: bucket,
			live: failingCluster(&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "XOrder"}}), want: want{Dropped: []string{"it is not in the cluster"}},
		},
		"TemporaryError": {reason: "A temporary API error must not drop an owner.", live: failingCluster(errAPI), item: bucket, err: errAPI},
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
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		var got want
		for _, line := range out.logged {
			_, why, _ := strings.Cut(line, ": ")
			why, _, _ = strings.Cut(why[strings.Index(why, ": ")+2:], ". ")
			got.Dropped = append(got.Dropped, why)
		}
		if out.object != nil {
			for _, r := range out.object.GetOwnerReferences() {
				got.Owners = append(got.Owners, owner{Name: r.Name, UID: r.UID, Controller: ptr.Deref(r.Controller, false)})
			}
		}

		return got
	})
}

func TestAdoptRenamesManagedFields(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))), xptest.JSON(
		`{"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"old\"}":{}}}}}]}}`))
	for uid, c := range map[string]*cluster{"new": live(xptest.XR("x", xptest.UID("new"), xptest.Refs(bucket))), "": live()} {
		managers, _, _ := unstructured.NestedFieldNoCopy(adopt(t, c, bucket, restoreOf(nil)).object.Object, "metadata", "managedFields")
		if got := fmt.Sprint(managers); strings.Contains(got, `"old"`) || strings.Contains(got, `f:ownerReferences:map[k:{"uid":"new"}`) != (uid == "new") {
			t.Errorf("Velero writes managedFields as they are, so they must have the UID %q only; got %s", uid, got)
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
	}
	runAdopts(t, map[string]adoptCase[want]{
		"XR": {reason: "The XR's operation releases the hold.", live: live(), item: xptest.XR("x", notes...), want: want{Operation: xrOperation}},
		"ModernXR": {
			reason: "A namespaced XR of Crossplane v2 has an operation too.",
			live:   live(), item: xptest.XRV2("x", notes...), want: want{Operation: "Order.v1.example.org/team-a/x"},
		},
		"Claim":      {reason: "The operation of the held XR also releases the claim.", live: live(heldXR), item: xptest.With(claim, notes...)},
		"ClaimAlone": {reason: "The XR did not come back, so the claim needs an operation.", live: live(), item: claim, want: want{Operation: claimOperation}},
		"ClaimOfNoXR": {
			reason: "A claim without an XR needs an operation.", live: failingCluster(errAPI), item: xptest.Claim("o"), want: want{Operation: claimOperation},
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
			live:   live(xptest.With(bound, xptest.Annotated(hold.Annotation, "?"))), item: claim, want: want{Operation: claimOperation},
		},
		"MappedClaim": {
			reason: "The XR's claimRef names the backup's namespace, so the XR does not belong to the new claim.",
			live:   live(heldXR), restore: restoreOf(toCopy()), item: claim, want: want{Operation: "OrderClaim.v1alpha1.example.org/copy/o"},
		},
		"TemporaryError": {
			reason: "A temporary API error must not decide which operation releases the claim.", live: failingCluster(errAPI), item: claim, err: errAPI,
		},
		"Unreadable": {
			reason: "An item whose mark cannot be read still comes back.", live: live(),
			item: xptest.XR("x", xptest.Annotated(hold.Annotation, "?")), want: want{Operation: "XOrder.v1alpha1.example.org//x"},
		},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		h := out.hold(t)
		if h == nil || h.Restore != "velero/monday" || h.Since != "2026-01-02T03:04:05Z" || !xp.IsPaused(out.object) {
			t.Errorf("want another hold: %+v", h)
		}
		if xp.HasBackupMetadata(out.object) || out.object.GetAnnotations()["theirs"] != out.item.GetAnnotations()["theirs"] {
			t.Errorf("only the plugin's fields in the backup must not get into the cluster: %v", out.object)
		}

		return want{Operation: out.OperationID}
	})
}

// What an XR composed must not run without an owner: who creates the XR again would get others
// beside it.
func TestAdoptHoldsWhatHasLostItsXR(t *testing.T) {
	xr := xptest.XRV2("x", xptest.UID("old"))
	mr := xptest.NamespacedMR("b", xptest.Annotated(xp.AnnotationExternalName, "external"), xptest.ControlledBy(xr), xptest.Labelled(xp.LabelComposite, "x"))
	nested := xptest.XRV2("nested", xptest.ControlledBy(xr), xptest.Labelled(xp.LabelComposite, "x"))
	now := xptest.XRV2("x", xptest.UID("new"))
	owner := xp.RefTo(xr)
	before := held(xptest.With(mr, xptest.Without("metadata", "ownerReferences"), xptest.Annotated(xp.AnnotationResourceName, "b")),
		hold.Hold{Restore: "velero/sunday", Owner: &owner})
	type want struct {
		Paused    bool
		Owner, Op string
	}
	waits := want{Paused: true, Owner: "Order team-a/x", Op: "Bucket.v1alpha1.cloud.example.org/team-a/b"}
	runAdopts(t, map[string]adoptCase[want]{
		"NotInBackup": {reason: "Velero leaves out an XR that is being deleted.", item: mr, live: live(), want: waits},
		"Deleting":    {reason: "An XR that is being deleted adopts nothing.", item: mr, live: live(xptest.With(now, xptest.Deleting())), want: waits},
		"NotListed":   {reason: "A held XR that does not list it does not adopt it.", item: mr, live: live(heldWith(now)), want: waits},
		"HeldBefore":  {reason: "The backup was taken while it was held.", item: before, live: live(), want: waits},
		"Nested": {
			reason: "A nested XR would run without an owner, too.", item: nested, live: live(), want: want{Paused: true, Owner: "Order team-a/x", Op: "Order.v1.example.org/team-a/nested"},
		},
		"HoldNone":  {reason: "The user wants no holds.", item: mr, live: live(), config: map[string]string{"hold": "none"}},
		"Observing": {reason: "It changes nothing outside.", item: xptest.With(mr, policies(`["Observe"]`)), live: live()},
		"Config":    {reason: "No controller looks at a pause of it.", item: xptest.Object("v1", "ConfigMap", "team-a", "c", xptest.ControlledBy(xr), xptest.Labelled(xp.LabelComposite, "x")), live: live()},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		got := want{Op: out.OperationID}
		if h := out.hold(t); h != nil && h.Owner != nil {
			got.Owner = h.Owner.String()
		}
		got.Paused = out.object != nil && xp.IsPaused(out.object)

		return got
	})
}

// A restore releases nothing before it has restored all, so an XR that is reconciled without the
// item has lost its hold.
func TestAdoptNamesWhatWasLostWithAHold(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))))
	lost := xptest.XR("x", xptest.UID("new"), xptest.Labelled(xp.LabelRestore, "monday"))
	restore := restoreOf(nil)
	restore.Status.StartTimestamp = &metav1.Time{Time: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)}
	runAdopts(t, map[string]adoptCase[bool]{
		"OfThisRestore": {
			reason: "Velero does not count a warning in a log, so the restore must fail.", item: bucket, restore: restore, live: live(lost), err: errAny,
		},
		"Replaced": {
			reason: "An XR that another writer replaced lacks the restore's labels.", item: bucket, restore: restore, live: live(xptest.XR("x", xptest.UID("new"), xptest.Field("2026-01-02T12:00:05Z", "metadata", "creationTimestamp"))),
			err: errAny,
		},
		"Earlier": {
			reason: "This restore cannot have held an older XR.", want: true,
			item: bucket, restore: restore, live: live(xptest.XR("x", xptest.UID("new"), xptest.Field("2026-01-02T11:59:55Z", "metadata", "creationTimestamp"))),
		},
		"ReplacedBySlowServer": {
			reason: "The API server's clock is five minutes slow.", item: bucket, restore: restore, live: behind(live(xptest.XR("x", xptest.UID("new"), xptest.Field("2026-01-02T11:55:05Z", "metadata", "creationTimestamp")))),
			err: errAny,
		},
		"Another": {reason: "An XR of an earlier restore may have been adopted since.", item: bucket, restore: restore, live: live(xptest.With(lost, xptest.Labelled(xp.LabelRestore, "sunday"))), want: true},
		"Lists":   {reason: "A composed resource in the XR's list comes back, held or not.", item: bucket, restore: restore, live: live(xptest.With(lost, xptest.Refs(bucket)))},
		"Held":    {reason: "A held XR is as old as the item.", item: bucket, restore: restore, live: live(heldWith(lost))},
	}, func(_ *testing.T, out adopted) bool { return out.SkipRestore })
}

// behind makes the clock of a cluster's API server five minutes slow.
func behind(c *cluster) *cluster {
	c.ahead = -5 * time.Minute

	return c
}

// What is compared with times of the API server is in its time, whatever clock Velero's Pod has.
func TestServerTime(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Minute, 0, -5 * time.Minute} {
		w := &fakeAdopter{}
		a := NewAdopt(Crossplane(), &cluster{ahead: ahead}, w, logrus.New(), Shared{})
		if off := a.now().Sub(time.Now().Add(ahead)); off.Abs() > time.Minute {
			t.Errorf("%s ahead: marks are off by %s", ahead, off)
		}
		restore, began := restoreOf(nil), metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
		restore.Status.StartTimestamp = &began
		if _, err := a.Progress(operation, restore); err != nil || !w.by.Started.Equal(began.Add(ahead)) {
			t.Errorf("%s ahead: the Restore began at %s; error %v", ahead, w.by.Started, err)
		}
	}
}
