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
		"Named":             {reason: "It has an external-name.", mr: xptest.MR("b"), want: xp.Known},
		"NamedCreated":      {reason: "It was created.", mr: xptest.MR("b", pending(before), succeeded(after)), want: xp.Known},
		"NamedAtOnce":       {reason: "Times are of seconds, so a quick create has one for both.", mr: xptest.MR("b", pending(before), succeeded(before)), want: xp.Known},
		"NamedRefused":      {reason: "It could not be created, and will be tried again.", mr: xptest.MR("b", pending(before), failed(after)), want: xp.Known},
		"NamedOther":        {reason: "What its provider calls it doesn't matter then.", mr: xptest.MR("b", id), want: xp.Known},
		"NamedNeverCreated": {reason: "A provider whose names are those of the objects writes it before the create.", mr: xptest.MR("b", noFinalizer), want: xp.Known},
		"NamedNoTime":       {reason: "A time that can't be read is none, as for providers.", mr: xptest.MR("b", pending("now")), want: xp.Known},
		"Pending":           {reason: "It was about to be created.", mr: unnamed(pending(before)), want: xp.CreatePending},
		"PendingAgain":      {reason: "It failed before, and is tried again.", mr: unnamed(failed(before), pending(after)), want: xp.CreatePending},
		"PendingOnceMore": {
			reason: "What succeeded before was another external resource.", mr: unnamed(succeeded(before), failed(before), pending(after)), want: xp.CreatePending,
		},
		"PendingNamed": {reason: "A name that was there before the create does not say how that ended.", mr: xptest.MR("b", pending(before)), want: xp.CreatePending},
		"PendingID":    {reason: "Nor does what there was earlier.", mr: unnamed(id, succeeded(before), pending(after)), want: xp.CreatePending},
		"NamedSince": {
			reason: "A provider that names its resources itself goes on after it was killed in the middle, and notes nothing.",
			mr:     xptest.MR("b", pending(before), synced("True", after)), want: xp.Known,
		},
		"NamedSinceAgain": {
			reason: "The same in a second create.", mr: xptest.MR("b", succeeded(earlier), pending(before), synced("True", after)), want: xp.Known,
		},
		"PendingSynced": {
			reason: "It was in order before somebody deleted its external resource, and what says so is not written again until the create is over.",
			mr:     xptest.MR("b", succeeded(earlier), pending(after), synced("True", before)), want: xp.CreatePending,
		},
		"PendingSyncedOfIt": {
			reason: "The generation that was reconciled says nothing of an annotation.",
			mr:     xptest.MR("b", pending(after), synced("True", before), xptest.OfGeneration(7), xptest.JSON(`{"metadata":{"generation":7}}`)), want: xp.CreatePending,
		},
		"PendingSyncedAtOnce": {reason: "Times are of seconds.", mr: xptest.MR("b", pending(before), synced("True", before)), want: xp.CreatePending},
		"PendingSyncedUndated": {
			reason: "Nothing says since when.", mr: xptest.MR("b", pending(before), xptest.Reconciled()), want: xp.CreatePending,
		},
		"PendingRefused": {
			reason: "Its provider refuses to go on.", mr: xptest.MR("b", pending(before), synced("False", after)), want: xp.CreatePending,
		},
		"PendingReady": {
			reason: "Whether it is Ready is not what tells.", want: xp.CreatePending,
			mr: xptest.MR("b", pending(before), status(`{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"`+after+`"}]}`)),
		},
		"UnknownSince": {
			reason: "The create is over, and its name was lost.", mr: unnamed(pending(before), synced("True", after)), want: xp.Unknown,
		},
		"Recoverable": {reason: "An asynchronous provider that may not write the name.", mr: unnamed(pending(before), succeeded(after), id), want: xp.Recoverable},
		"RecoverableEmptyName": {
			reason: "An empty name is none.", mr: xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, ""), id), want: xp.Recoverable,
		},
		"RecoverableFailed":   {reason: "An id is one of something.", mr: unnamed(id, failed(before)), want: xp.Recoverable},
		"Unknown":             {reason: "It was created.", mr: unnamed(pending(before), succeeded(after)), want: xp.Unknown},
		"UnknownRefused":      {reason: "Another create than the one that failed succeeded.", mr: unnamed(succeeded(before), failed(after)), want: xp.Unknown},
		"UnknownReady":        {reason: "Something is ready.", mr: unnamed(failed(before), status(`{"conditions":[{"type":"Ready","status":"True"}]}`)), want: xp.Unknown},
		"UnknownObserved":     {reason: "Something was observed.", mr: unnamed(failed(before), status(`{"atProvider":{"state":"on"}}`)), want: xp.Unknown},
		"UnknownID":           {reason: "An id is a string.", mr: unnamed(status(`{"atProvider":{"id":7}}`)), want: xp.Unknown},
		"UnknownEmptyID":      {reason: "An empty one is none, and yet somebody wrote it.", mr: unnamed(status(`{"atProvider":{"id":""}}`)), want: xp.Unknown},
		"UnknownFinalizer":    {reason: "Its provider has worked on it, and what it has written may be lost.", mr: unnamed(), want: xp.Unknown},
		"UnknownPending":      {reason: "A time that can't be read was one.", mr: unnamed(noFinalizer, pending("?")), want: xp.Unknown},
		"NeverCreated":        {reason: "No provider has seen it.", mr: unnamed(noFinalizer), want: xp.NeverCreated},
		"NeverCreatedRefused": {reason: "It was never created, and is tried again wherever it is.", mr: unnamed(pending(before), failed(after)), want: xp.NeverCreated},
		"NeverCreatedUnready": {
			reason: "Its provider can't even look.", want: xp.NeverCreated,
			mr: unnamed(noFinalizer, status(`{"atProvider":{},"conditions":[{"type":"Ready","status":"False"},{"type":"Synced","status":"False"}]}`)),
		},
		"NeverCreatedNoStatus": {reason: "Malformed is none.", mr: unnamed(noFinalizer, status(`"?"`)), want: xp.NeverCreated},
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
		"None":      {"A kind without policies does everything.", `{"managementPolicies":null}`, want{Create: true}},
		"All":       {"The default.", `{"managementPolicies":["*"]}`, want{Policies: []string{"*"}, OK: true, Create: true}},
		"Observe":   {"It only looks.", `{"managementPolicies":["Observe"]}`, want{Policies: []string{"Observe"}, OK: true, Only: true}},
		"Paused":    {"No policy is a pause.", `{"managementPolicies":[]}`, want{Policies: []string{}, OK: true}},
		"Update":    {"It changes what is there.", `{"managementPolicies":["Observe","Update"]}`, want{Policies: []string{"Observe", "Update"}, OK: true}},
		"Import":    {"It writes what it sees.", `{"managementPolicies":["Observe","LateInitialize"]}`, want{Policies: []string{"Observe", "LateInitialize"}, OK: true}},
		"Create":    {"It makes what is not there.", `{"managementPolicies":["Observe","Create"]}`, want{Policies: []string{"Observe", "Create"}, OK: true, Create: true}},
		"Malformed": {"What can't be read must not pass for less than everything.", `{"managementPolicies":[1]}`, want{Create: true}},
		"NotAList":  {"The same.", `{"managementPolicies":"Observe"}`, want{Create: true}},
	} {
		mr := xptest.MR("b", xptest.JSON(`{"spec":`+tc.spec+`}`))
		got := want{Only: xp.OnlyObserves(mr), Create: xp.MayCreate(mr)}
		got.Policies, got.OK = xp.ManagementPolicies(mr)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s\n-want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

func TestSetExternalName(t *testing.T) {
	for name, mr := range map[string]*unstructured.Unstructured{"None": unnamed(), "Others": unnamed(xptest.Annotated("theirs", "kept")), "Empty": xptest.MR("b")} {
		want := xptest.With(mr, xptest.Annotated(xp.AnnotationExternalName, "vpc-1"))
		xp.SetExternalName(mr, "vpc-1")
		if diff := cmp.Diff(want, mr); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
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
			t.Errorf("%s is taken for NeverCreated", fmt.Sprint(mr.Object))
		}
		if got == xp.Known && name == "" || got == xp.Recoverable && (id == "" || name != "") {
			t.Errorf("%s is taken for %s", fmt.Sprint(mr.Object), got)
		}
	})
}
