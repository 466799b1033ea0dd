package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// marked returns u as a backup has it that was taken while u was held.
func marked(u *unstructured.Unstructured) *unstructured.Unstructured {
	return held(u, hold.Hold{Restore: "velero/sunday", Reason: hold.ReasonSecret})
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
	const op, localOp = "Bucket.v1alpha1.cloud.example.org//b", "Bucket.v1alpha1.cloud.example.org/team-a/b"
	type want struct {
		Op string
		// Paused is the user's own setting in the hold.
		Paused *string
	}
	runAdopts(t, map[string]adoptCase[want]{
		"Standalone": {reason: "Only its own operation can release an MR without an XR.", item: free, want: want{Op: op}},
		"OwnPause":   {reason: "The mark keeps a user's pause for later.", item: xptest.With(free, paused), want: want{Op: op, Paused: ptr.To("true")}},
		"Composed":   {reason: "The operation of the held XR also releases the MR.", item: composed, live: live(heldWith(x))},
		"Mapped": {
			reason: "The plugin looks for the XR in the mapped namespace.", item: inXR2, live: live(heldWith(xptest.With(local, xptest.In("copy")))),
			restore: restoreOf(toCopy()),
		},
		"XRNotHeld":     {reason: "An XR that is not held has no operation.", item: composed, live: live(x), want: want{Op: op}},
		"XRHeldEarlier": {reason: "An XR that an earlier restore holds has no operation of this restore.", item: composed, live: live(marked(x)), want: want{Op: op}},
		"XRUnreadable": {
			reason: "An XR with an unreadable mark must not release the MR.", item: composed, live: live(xptest.With(x, xptest.Annotated(hold.Annotation, "?"))),
			want: want{Op: op},
		},
		"XRIsACopy": {reason: "The operation of a copy fails at once or does not exist.", item: composed, want: want{Op: op}, live: live(copiedXR(x))},
		"AgainWithOwnPause": {
			reason: "A second hold keeps the user's pause too.", item: marked(xptest.With(free, paused)), want: want{Op: op, Paused: ptr.To("true")},
		},
		"MarkOnly": {reason: "A marked MR always has an operation, even if it no longer publishes.", item: marked(plain), want: want{Op: op}},
		"MarkUnreadable": {
			reason: "A marked MR has an operation even if the mark is unreadable.", item: xptest.With(plain, xptest.Annotated(hold.Annotation, "?")), want: want{Op: op},
		},
		"MarkOfAnEarlierCopy": {
			reason: "An MR that was held as a copy and is no copy now is released.", item: held(plain, hold.Hold{Restore: "velero/sunday", Clone: "Bucket z", Reason: "a copy"}),
			want: want{Op: op},
		},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		h := out.hold(t)
		if h == nil {
			t.Fatalf("got %+v", out)
		}
		why := hold.ReasonSecret
		if !xp.Publishes(out.object) {
			why = hold.ReasonMarked
		}
		if h.Restore != "velero/monday" || h.Since != "2026-01-02T03:04:05Z" || h.Clone != "" || h.Pinned || !strings.HasPrefix(h.Reason, why) || !xp.IsPaused(out.object) {
			t.Errorf("want another hold: %+v", h)
		}

		return want{Op: out.OperationID, Paused: h.Paused}
	})
}

// A Secret that the restore has reached may still fail, and must exist before its MR is released.
// If no item is one, nothing waits.
func TestAdoptKnowsWhichSecretsComeBack(t *testing.T) {
	free, local := xptest.MR("b", xptest.PublishesTo("infra", "s")), xptest.NamespacedMR("b", xptest.PublishesTo("", "s"))
	for reason, tc := range map[string]struct {
		secret, mr *unstructured.Unstructured
		restore    *velerov1.Restore
		want       bool
	}{
		"The backup has the Secret.":                                        {xptest.Secret("s", xptest.In("infra")), free, restoreOf(nil), true},
		"Secret and MR move to the same namespace.":                         {xptest.Secret("s", xptest.In("team-a")), local, restoreOf(toCopy()), true},
		"A Secret of the same name in another namespace is another Secret.": {xptest.Secret("s", xptest.In("team-b")), free, restoreOf(nil), false},
		"An Opaque Secret is no connection secret.":                         {xptest.Secret("s", xptest.In("infra"), xptest.Field("Opaque", "type")), free, restoreOf(nil), false},
	} {
		log, _ := logtest.NewNullLogger()
		shared := Shared{Requested: &RequestedItems{}}
		execute(t, NewOrder(Crossplane(), kindsFn(failing), log, shared), xptest.With(tc.secret, xptest.ControlledBy(tc.mr)), tc.restore)
		if h := adoptWith(t, shared, live(), tc.mr, tc.restore).hold(t); h == nil || h.Secret != tc.want {
			t.Errorf("%s Got hold %+v", reason, h)
		}
	}
}

// copiedXR returns a held copy of an XR.
func copiedXR(x *unstructured.Unstructured) *unstructured.Unstructured {
	return held(x, hold.Hold{Restore: "velero/monday", Clone: "XOrder z", Reason: "a copy"})
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
	all, mapped := live(xr, mr, free, copied), restoreOf(toCopy())
	type want struct {
		Skip, Paused bool
		Op, Clone    string
		Policies     []string
	}
	runAdopts(t, map[string]adoptCase[want]{
		"Observe":     {item: xptest.With(mr, policies(`["*"]`)), live: all, config: set("observe"), restore: mapped, want: want{Paused: true, Op: "Bucket.v1alpha1.cloud.example.org/copy/b", Policies: []string{"Observe"}}},
		"ObserveFree": {item: xptest.With(free, policies(`["*"]`)), live: all, config: set("observe"), restore: mapped, want: want{Paused: true, Op: "Bucket.v1alpha1.cloud.example.org/copy/f", Policies: []string{"Observe"}}},
		"Hold":        {item: mr, live: all, config: set("hold"), restore: mapped, want: want{Paused: true, Clone: "Order team-a/x"}},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		h, got := out.hold(t), copyOf(out)

		return want{Skip: got.Skip, Op: got.Op, Paused: got.Paused, Clone: ptr.Deref(h, hold.Hold{}).Clone, Policies: got.Policies}
	})
}

// A namespaced XR composes resources in its namespace, which the list of unresolved references
// lacks.
func TestAdoptMapsDanglingRefs(t *testing.T) {
	gone, there := xptest.NamespacedMR("gone"), xptest.NamespacedMR("b")
	out := adopt(t, live(), xptest.XRV2("x", xptest.Refs(there, gone), xptest.UnresolvedRefs(gone)), restoreOf(toCopy()))
	h, err := hold.Of(xptest.With(out.object, xptest.In("copy")))
	if diff := cmp.Diff([]xp.Ref{xp.RefTo(xptest.With(there, xptest.In("copy")))}, ptr.Deref(h, hold.Hold{}).Refs); diff != "" || err != nil {
		t.Errorf("the hold must not name missing resources: error %v, -want, +got:\n%s", err, diff)
	}
}

// Velero allows an empty mapping, which must not move a cluster-scoped item.
func TestAdoptIgnoresAnEmptyMapping(t *testing.T) {
	out := adopt(t, live(), xptest.MR("b", xptest.Without("metadata", "labels"), xptest.PublishesTo("infra", "s")), restoreOf(map[string]string{"": "copy"}))
	if out.err != nil || out.object.GetNamespace() != "" || len(out.object.GetLabels()) > 0 || strings.Contains(out.OperationID, "copy") {
		t.Errorf("got %+v", out)
	}
}

// A copy of a claim without an XR is a claim only by its mark when it is created.
func TestAdoptHoldsACopyOfAnUnboundClaim(t *testing.T) {
	claim := xptest.Claim("o")
	out := adopt(t, live(claim), claim, restoreOf(toCopy()))
	created := xptest.With(out.object, xptest.In("copy"))
	w := adoption.NewSnapshot(hold.Unverified)
	w.Add(created)
	if p := adoption.Next(w, xp.RefTo(created)); p.Done || !strings.Contains(p.Failed.String(), "stays held") || out.OperationID == "" {
		t.Errorf("the operation must report that it stays held; got %+v", p)
	}
}

const (
	oldUID   = "0a0a0a0a-1111-4222-8333-444444444444"
	newUID   = "0b0b0b0b-1111-4222-8333-444444444444"
	aboveOld = "0c0c0c0c-1111-4222-8333-444444444444"
	aboveNew = "0d0d0d0d-1111-4222-8333-444444444444"
)

// A Composition of Crossplane v1 makes the name of a connection secret from the UID of the XR, as
// its documentation did.
func TestAdoptCarriesUIDs(t *testing.T) {
	above, aboveNow := xptest.XR("above", xptest.UID(aboveOld)), xptest.XR("above", xptest.UID(aboveNew))
	old := xptest.XR("x", xptest.UID(oldUID), xptest.ControlledBy(above))
	mr := xptest.MR("b", xptest.ControlledBy(old), xptest.PublishesTo("infra", oldUID+"-db"))
	x := heldWith(xptest.XR("x", xptest.UID(newUID), xptest.Refs(mr), xptest.ControlledBy(aboveNow)))
	noted := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u = u.DeepCopy()
		xp.SetUIDOwners(u, []xp.UIDOwner{{Ref: xp.RefTo(above), UID: aboveOld}})

		return u
	}
	labelled := restoreWith(velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}})
	both := live(x, aboveNow)
	type want struct {
		Secret, Was string
		Held        []string
	}
	carried := func(held ...string) want { return want{Secret: newUID + "-db", Was: oldUID + "-db", Held: held} }
	secretName := []string{"spec.writeConnectionSecretToRef.name"}
	runAdopts(t, map[string]adoptCase[want]{
		"Published": {reason: "The provider must find the Secret of the backup.", item: mr, live: both, want: carried()},
		"Other":     {reason: "Other names stay.", item: xptest.With(mr, xptest.PublishesTo("infra", "s")), live: both, want: want{Secret: "s"}},
		"Above": {
			reason: "The name can come from an XR above.", item: noted(xptest.With(mr, xptest.PublishesTo("infra", aboveOld))), live: both, want: want{Secret: aboveNew, Was: aboveOld},
		},
		"AboveForged": {
			reason: "Without the XR above nothing proves the new UID.", item: noted(xptest.With(mr, xptest.PublishesTo("infra", aboveOld))),
			live: live(xptest.With(x, xptest.Without("metadata", "ownerReferences"))), want: want{Secret: aboveOld, Held: secretName},
		},
		"ByLabels": {
			reason: "In a restore by labels the Secret may come first, under its old name.", item: mr, restore: labelled,
			live: both, want: want{Secret: oldUID + "-db", Held: secretName},
		},
		"NoXR": {reason: "The XR has no UID yet.", item: mr, live: live(), want: want{Secret: oldUID + "-db", Held: secretName}},
		"ExternalName": {
			reason: "Another external-name is another external resource; the Secret is the same.",
			item:   xptest.With(mr, xptest.Annotated(xp.AnnotationExternalName, "db-"+oldUID)),
			live:   both, want: carried("metadata.annotations[crossplane.io/external-name]"),
		},
		"ForProvider": {
			reason: "Any field of the external resource may be its identity.", item: xptest.With(mr, xptest.JSON(`{"spec": {"forProvider": {"name": "`+oldUID+`"}}}`)),
			live: both, want: carried("spec.forProvider.name"),
		},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		h := out.hold(t)
		r, _ := xp.SecretRef(out.object)
		got := want{Secret: r.Name, Was: h.SecretWas}
		if h.FromUID != nil {
			got.Held = h.FromUID.Fields
		}

		return got
	})
}

// The Secret comes back under the name that its publisher has for it now, and only that one.
func TestAdoptRenamesSecrets(t *testing.T) {
	old := xptest.XR("x", xptest.UID(oldUID))
	x := heldWith(xptest.XR("x", xptest.UID(newUID), xptest.Refs(xptest.MR("b"))))
	mr := xptest.MR("b", xptest.ControlledBy(old), xptest.PublishesTo("infra", oldUID+"-db"))
	now := xptest.MR("b", xptest.UID("new mr"), xptest.ControlledBy(x), xptest.PublishesTo("infra", newUID+"-db"))
	waits := held(now, hold.Hold{Restore: "velero/monday", SecretWas: oldUID + "-db"})
	secret := func(name string) *unstructured.Unstructured {
		return xptest.Secret(name, xptest.In("infra"), xptest.ControlledBy(mr))
	}
	former, renamed := secret(oldUID+"-db"), xptest.Secret(newUID+"-db", xptest.In("infra"))
	type want struct {
		Name    string
		Owners  int
		Skipped bool
	}
	runAdopts(t, map[string]adoptCase[want]{
		"Held": {reason: "The mark of its publisher proves the name.", item: former, live: live(x, waits), want: want{Name: newUID + "-db", Owners: 1}},
		"Leftover": {
			reason: "A Secret that was left behind under an older UID must not take its place.", item: secret(aboveOld + "-db"), live: live(x, waits),
			want: want{Name: aboveOld + "-db"},
		},
		"Again":     {reason: "A second restore changes nothing.", item: former, live: live(x, now, renamed), want: want{Skipped: true}},
		"Lost":      {reason: "Without a hold nothing proves which Secret is the right one.", item: former, live: live(x, now), want: want{Name: former.GetName()}},
		"OfAnother": {reason: "A Secret with another name is not its publisher's.", item: secret("s"), live: live(x, waits, renamed), want: want{Name: "s"}},
		"Update": {
			reason: "Velero must not write the backup's data over it.", item: former, restore: updating(), live: live(x, waits, renamed), want: want{Skipped: true},
		},
		"Opaque": {
			reason: "Only connection secrets belong to a publisher.", item: xptest.With(former, xptest.Field("Opaque", "type")), live: live(x, waits),
			want: want{Name: former.GetName()},
		},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		switch {
		case out.SkipRestore:
			return want{Skipped: true}
		case out.object == nil:
			return want{Name: out.item.GetName()}
		default:
			return want{Name: out.object.GetName(), Owners: len(out.object.GetOwnerReferences())}
		}
	})
}

// A Secret in a namespace that is not restored comes before its publisher, by its old name.
func TestAdoptRenamesRequestedSecrets(t *testing.T) {
	old := xptest.XR("x", xptest.UID(oldUID))
	mr := xptest.MR("b", xptest.ControlledBy(old), xptest.PublishesTo("infra", oldUID+"-db"), xptest.Published())
	secret := xptest.Secret(oldUID+"-db", xptest.In("infra"), xptest.ControlledBy(mr))
	x := heldWith(xptest.XR("x", xptest.UID(newUID), xptest.Refs(mr)))
	restore := restoreWith(teamA())
	c := live(x, xptest.Object("v1", "Namespace", "", "infra"))
	c.reconciled = publishing()
	a := newAdopt(c, Shared{})
	out := execute(t, a, mr, restore)
	if len(out.AdditionalItems) != 1 || out.AdditionalItems[0].Name != secret.GetName() {
		t.Fatalf("it must request the Secret by its name in the backup; got %+v", out)
	}
	if got := updated(execute(t, a, secret, restore)); got.GetName() != newUID+"-db" {
		t.Errorf("the Secret comes back as %s", got.GetName())
	}
}

// The provider of an MR waits for the Secret under the name that it reads after the restore.
func TestAdoptAwaitsRenamedInputs(t *testing.T) {
	reads := xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID(oldUID))),
		xptest.JSON(`{"spec": {"forProvider": {"passwordSecretRef": {"namespace": "infra", "name": "`+oldUID+`-pw"}}}}`))
	xp.SetInputs(reads, []xp.Input{{Ref: xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "infra", Name: oldUID + "-pw"}, Exists: true, Stored: true}})
	x := heldWith(xptest.XR("x", xptest.UID(newUID), xptest.Refs(reads)))
	want := []hold.Input{{Namespace: "infra", Name: newUID + "-pw", Stored: true, Was: oldUID + "-pw"}}
	h := adopt(t, live(x), reads, restoreOf(nil)).hold(t)
	if diff := cmp.Diff(want, h.Inputs, cmpopts.IgnoreFields(hold.Input{}, "By")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// A connection secret comes back before its claim. Each costs one request, not more.
func TestAdoptReadsAMissingPublisherOnce(t *testing.T) {
	c := live()
	execute(t, newAdopt(c, Shared{}), xptest.Secret("s", xptest.ControlledBy(xptest.Claim("o", xptest.UID("old"), xptest.PublishesTo("", "s")))), restoreOf(nil))
	if diff := cmp.Diff([]string{"settings in velero", "owner OrderClaim team-a/o"}, c.asked); diff != "" {
		t.Errorf("-want, +asked:\n%s", diff)
	}
}

// What may be an identity is held, however many other fields have the UID, and also if the backup was
// taken while an earlier restore held it for that.
func TestAdoptHoldsEachIdentityFromUID(t *testing.T) {
	const firstUID = "0e0e0e0e-1111-4222-8333-444444444444"
	old := xptest.XR("x", xptest.UID(oldUID))
	x := heldWith(xptest.XR("x", xptest.UID(newUID), xptest.Refs(xptest.MR("b"))))
	mr := xptest.MR("b", xptest.ControlledBy(old), xptest.PublishesTo("infra", "s"))
	labelled := xptest.With(mr, xptest.JSON(`{"metadata": {"labels": {"a": "`+oldUID+`", "b": "`+oldUID+`", "c": "`+oldUID+`", "d": "`+oldUID+`", "e": "`+oldUID+`"}},
		"spec": {"forProvider": {"name": "`+oldUID+`"}}}`))
	again := held(xptest.With(mr, xptest.Annotated(xp.AnnotationExternalName, "db-"+firstUID)), hold.Hold{Restore: "velero/monday", FromUID: &hold.FromUID{
		XR: xp.RefTo(old), UID: firstUID, Fields: []string{"metadata.annotations[crossplane.io/external-name]"},
	}})
	for name, item := range map[string]*unstructured.Unstructured{"BesideLabels": labelled, "HeldAtTheBackup": again} {
		if h := adopt(t, live(x), item, restoreOf(nil)).hold(t); h == nil || h.FromUID == nil {
			t.Errorf("%s: got hold %+v, want one with FromUID", name, h)
		}
	}
}
