package restoreitem

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A userHold is how an item is restored that is held until a user releases it.
type userHold struct {
	Op                                  string
	Held, Quarantine, ByHand, Observing bool
	Policies                            []string
}

func userHoldOf(t *testing.T, out adopted) userHold {
	t.Helper()
	got, h := userHold{Op: out.OperationID}, out.hold(t)
	if h != nil {
		got.Held, got.Quarantine, got.ByHand, got.Observing = xp.IsPaused(out.object), h.Quarantine, h.ByHand, h.Observes
		got.Policies, _ = xp.ManagementPolicies(out.object)
	}
	if (got.Quarantine || got.ByHand) && (h.Restore != "velero/monday" || !strings.Contains(h.Reason, "release --restore velero/monday")) {
		t.Errorf("the mark must name the next step; got %+v", h)
	}

	return got
}

// All that Crossplane or a provider would reconcile is restored on hold, and stays so.
func TestAdoptQuarantines(t *testing.T) {
	x := xptest.XR("x")
	composed := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	x = xptest.With(x, xptest.Refs(composed))
	fresh := xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "b", xptest.Field(map[string]any{"region": "eu"}, "spec", "forProvider"))
	modern, free := xptest.XRV2("m"), xptest.NamespacedMR("b", named)
	reconciled, mapped := &cluster{reconciled: []string{xptest.ManagedKind}}, restoreOf(toCopy())
	all, holding := map[string]string{"hold": "all"}, func(hold string) map[string]string { return map[string]string{"hold": hold} }
	clone := func(clone string) map[string]string { return map[string]string{"hold": "all", "clone": clone} }
	quarantined := func(op string) userHold { return userHold{Op: op, Held: true, Quarantine: true} }
	observing := quarantined("Bucket.v1alpha1.cloud.example.org/copy/b")
	observing.Policies = []string{"Observe"}
	runAdopts(t, map[string]adoptCase[userHold]{
		"XR":         {reason: "Without the quarantine the XR would adopt its resources.", item: x, config: all, want: quarantined("XOrder.v1alpha1.example.org//x")},
		"MR":         {reason: "Without the quarantine the provider would change the external resource.", item: xptest.MR("b"), config: all, want: quarantined(bucketOp)},
		"ComposedMR": {reason: "The operation of the XR also releases its MR.", item: composed, live: live(heldWith(x)), config: all, want: quarantined("")},
		"OwnPause": {
			reason: "A user could take off their own pause during the quarantine.", item: xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true")), config: all,
			want: quarantined(bucketOp),
		},
		"Fresh":                 {reason: "The providers of both clusters would create it.", item: fresh, live: reconciled, config: all, want: quarantined(bucketOp)},
		"Foreign":               {reason: "No controller in this cluster reconciles it.", item: fresh, config: all},
		"FreshUnsafe":           {reason: "Without a quarantine the provider creates it, as in the source.", item: fresh, live: reconciled, config: holding("unsafe")},
		"FreshUnknownSetting":   {reason: "An unknown setting must hold the MR.", item: fresh, live: reconciled, config: holding("al"), want: quarantined(bucketOp)},
		"ForeignUnknownSetting": {reason: "The setting does not apply to objects that no controller reconciles.", item: fresh, config: holding("al")},
		"FreshUnreadable": {
			reason: "An MR whose kind cannot be checked must not be released.", item: fresh, live: &cluster{reconciledErr: errAPI}, config: all, err: errAPI,
		},
		"Copy": {
			reason: "A copy stays held for ever.", item: modern, live: live(modern), restore: mapped, config: clone("hold"),
			want: userHold{Op: "Order.v1.example.org/copy/m", Held: true},
		},
		"NewCopy": {
			reason: "The copied XR would compose new resources.", item: modern, live: live(modern), restore: mapped, config: clone("new"),
			want: quarantined("Order.v1.example.org/copy/m"),
		},
		"NewMR": {
			reason: "The copied MR would create a new external resource.", item: free, live: live(free), restore: mapped, config: clone("new"),
			want: quarantined("Bucket.v1alpha1.cloud.example.org/copy/b"),
		},
		"Observing": {
			reason: "The copy would observe the external resource.", item: xptest.With(free, policies(`["*"]`)), live: live(free), restore: mapped, config: clone("observe"),
			want: observing,
		},
		"Again": {
			reason: "This Restore has no quarantine, although the backup is from one.", item: held(xptest.MR("b"), hold.Hold{Quarantine: true}), config: holding("unsafe"),
			want: userHold{Op: bucketOp, Held: true},
		},
	}, userHoldOf)
}

func named(u *unstructured.Unstructured) { xp.Annotate(u, xp.AnnotationExternalName, "external") }

// Without holds, a warning names each MR that needs one.
func TestAdoptHoldsNone(t *testing.T) {
	pending := xptest.Annotated(xp.AnnotationCreatePending, created)
	secret := xptest.PublishesTo("infra", "s")
	none := map[string]string{"hold": "none"}
	warns := returned{Logged: []string{"warning"}}
	inFlight := warns
	inFlight.Name = "b"
	runReturns(t, map[string]adoptCase[returned]{
		"Named":         {reason: "An MR with an external-name is safe.", item: xptest.MR("b"), config: none, want: returned{Name: "b"}},
		"Unknown":       {reason: "The setting turns holds off, so the plugin only warns.", item: unnamed(), config: none, want: warns},
		"CreatePending": {reason: "The setting turns holds off for a pending creation too.", item: xptest.MR("b", pending), config: none, want: inFlight},
		"Publishes": {
			reason: "Another reason holds the MR, so the plugin only warns of the external-name.", item: unnamed(secret), config: none, want: returned{Op: bucketOp, Paused: true, Logged: []string{"warning"}},
		},
		"OwnPause": {
			reason: "A paused MR is not reconciled.", item: unnamed(xptest.Annotated(xp.AnnotationPaused, "true")), config: none, want: returned{Paused: true, Logged: []string{"warning"}},
		},
		"NeverCreated": {reason: "An MR that was never created is safe.", item: unnamed(xptest.Annotated(xp.AnnotationCreateFailed, created)), config: none, want: returned{}},
	})
}

// A user releases what is held. Unlike in a quarantine, safe MRs are not held.
func TestAdoptByHand(t *testing.T) {
	x := xptest.XR("x")
	composed := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	x = xptest.With(x, xptest.Refs(composed))
	fresh := xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "b", xptest.Field(map[string]any{"region": "eu"}, "spec", "forProvider"))
	modern := xptest.XRV2("m")
	manual := map[string]string{"release": "by-hand"}
	reconciled := &cluster{reconciled: []string{xptest.ManagedKind}}
	byHand := func(op string) userHold { return userHold{Op: op, Held: true, ByHand: true} }
	runAdopts(t, map[string]adoptCase[userHold]{
		"XR":     {reason: "Without a user's consent the XR would adopt its resources.", item: x, config: manual, want: byHand("XOrder.v1alpha1.example.org//x")},
		"Claim":  {reason: "Without a user's consent Crossplane would create an XR for the claim.", item: xptest.Claim("o"), config: manual, want: byHand("OrderClaim.v1alpha1.example.org/team-a/o")},
		"MR":     {reason: "Its provider may observe the MR, which is how the plugin checks it.", item: xptest.MR("b"), config: manual},
		"Unsafe": {reason: "A user still releases an MR whose external-name was unclear.", item: unnamed(), config: manual, want: byHand(bucketOp)},
		"Observing": {
			reason: "The provider observes it, and changes nothing before a user releases it.", item: xptest.MR("b"), config: map[string]string{"release": "by-hand", "observe-first": "true"},
			want: userHold{Op: bucketOp, Held: true, ByHand: true, Observing: true, Policies: []string{"Observe"}},
		},
		"Fresh":      {reason: "Without a user's consent its provider would create an external resource.", item: fresh, live: reconciled, config: manual, want: byHand(bucketOp)},
		"Foreign":    {reason: "No controller in this cluster reconciles it.", item: xptest.Object("example.org/v1", "Thing", "team-a", "t"), config: manual},
		"Quarantine": {reason: "A quarantine already needs consent, and one consent is enough.", item: x, config: map[string]string{"release": "by-hand", "hold": "all"}, want: userHold{Op: operation, Held: true, Quarantine: true}},
		"NewCopy": {
			reason: "A released copy composes new resources.", item: modern, live: live(modern), restore: restoreOf(toCopy()), config: map[string]string{"release": "by-hand", "clone": "new"},
			want: byHand("Order.v1.example.org/copy/m"),
		},
		"Automatic": {
			reason: "The backup has a hold for release by hand, but the Restore's setting decides.", item: held(x, hold.Hold{ByHand: true}), config: map[string]string{"release": "automatic"},
			want: userHold{Op: operation, Held: true},
		},
	}, userHoldOf)
}

// The mark of a restored object is signed for its namespace, with the key of Velero's namespace,
// whatever mark the backup has.
func TestAdoptSignsMarks(t *testing.T) {
	key := hold.Key(strings.Repeat("k", hold.KeySize))
	for name, item := range map[string]*unstructured.Unstructured{
		"XR":         xptest.XRV2("x", xptest.Refs(xptest.NamespacedMR("b"))),
		"Claim":      xptest.Claim("o", xptest.OfXR(xptest.XR("x"))),
		"MR":         xptest.NamespacedMR("b", xptest.PublishesTo("", "s")),
		"BackedUp":   xptest.XRV2("x", xptest.Annotated(hold.Annotation, `{"restore":"velero/earlier","reason":"earlier","mac":"x"}`)),
		"Unreadable": xptest.XRV2("x", xptest.Annotated(hold.Annotation, `?`)),
	} {
		c := &cluster{key: key}
		out := adopt(t, c, item, restoreOf(map[string]string{xptest.Namespace: "team-b"}))
		created := xptest.With(out.object, xptest.In("team-b")) // As Velero does.
		if h, err := key.HoldOf(created); err != nil || h == nil || h.Restore != "velero/monday" {
			t.Errorf("%s: got %+v, %v", name, h, err)
		}
		if _, err := key.HoldOf(out.object); !errors.Is(err, hold.ErrForged) {
			t.Errorf("%s: the mark must count only in its own namespace; got %v", name, err)
		}
		if c.keyIn != "velero" {
			t.Errorf("%s: the plugin read the key in the namespace %q", name, c.keyIn)
		}
	}
	if out := adopt(t, &cluster{keyErr: errAPI}, xptest.XRV2("x"), restoreOf(nil)); !errors.Is(out.err, errAPI) {
		t.Errorf("an item that cannot be held must not come back: %v", out.err)
	}
}

// A live object's mark counts only if it is signed. Otherwise a tenant could take an MR's operation
// away, or have a status written.
func TestAdoptIgnoresForgedMarks(t *testing.T) {
	key := hold.Key(strings.Repeat("k", hold.KeySize))
	mark := `{"restore":"velero/monday","since":"2026-01-02T03:04:05Z","reason":"forged"}`
	xr := xptest.XRV2("x", xptest.UID("live"), xptest.Annotated(hold.Annotation, mark), xptest.Annotated(xp.AnnotationPaused, "true"))
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
	if h := adopt(t, live(), xr, restoreOf(nil)).hold(t); h == nil || h.Failing == "" || h.Failing != hold.FailingOf(xr) {
		t.Errorf("got %+v", h)
	}
}

func TestRememberedHolds(t *testing.T) {
	requested := &RequestedItems{}
	mr, xr := xptest.MR("b"), xptest.XR("x")
	requested.held.add(xp.RefTo(mr), true, hold.Hold{Observes: true, Restore: "velero/monday"}, &hold.Hold{Policies: []string{"*"}})
	requested.held.add(xp.RefTo(xr), false, hold.Hold{Quarantine: true}, &hold.Hold{Refs: []xp.Ref{xp.RefTo(mr)}})
	requested.held.add(xp.RefTo(xptest.MR("copy")), true, hold.Hold{Clone: "b"}, &hold.Hold{})
	if h := requested.held.get(xp.RefTo(mr).ID()); h == nil || !h.Observes || len(h.Policies) != 1 {
		t.Errorf("a second hold needs each reason of the first: %+v", h)
	}
	if h := requested.held.get(xp.RefTo(xr).ID()); h == nil || !h.Quarantine || len(h.Refs) > 0 {
		t.Errorf("the hold must not repeat the XR's list: %+v", h)
	}
	if requested.held.get(xp.RefTo(xptest.MR("copy")).ID()) != nil {
		t.Error("a copy must have no operation")
	}
	marked := map[string]any{"metadata": map[string]any{"annotations": map[string]any{hold.Annotation: "{}"}}}
	lifts := map[string]any{"metadata": map[string]any{"annotations": map[string]any{hold.Annotation: nil}}}
	for _, u := range []*unstructured.Unstructured{mr, xr} {
		requested.OnStep(hold.Change{Target: u, Patch: marked})
		if requested.held.get(xp.RefTo(u).ID()) == nil {
			t.Errorf("the mark must keep %s held", xp.String(u))
		}
		requested.OnStep(hold.Change{Target: u, Patch: lifts})
		if requested.held.get(xp.RefTo(u).ID()) != nil {
			t.Errorf("the release must remove the hold of %s", xp.String(u))
		}
	}
}

// There can be tens of thousands of equal holds.
func TestRememberedHoldsAreSmall(t *testing.T) {
	m := &rememberedHolds{}
	for n := range 1000 {
		m.add(xp.RefTo(xptest.MR(fmt.Sprintf("b-%d", n))), true, hold.Hold{Quarantine: true, Restore: "velero/monday", Since: strconv.Itoa(n)}, &hold.Hold{})
	}
	if len(m.by.entries) != 1000 || len(m.same.entries) != 1 {
		t.Errorf("got %d holds of %d kinds", len(m.by.entries), len(m.same.entries))
	}
}
