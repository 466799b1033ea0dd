package xp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	cases := map[string]struct {
		reason string
		mr     *unstructured.Unstructured
		want   xp.Identity
	}{
		"Named":             {reason: "The MR has an external-name.", mr: xptest.MR("b"), want: xp.Known},
		"NamedCreated":      {reason: "The create succeeded.", mr: xptest.MR("b", pending(before), succeeded(after)), want: xp.Known},
		"NamedAtOnce":       {reason: "Times have whole seconds, so a quick create has one time for both annotations.", mr: xptest.MR("b", pending(before), succeeded(before)), want: xp.Known},
		"NamedRefused":      {reason: "The create failed, and the provider will retry it.", mr: xptest.MR("b", pending(before), failed(after)), want: xp.Known},
		"NamedOther":        {reason: "The external-name counts, not the provider's ID.", mr: xptest.MR("b", id), want: xp.Known},
		"NamedNeverCreated": {reason: "A provider that derives the external-name writes it before the create.", mr: xptest.MR("b", noFinalizer), want: xp.Known},
		"NamedNoTime":       {reason: "Providers ignore a time that can't be read.", mr: xptest.MR("b", pending("now")), want: xp.Known},
		"Pending":           {reason: "The provider was about to create the external resource.", mr: unnamed(pending(before)), want: xp.CreatePending},
		"PendingAgain":      {reason: "The create failed before, and the provider retries it.", mr: unnamed(failed(before), pending(after)), want: xp.CreatePending},
		"PendingOnceMore": {
			reason: "The earlier success was about another external resource.", mr: unnamed(succeeded(before), failed(before), pending(after)), want: xp.CreatePending,
		},
		"PendingNamed": {reason: "An external-name from before the create does not prove its result.", mr: xptest.MR("b", pending(before)), want: xp.CreatePending},
		"PendingID":    {reason: "An ID from before the create does not prove its result.", mr: unnamed(id, succeeded(before), pending(after)), want: xp.CreatePending},
		"NamedSince": {
			reason: "A provider that chooses the names itself resumes after a crash and writes no result.",
			mr:     xptest.MR("b", pending(before), synced("True", after)), want: xp.Known,
		},
		"NamedSinceAgain": {
			reason: "The provider resumes after a crash in a second create too.", mr: xptest.MR("b", succeeded(earlier), pending(before), synced("True", after)), want: xp.Known,
		},
		"PendingSynced": {
			reason: "Synced from before the create does not prove its result.",
			mr:     xptest.MR("b", succeeded(earlier), pending(after), synced("True", before)), want: xp.CreatePending,
		},
		"PendingSyncedOfIt": {
			reason: "The observed generation does not count a change of an annotation.",
			mr:     xptest.MR("b", pending(after), synced("True", before), xptest.OfGeneration(7), xptest.JSON(`{"metadata":{"generation":7}}`)), want: xp.CreatePending,
		},
		"PendingSyncedAtOnce": {reason: "Times have whole seconds, so Synced may be from before the create.", mr: xptest.MR("b", pending(before), synced("True", before)), want: xp.CreatePending},
		"PendingSyncedUndated": {
			reason: "A condition without a time proves nothing.", mr: xptest.MR("b", pending(before), xptest.Reconciled()), want: xp.CreatePending,
		},
		"PendingRefused": {
			reason: "The provider refuses to continue.", mr: xptest.MR("b", pending(before), synced("False", after)), want: xp.CreatePending,
		},
		"PendingReady": {
			reason: "Ready does not prove that the create ended.", want: xp.CreatePending,
			mr: xptest.MR("b", pending(before), status(`{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"`+after+`"}]}`)),
		},
		"UnknownSince": {
			reason: "The create ended, and the external-name was lost.", mr: unnamed(pending(before), synced("True", after)), want: xp.Unknown,
		},
		"Recoverable": {reason: "An asynchronous provider may fail to write the external-name.", mr: unnamed(pending(before), succeeded(after), id), want: xp.Recoverable},
		"RecoverableEmptyName": {
			reason: "An empty external-name counts as none.", mr: xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, ""), id), want: xp.Recoverable,
		},
		"RecoverableFailed":   {reason: "An ID proves that the external resource exists.", mr: unnamed(id, failed(before)), want: xp.Recoverable},
		"Unknown":             {reason: "The create succeeded, but the MR has no external-name and no ID.", mr: unnamed(pending(before), succeeded(after)), want: xp.Unknown},
		"UnknownRefused":      {reason: "An earlier create succeeded, so an external resource may exist.", mr: unnamed(succeeded(before), failed(after)), want: xp.Unknown},
		"UnknownReady":        {reason: "A ready MR has an external resource.", mr: unnamed(failed(before), status(`{"conditions":[{"type":"Ready","status":"True"}]}`)), want: xp.Unknown},
		"UnknownObserved":     {reason: "The provider has observed an external resource.", mr: unnamed(failed(before), status(`{"atProvider":{"state":"on"}}`)), want: xp.Unknown},
		"UnknownID":           {reason: "An ID of the wrong type may still be one.", mr: unnamed(status(`{"atProvider":{"id":7}}`)), want: xp.Unknown},
		"UnknownEmptyID":      {reason: "An empty ID is no ID, but the provider has written the field.", mr: unnamed(status(`{"atProvider":{"id":""}}`)), want: xp.Unknown},
		"UnknownFinalizer":    {reason: "The provider has worked on the MR, and its annotations may be lost.", mr: unnamed(), want: xp.Unknown},
		"UnknownPending":      {reason: "A time that can't be read proves a create.", mr: unnamed(noFinalizer, pending("?")), want: xp.Unknown},
		"NeverCreated":        {reason: "No provider has seen the MR.", mr: unnamed(noFinalizer), want: xp.NeverCreated},
		"NeverCreatedRefused": {reason: "The create failed, so a retry is safe in any cluster.", mr: unnamed(pending(before), failed(after)), want: xp.NeverCreated},
		"NeverCreatedUnready": {
			reason: "The provider can't even observe the external resource.", want: xp.NeverCreated,
			mr: unnamed(noFinalizer, status(`{"atProvider":{},"conditions":[{"type":"Ready","status":"False"},{"type":"Synced","status":"False"}]}`)),
		},
		"NeverCreatedNoStatus": {reason: "A malformed status proves nothing.", mr: unnamed(noFinalizer, status(`"?"`)), want: xp.NeverCreated},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := xp.IdentityOf(tc.mr); got != tc.want {
				t.Errorf("%s\nIdentityOf: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
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

func TestProviderID(t *testing.T) {
	for status, want := range map[string]string{
		`{"atProvider":{"id":"vpc-1"}}`: "vpc-1", `{"atProvider":{"id":""}}`: "", `{"atProvider":{"id":7}}`: "", `{"atProvider":{"arn":"a"}}`: "", `{"atProvider":[]}`: "",
		`{}`: "", `null`: "", `"?"`: "",
	} {
		id, ok := xp.ProviderID(xptest.MR("b", xptest.JSON(`{"status":`+status+`}`)))
		if id != want || ok != (want != "") {
			t.Errorf("ProviderID of %s: got %q, %v, want %q", status, id, ok, want)
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
	cases := map[string]struct {
		reason string
		mr     *unstructured.Unstructured
		want   xp.Ref
	}{
		"Cluster": {reason: "Crossplane v1 has one kind of ProviderConfig.", mr: xptest.MR("b", uses(`{"name":"a"}`)), want: xp.Ref{Kind: "ProviderConfig", Name: "a"}},
		"Wide": {
			reason: "A ClusterProviderConfig serves all namespaces.", mr: xptest.NamespacedMR("b", uses(`{"kind":"ClusterProviderConfig","name":"a"}`)),
			want: xp.Ref{Kind: "ClusterProviderConfig", Name: "a"},
		},
		"Local": {
			reason: "A ProviderConfig serves one namespace.", mr: xptest.NamespacedMR("b", uses(`{"kind":"ProviderConfig","name":"a"}`)),
			want: xp.Ref{Kind: "ProviderConfig", Namespace: "team-a", Name: "a"},
		},
		"Default": {reason: "The default is a ClusterProviderConfig.", mr: xptest.NamespacedMR("b", uses(`{"name":"a"}`)), want: xp.Ref{Kind: "ClusterProviderConfig", Name: "a"}},
		"Policy":  {reason: "The name counts, not the policy.", mr: xptest.MR("b", uses(`{"name":"a","policy":{"resolve":"Always"}}`)), want: xp.Ref{Kind: "ProviderConfig", Name: "a"}},
		"Nothing": {reason: "MRs without a named ProviderConfig share the default one.", mr: xptest.MR("b", uses(`7`)), want: xp.Ref{Kind: "ProviderConfig"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, xp.AccountOf(tc.mr)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRunBy(t *testing.T) {
	xr := xptest.XR("x")
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   []string
	}{
		"Composition": {reason: "A Composition names its XR kind.", object: xptest.Composition("c", xr), want: []string{"XOrder.example.org"}},
		"Revision":    {reason: "A revision names its XR kind too.", object: xptest.Revision("c-1", xr), want: []string{"XOrder.example.org"}},
		"XRD": {
			reason: "An XRD defines XRs and claims.", object: xptest.XRD("xorders.example.org", xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"},
				"claimNames":{"kind":"OrderClaim"}}}`)), want: []string{"XOrder.example.org", "OrderClaim.example.org"},
		},
		"Others": {
			reason: "A field beside the kind is of no interest.", object: xptest.Composition("c", xr, xptest.Field([]any{"x"}, "spec", "compositeTypeRef", "versions")),
			want: []string{"XOrder.example.org"},
		},
		"Malformed": {reason: "A malformed Composition names no kind.", object: xptest.Composition("c", xr, xptest.Field("x", "spec", "compositeTypeRef"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, gk := range xp.RunBy(tc.object) {
				got = append(got, gk.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// An MR of upjet with a name and without status was never observed.
func TestIsNeverObserved(t *testing.T) {
	const upjets = `{"spec":{"initProvider":{}}}`
	cases := map[string]struct {
		reason string
		mr     *unstructured.Unstructured
		want   bool
	}{
		"Found":      {reason: "Upjet has written the observed ID.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"status":{"atProvider":{"id":"b"}}}`))},
		"Unfound":    {reason: "Upjet has not written an observed ID.", mr: xptest.MR("b", xptest.JSON(upjets)), want: true},
		"Empty":      {reason: "An empty atProvider has no observed ID.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"status":{"atProvider":{}}}`)), want: true},
		"Synced":     {reason: "Upjet reports Synced during an asynchronous create.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Reconciled()), want: true},
		"NotUpjets":  {reason: "Other providers need not write what they observe.", mr: xptest.MR("b")},
		"Observes":   {reason: "An observing MR creates nothing.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"spec":{"managementPolicies":["Observe"]}}`))},
		"Paused":     {reason: "No provider reconciles a paused MR.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Annotated(xp.AnnotationPaused, "true"))},
		"Unnamed":    {reason: "An MR without an external-name is another case.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Without("metadata", "annotations"))},
		"BeingMade":  {reason: "A pending create is another case.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.Annotated(xp.AnnotationCreatePending, "2026-01-02T03:04:05Z"))},
		"NotManaged": {reason: "Any kind can have a field of that name.", mr: xptest.XR("x", xptest.JSON(upjets))},
		"Malformed":  {reason: "A malformed atProvider has no observed ID.", mr: xptest.MR("b", xptest.JSON(upjets), xptest.JSON(`{"status":{"atProvider":"b"}}`)), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, xp.IsNeverObserved(tc.mr)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
