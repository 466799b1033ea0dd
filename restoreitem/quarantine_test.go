package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// All that Crossplane or a provider would reconcile is restored on hold, and stays so.
func TestAdoptQuarantines(t *testing.T) {
	const thing = "Bucket"
	x := xptest.XR("x")
	composed := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	x = xptest.With(x, xptest.Refs(composed))
	spec := xptest.Field(map[string]any{"region": "eu"}, "spec", "forProvider")
	fresh := xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "b", spec)
	modern := xptest.XRV2("m")
	copied := []*unstructured.Unstructured{modern, xptest.NamespacedMR("b")}
	type want struct {
		Op, Paused              string
		Quarantine, Held, Fails bool
		Policies                []string
	}
	quarantined := func(op string) want { return want{Op: op, Paused: "true", Quarantine: true, Held: true} }
	inBucket := func(namespace string) string { return "Bucket.v1alpha1.cloud.example.org/" + namespace + "/b" }
	cases := map[string]struct {
		reason       string
		item         *unstructured.Unstructured
		live         []*unstructured.Unstructured
		hold         string
		clone        string
		unreconciled bool
		err          error
		want         want
	}{
		"XR":       {reason: "Without the quarantine the XR would adopt its resources.", item: x, want: quarantined("XOrder.v1alpha1.example.org//x")},
		"ModernXR": {reason: "Without the quarantine the namespaced XR would adopt its resources.", item: modern, want: quarantined("Order.v1.example.org/team-a/m")},
		"NeverComposed": {
			reason: "An XR without composed resources is held too, since it would create them.", item: xptest.XR("x", xptest.NeverComposed()), want: quarantined("XOrder.v1alpha1.example.org//x"),
		},
		"Claim":      {reason: "Without the quarantine Crossplane would create an XR for the claim.", item: xptest.Claim("o"), want: quarantined("OrderClaim.v1alpha1.example.org/team-a/o")},
		"MR":         {reason: "Without the quarantine the provider would change the external resource.", item: xptest.MR("b"), want: quarantined(inBucket(""))},
		"ComposedMR": {reason: "The operation of the XR also releases its MR.", item: composed, live: []*unstructured.Unstructured{heldWith(x)}, want: quarantined("")},
		"Unsafe":     {reason: "The external-name is checked after the quarantine.", item: unnamed(), want: quarantined(inBucket(""))},
		"OwnPause": {
			reason: "A user could take off their own pause during the quarantine.", item: xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true")), want: quarantined(inBucket("")),
		},
		"Fresh":                 {reason: "The providers of both clusters would create the external resource.", item: fresh, want: quarantined(inBucket(""))},
		"FreshComposed":         {reason: "The providers of both clusters would create the composed external resource.", item: xptest.With(fresh, xptest.ControlledBy(x)), live: []*unstructured.Unstructured{heldWith(x)}, want: quarantined("")},
		"Foreign":               {reason: "No controller in this cluster reconciles it.", item: fresh, unreconciled: true},
		"FreshUnsafe":           {reason: "Without a quarantine the provider creates it, as in the source.", item: fresh, hold: "unsafe"},
		"FreshUnknownSetting":   {reason: "An unknown setting must hold the MR.", item: fresh, hold: "al", want: want{Op: inBucket(""), Paused: "true", Quarantine: true, Held: true}},
		"ForeignUnknownSetting": {reason: "The setting does not apply to objects that no controller reconciles.", item: fresh, hold: "al", unreconciled: true},
		"FreshUnreadable":       {reason: "An MR whose kind cannot be checked must not be released.", item: fresh, err: errAPI, want: want{Fails: true}},
		"Secret":                {reason: "No controller reconciles a Secret.", item: xptest.Secret("s")},
		"Config":                {reason: "A ProviderConfig changes nothing outside the cluster.", item: xptest.Object("cloud.example.org/v1", "ProviderConfig", "", "default"), unreconciled: true},
		"Copy": {
			reason: "A copy stays held for ever.", item: modern, live: copied, clone: "hold",
			want: want{Op: "Order.v1.example.org/copy/m", Paused: "true", Held: true},
		},
		"NewCopy": {reason: "The copied XR would compose new resources.", item: modern, live: copied, clone: "new", want: quarantined("Order.v1.example.org/copy/m")},
		"NewMR":   {reason: "The copied MR would create a new external resource.", item: xptest.NamespacedMR("b", named), live: []*unstructured.Unstructured{xptest.NamespacedMR("b", named)}, clone: "new", want: quarantined(inBucket("copy"))},
		"Observing": {
			reason: "The copy would observe the external resource.", item: xptest.NamespacedMR("b", named, policies(`["*"]`)), live: []*unstructured.Unstructured{xptest.NamespacedMR("b", named)}, clone: "observe",
			want: want{Op: inBucket("copy"), Paused: "true", Quarantine: true, Held: true, Policies: []string{"Observe"}},
		},
		"Again": {reason: "This Restore has no quarantine, although the backup is from one.", item: inQuarantine(xptest.MR("b")), hold: "unsafe", want: want{Op: inBucket(""), Paused: "true", Held: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := live(tc.live...)
			c.config = map[string]string{"hold": "all"}
			if tc.hold != "" {
				c.config["hold"] = tc.hold
			}
			var mapping map[string]string
			if tc.clone != "" {
				c.config["clone"], mapping = tc.clone, toCopy()
			}
			if !tc.unreconciled {
				c.reconciled = []string{thing}
			}
			c.reconciledErr = tc.err
			out := adopt(t, c, tc.item, restoreOf(mapping))
			got := want{Fails: out.err != nil}
			if out.err == nil {
				got.Op = out.OperationID
			}
			if u := out.object; u != nil {
				h, err := adoption.HoldOf(u)
				if err != nil {
					t.Fatal(err)
				}
				got.Paused, got.Held, got.Quarantine = u.GetAnnotations()[xp.AnnotationPaused], h != nil, h != nil && h.Quarantine
				got.Policies, _ = xp.ManagementPolicies(u)
				if got.Quarantine && (h.Restore != "velero/monday" || !strings.Contains(h.Reason, "release --restore velero/monday")) {
					t.Errorf("the mark must name the next step; got %+v", h)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s%v", tc.reason, diff, out.err)
			}
		})
	}
}

func named(u *unstructured.Unstructured) { xp.Annotate(u, xp.AnnotationExternalName, "external") }

// inQuarantine returns an object as it is backed up in quarantine.
func inQuarantine(u *unstructured.Unstructured) *unstructured.Unstructured {
	if _, err := adoption.Put(u, adoption.Hold{Quarantine: true}); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

// Kinds that are not Crossplane's cost a restore no request, also in a quarantine.
func TestAdoptReadsNothingOfForeignKinds(t *testing.T) {
	for hold, want := range map[string][]string{"unsafe": {"settings in velero"}, "all": {"settings in velero", "reconciled Thing"}} {
		c := live()
		c.config = map[string]string{"hold": hold}
		adopt(t, c, xptest.Object("example.org/v1", "Thing", "team-a", "t"), restoreOf(nil))
		if diff := cmp.Diff(want, c.asked); diff != "" {
			t.Errorf("%s: -want, +asked:\n%s", hold, diff)
		}
	}
}

// Without holds, a warning names each MR that needs one.
func TestAdoptHoldsNone(t *testing.T) {
	pending := xptest.Annotated(xp.AnnotationCreatePending, created)
	secret := xptest.PublishesTo("infra", "s")
	none := map[string]string{"hold": "none"}
	warns := returned{Logged: []string{"warning"}}
	inFlight := warns
	inFlight.Name = "b"
	runReturns(t, map[string]returnCase{
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
	c := live()
	c.config = none
	out := adopt(t, c, unnamed(), restoreOf(nil))
	if len(out.logged) != 1 || !strings.Contains(out.logged[0], "Bucket b") || !strings.Contains(out.logged[0], xp.AnnotationExternalName) {
		t.Errorf("got log %v", out.logged)
	}
}
