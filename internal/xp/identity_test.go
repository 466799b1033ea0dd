package xp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	earlier = "2026-01-02T03:04:04Z"

	before = "2026-01-02T03:04:05Z"
	after  = "2026-01-02T03:04:06Z"
)

// unnamed returns an MR without an external-name.
func unnamed(o ...xptest.Option) *unstructured.Unstructured {
	return xptest.MR("b", append([]xptest.Option{xptest.Without("metadata", "annotations")}, o...)...)
}

func TestIdentityOf(t *testing.T) {
	pending := func(at string) xptest.Option { return xptest.Annotated(xp.AnnotationCreatePending, at) }
	succeeded := func(at string) xptest.Option { return xptest.Annotated(xp.AnnotationCreateSucceeded, at) }
	failed := func(at string) xptest.Option { return xptest.Annotated(xp.AnnotationCreateFailed, at) }
	id := xptest.JSON(`{"status":{"atProvider":{"id":"vpc-1"}}}`)
	status := func(document string) xptest.Option { return xptest.JSON(`{"status":` + document + `}`) }
	synced := func(s, since string) xptest.Option {
		return status(`{"conditions":[{"type":"Synced","status":"` + s + `","lastTransitionTime":"` + since + `"}]}`)
	}
	noFinalizer := xptest.Finalizers()
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, xp.Identity]{
		"Named":             {Reason: "The MR has an external-name.", In: xptest.MR("b"), Want: xp.Known},
		"NamedOther":        {Reason: "The external-name counts, not the provider's ID.", In: xptest.MR("b", id), Want: xp.Known},
		"NamedNeverCreated": {Reason: "A provider that derives the external-name writes it before the create.", In: xptest.MR("b", noFinalizer), Want: xp.Known},
		"PendingID":         {Reason: "An ID from before the create does not prove its result.", In: unnamed(id, succeeded(before), pending(after)), Want: xp.CreatePending},
		"NamedSince": {
			Reason: "A provider that chooses the names itself resumes after a crash and writes no result.",
			In:     xptest.MR("b", pending(before), synced("True", after)), Want: xp.Known,
		},
		"PendingSynced": {
			Reason: "Synced from before the create does not prove its result.",
			In:     xptest.MR("b", succeeded(earlier), pending(after), synced("True", before)), Want: xp.CreatePending,
		},
		"PendingSyncedOfIt": {
			Reason: "The observed generation does not count a change of an annotation.",
			In:     xptest.MR("b", pending(after), synced("True", before), xptest.OfGeneration(7), xptest.JSON(`{"metadata":{"generation":7}}`)), Want: xp.CreatePending,
		},
		"PendingSyncedAtOnce": {Reason: "Times have whole seconds, so Synced may be from before the create.", In: xptest.MR("b", pending(before), synced("True", before)), Want: xp.CreatePending},
		"PendingSyncedUndated": {
			Reason: "A condition without a time proves nothing.", In: xptest.MR("b", pending(before), xptest.Reconciled()), Want: xp.CreatePending,
		},
		"PendingRefused": {Reason: "The provider refuses to continue.", In: xptest.MR("b", pending(before), synced("False", after)), Want: xp.CreatePending},
		"PendingReady": {
			Reason: "Ready does not prove that the create ended.", Want: xp.CreatePending,
			In: xptest.MR("b", pending(before), status(`{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"`+after+`"}]}`)),
		},
		"UnknownSince": {Reason: "The create ended, and the external-name was lost.", In: unnamed(pending(before), synced("True", after)), Want: xp.Unknown},
		"Recoverable":  {Reason: "An asynchronous provider may fail to write the external-name.", In: unnamed(pending(before), succeeded(after), id), Want: xp.Recoverable},
		"RecoverableEmptyName": {
			Reason: "An empty external-name counts as none.", In: xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, ""), id), Want: xp.Recoverable,
		},
		"RecoverableFailed":   {Reason: "An ID proves that the external resource exists.", In: unnamed(id, failed(before)), Want: xp.Recoverable},
		"Unknown":             {Reason: "The create succeeded, but the MR has no external-name and no ID.", In: unnamed(pending(before), succeeded(after)), Want: xp.Unknown},
		"UnknownRefused":      {Reason: "An earlier create succeeded, so an external resource may exist.", In: unnamed(succeeded(before), failed(after)), Want: xp.Unknown},
		"UnknownReady":        {Reason: "A ready MR has an external resource.", In: unnamed(failed(before), status(`{"conditions":[{"type":"Ready","status":"True"}]}`)), Want: xp.Unknown},
		"UnknownObserved":     {Reason: "The provider has observed an external resource.", In: unnamed(failed(before), status(`{"atProvider":{"state":"on"}}`)), Want: xp.Unknown},
		"UnknownID":           {Reason: "An ID of the wrong type may still be one.", In: unnamed(status(`{"atProvider":{"id":7}}`)), Want: xp.Unknown},
		"UnknownFinalizer":    {Reason: "The provider has worked on the MR, and its annotations may be lost.", In: unnamed(), Want: xp.Unknown},
		"UnknownPending":      {Reason: "A time that can't be read proves a create.", In: unnamed(noFinalizer, pending("?")), Want: xp.Unknown},
		"NeverCreated":        {Reason: "No provider has seen the MR.", In: unnamed(noFinalizer), Want: xp.NeverCreated},
		"NeverCreatedRefused": {Reason: "The create failed, so a retry is safe in any cluster.", In: unnamed(pending(before), failed(after)), Want: xp.NeverCreated},
		"NeverCreatedUnready": {
			Reason: "The provider can't even observe the external resource.", Want: xp.NeverCreated,
			In: unnamed(noFinalizer, status(`{"atProvider":{},"conditions":[{"type":"Ready","status":"False"},{"type":"Synced","status":"False"}]}`)),
		},
	}, xp.IdentityOf)
}

// A create is pending exactly if crossplane-runtime refuses to go on (pkg/meta,
// ExternalCreateIncomplete; the test repeats its rule).
func TestCreatePendingAsRuntime(t *testing.T) {
	values := []string{"-", "", "?", before, after, "2026-01-02T04:04:05+01:00"}
	at := func(s string) time.Time {
		parsed, _ := time.Parse(time.RFC3339, s)

		return parsed
	}
	for _, p := range values {
		for _, s := range values {
			for _, f := range values {
				mr := xptest.MR("b")
				for annotation, value := range map[string]string{xp.AnnotationCreatePending: p, xp.AnnotationCreateSucceeded: s, xp.AnnotationCreateFailed: f} {
					if value != "-" {
						xptest.Annotated(annotation, value)(mr)
					}
				}
				latest := at(s)
				if at(f).After(latest) {
					latest = at(f)
				}
				want := !at(p).IsZero() && at(p).After(latest)
				if got := xp.IdentityOf(mr) == xp.CreatePending; got != want {
					t.Errorf("pending %q, succeeded %q, failed %q: got %v, want %v", p, s, f, got, want)
				}
			}
		}
	}
}

func TestManagementPolicies(t *testing.T) {
	type want struct {
		Policies []string
		OK       bool
		// Only is OnlyObserves, Create is MayCreate.
		Only, Create bool
	}
	for name, tc := range map[string]struct {
		reason string
		spec   string
		want   want
	}{
		"None":      {"A kind without policies allows all actions.", `{"managementPolicies":null}`, want{Create: true}},
		"All":       {"The default policy allows all actions.", `{"managementPolicies":["*"]}`, want{Policies: []string{"*"}, OK: true, Create: true}},
		"Observe":   {"The policy allows only an observe.", `{"managementPolicies":["Observe"]}`, want{Policies: []string{"Observe"}, OK: true, Only: true}},
		"Twice":     {"Policies are a set.", `{"managementPolicies":["Observe","Observe"]}`, want{Policies: []string{"Observe", "Observe"}, OK: true, Only: true}},
		"Paused":    {"An empty list pauses the MR.", `{"managementPolicies":[]}`, want{Policies: []string{}, OK: true}},
		"Update":    {"The policies allow an update, but no create.", `{"managementPolicies":["Observe","Update"]}`, want{Policies: []string{"Observe", "Update"}, OK: true}},
		"Import":    {"A late initialization changes only the MR itself.", `{"managementPolicies":["Observe","LateInitialize"]}`, want{Policies: []string{"Observe", "LateInitialize"}, OK: true}},
		"Create":    {"The policy allows the create.", `{"managementPolicies":["Observe","Create"]}`, want{Policies: []string{"Observe", "Create"}, OK: true, Create: true}},
		"Malformed": {"Malformed policies must not restrict the allowed actions.", `{"managementPolicies":[1]}`, want{Create: true}},
		"NotAList":  {"A string must not restrict the allowed actions either.", `{"managementPolicies":"Observe"}`, want{Create: true}},
	} {
		mr := xptest.MR("b", xptest.JSON(`{"spec":`+tc.spec+`}`))
		got := want{Only: xp.OnlyObserves(mr), Create: xp.MayCreate(mr)}
		got.Policies, got.OK = xp.ManagementPolicies(mr)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s\n-want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

// FuzzIdentityOf checks that no MR with a possible external resource is NeverCreated, whatever
// users and providers write.
func FuzzIdentityOf(f *testing.F) {
	f.Add("", "", before, "", "", true, false)
	f.Add("b", "vpc-1", "", before, after, true, true)
	f.Add("", "", "", "", "", false, false)
	f.Fuzz(func(t *testing.T, name, id, pending, succeeded, failed string, finalizer, ready bool) {
		mr := unnamed(xptest.Finalizers())
		for annotation, value := range map[string]string{
			xp.AnnotationExternalName: name, xp.AnnotationCreatePending: pending, xp.AnnotationCreateSucceeded: succeeded, xp.AnnotationCreateFailed: failed,
		} {
			if value != "" {
				xptest.Annotated(annotation, value)(mr)
			}
		}
		if finalizer {
			xptest.Finalizers(xp.FinalizerManaged)(mr)
		}
		if id != "" {
			xptest.Field(id, "status", "atProvider", "id")(mr)
		}
		if ready {
			xptest.JSON(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)(mr)
		}
		got := xp.IdentityOf(mr)
		if got == xp.NeverCreated && (name != "" || id != "" || succeeded != "" || ready || finalizer && failed == "") {
			t.Errorf("%s counts as NeverCreated", fmt.Sprint(mr.Object))
		}
		if got == xp.Known && name == "" || got == xp.Recoverable && (id == "" || name != "") {
			t.Errorf("%s counts as %s", fmt.Sprint(mr.Object), got)
		}
	})
}

func TestAccountOf(t *testing.T) {
	uses := func(json string) xptest.Option { return xptest.JSON(`{"spec":{"providerConfigRef":` + json + `}}`) }
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, xp.Ref]{
		"Cluster": {Reason: "Crossplane v1 has one kind of ProviderConfig.", In: xptest.MR("b", uses(`{"name":"a"}`)), Want: xp.Ref{Kind: "ProviderConfig", Name: "a"}},
		"Wide": {
			Reason: "A ClusterProviderConfig serves all namespaces.", In: xptest.NamespacedMR("b", uses(`{"kind":"ClusterProviderConfig","name":"a"}`)),
			Want: xp.Ref{Kind: "ClusterProviderConfig", Name: "a"},
		},
		"Local": {
			Reason: "A ProviderConfig serves one namespace.", In: xptest.NamespacedMR("b", uses(`{"kind":"ProviderConfig","name":"a"}`)),
			Want: xp.Ref{Kind: "ProviderConfig", Namespace: "team-a", Name: "a"},
		},
		"Default": {Reason: "The default is a ClusterProviderConfig.", In: xptest.NamespacedMR("b", uses(`{"name":"a"}`)), Want: xp.Ref{Kind: "ClusterProviderConfig", Name: "a"}},
		"Nothing": {Reason: "MRs without a named ProviderConfig share the default one.", In: xptest.MR("b", uses(`7`)), Want: xp.Ref{Kind: "ProviderConfig"}},
	}, xp.AccountOf)
}

func TestRunBy(t *testing.T) {
	xr, xorder := xptest.XR("x"), schema.GroupKind{Group: "example.org", Kind: "XOrder"}
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, []schema.GroupKind]{
		"Composition": {Reason: "A Composition names its XR kind.", In: xptest.Composition("c", xr), Want: []schema.GroupKind{xorder}},
		"Revision":    {Reason: "A revision names its XR kind too.", In: xptest.Revision("c-1", xr), Want: []schema.GroupKind{xorder}},
		"XRD": {
			Reason: "An XRD defines XRs and claims.", In: xptest.XRD("xorders.example.org", xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"},
				"claimNames":{"kind":"OrderClaim"}}}`)), Want: []schema.GroupKind{xorder, {Group: "example.org", Kind: "OrderClaim"}},
		},
	}, xp.RunBy)
}

// An MR of upjet with a name and without status was never observed.
func TestIsNeverObserved(t *testing.T) {
	const upjets = `{"spec":{"initProvider":{}}}`
	xptest.Run(t, map[string]xptest.Row[*unstructured.Unstructured, bool]{
		"Found":      {Reason: "Upjet has written the observed ID.", In: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"status":{"atProvider":{"id":"b"}}}`))},
		"Unfound":    {Reason: "Upjet has not written an observed ID.", In: xptest.MR("b", xptest.JSON(upjets)), Want: true},
		"Synced":     {Reason: "Upjet reports Synced during an asynchronous create.", In: xptest.MR("b", xptest.JSON(upjets), xptest.Reconciled()), Want: true},
		"NotUpjets":  {Reason: "Other providers need not write what they observe.", In: xptest.MR("b")},
		"Observes":   {Reason: "An observing MR creates nothing.", In: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"spec":{"managementPolicies":["Observe"]}}`))},
		"Paused":     {Reason: "No provider reconciles a paused MR.", In: xptest.MR("b", xptest.JSON(upjets), xptest.Annotated(xp.AnnotationPaused, "true"))},
		"Unnamed":    {Reason: "An MR without an external-name is another case.", In: xptest.MR("b", xptest.JSON(upjets), xptest.Without("metadata", "annotations"))},
		"BeingMade":  {Reason: "A pending create is another case.", In: xptest.MR("b", xptest.JSON(upjets), xptest.Annotated(xp.AnnotationCreatePending, "2026-01-02T03:04:05Z"))},
		"NotManaged": {Reason: "Any kind can have a field of that name.", In: xptest.XR("x", xptest.JSON(upjets))},
	}, xp.IsNeverObserved)
}
