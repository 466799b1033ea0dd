package live

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// selector selects what a restore has created.
const selector = "velero.io/restore-name=monday"

// monday is that restore.
var monday = adoption.Requester{Restore: "velero/monday"}

// restored returns an object as a restore leaves it: labelled, and held if it is an XR or a claim.
func restored(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = xptest.With(u, xptest.Labelled("velero.io/restore-name", "monday"))
	if xp.IsComposite(u) || xp.IsClaim(u) {
		if _, err := adoption.Put(u, adoption.Hold{Restore: "velero/monday", Since: time.Now().UTC().Format(time.RFC3339)}); err != nil {
			panic(err) // The test is wrong.
		}
	}

	return u
}

func TestObserve(t *testing.T) {
	x := xptest.XR("x")
	mine, revision := xptest.MR("b", xptest.ControlledBy(x)), xptest.Revision(xptest.RevisionName, x)
	claim := xptest.Claim("o", xptest.OfXR(x))
	xr := xptest.XR("x", xptest.Refs(mine), xptest.ClaimedBy(claim))
	child := xptest.XR("child", xptest.ControlledBy(x))
	parent := xptest.XR("x", xptest.Refs(child, mine))
	const all = ""
	type want struct {
		Lists []string
		// There and Missing are refs to look for.
		There, Missing []*unstructured.Unstructured
		Held           int
	}
	labelled := func(resources ...string) (lists []string) {
		for _, r := range resources {
			lists = append(lists, r+" "+selector)
		}

		return lists
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		from    []xp.Ref
		want    want
	}{
		"AllRestored": {
			reason:  "The restored objects are enough: one list for each kind.",
			objects: []*unstructured.Unstructured{restored(xr), restored(mine), restored(claim), restored(revision), xptest.MR("other"), xptest.XR("other")},
			from:    []xp.Ref{xp.RefTo(x)},
			want: want{
				Lists: labelled("xorders", "compositionrevisions", "orderclaims", "buckets"), There: []*unstructured.Unstructured{xr, mine, claim, revision},
				Missing: []*unstructured.Unstructured{xptest.MR("other"), xptest.XR("other")}, Held: 1,
			},
		},
		"RevisionWasThere": {
			reason:  "An object from before the restore lacks its label: only that kind is listed whole.",
			objects: []*unstructured.Unstructured{restored(xr), restored(mine), restored(claim), revision}, from: []xp.Ref{xp.RefTo(x)},
			want: want{
				Lists: append(labelled("xorders", "compositionrevisions", "orderclaims", "buckets"), "compositionrevisions "+all),
				There: []*unstructured.Unstructured{xr, mine, claim, revision},
				Held:  1,
			},
		},
		"Missing": {
			reason:  "A missing object is looked for once.",
			objects: []*unstructured.Unstructured{restored(xr), restored(claim), restored(revision)}, from: []xp.Ref{xp.RefTo(x)},
			want: want{
				Lists:   append(labelled("xorders", "compositionrevisions", "orderclaims", "buckets"), "buckets "+all),
				There:   []*unstructured.Unstructured{xr, claim, revision},
				Missing: []*unstructured.Unstructured{mine}, Held: 1,
			},
		},
		"Nested": {
			reason:  "A kind further down the tree is not listed again.",
			objects: []*unstructured.Unstructured{restored(parent), restored(child), restored(mine), restored(revision)}, from: []xp.Ref{xp.RefTo(x)},
			want: want{Lists: labelled("xorders", "compositionrevisions", "buckets"), There: []*unstructured.Unstructured{parent, child, mine, revision}, Held: 2},
		},
		"OthersOfTheKind": {
			reason: "One snapshot has all held objects of a kind and what they need.",
			objects: []*unstructured.Unstructured{
				restored(xr), restored(mine), restored(claim), restored(revision), restored(xptest.XR("y", xptest.Refs(xptest.MR("c")))), restored(xptest.MR("c")),
			},
			from: []xp.Ref{xp.RefTo(x)},
			want: want{Lists: labelled("xorders", "compositionrevisions", "orderclaims", "buckets"), There: []*unstructured.Unstructured{xptest.MR("c")}, Held: 2},
		},
		"FromTheClaim": {
			reason:  "A claim leads to its XR.",
			objects: []*unstructured.Unstructured{restored(xr), restored(mine), restored(claim), restored(revision)}, from: []xp.Ref{xp.RefTo(claim)},
			want: want{
				Lists: labelled("orderclaims", "xorders", "compositionrevisions", "buckets"),
				There: []*unstructured.Unstructured{xr, mine, claim, revision}, Held: 1,
			},
		},
		"NotServed": {
			reason: "A kind that is not served has no objects, and the rest is observed.",
			objects: []*unstructured.Unstructured{
				restored(xptest.XR("x", xptest.Refs(xptest.Object("gone.org/v1", "Gone", "", "g"), mine))), restored(mine), restored(revision),
			},
			from: []xp.Ref{xp.RefTo(x)},
			want: want{Lists: labelled("xorders", "compositionrevisions", "buckets"), There: []*unstructured.Unstructured{mine}, Held: 1},
		},
		"MalformedRef": {
			reason: "A malformed ref of a tenant must not stop the others.",
			objects: []*unstructured.Unstructured{
				restored(xptest.XR("x", xptest.Refs(xptest.Object("a/b/c", "K", "", "g"), xptest.Object("..", "K", "", "g"), mine))),
				restored(mine), restored(revision),
			},
			from: []xp.Ref{xp.RefTo(x)},
			want: want{Lists: labelled("xorders", "compositionrevisions", "buckets"), There: []*unstructured.Unstructured{mine}, Held: 1},
		},
		"NothingThere": {
			reason: "The plugin looks for an XR that did not come back among all XRs.", from: []xp.Ref{xp.RefTo(x)},
			want: want{Lists: append(labelled("xorders"), "xorders "+all), Missing: []*unstructured.Unstructured{xr}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(tc.objects...)
			w, err := s.cluster().Observe(context.Background(), adoption.Unverified, selector, tc.from)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want.Lists, s.requests("list")); diff != "" {
				t.Errorf("%s\nlists: -want, +asked:\n%s", tc.reason, diff)
			}
			for _, u := range tc.want.There {
				if w.Get(xp.RefTo(u)) == nil {
					t.Errorf("%s\n%s was not observed", tc.reason, xp.String(u))
				}
			}
			for _, u := range tc.want.Missing {
				if w.Get(xp.RefTo(u)) != nil {
					t.Errorf("%s\n%s was observed", tc.reason, xp.String(u))
				}
			}
			if held := w.Subjects(); len(held) != tc.want.Held {
				t.Errorf("%s\nheld: %v", tc.reason, held)
			}
			if other := append(s.requests("get"), s.requests("patch")...); len(other) > 0 {
				t.Errorf("an observation may only list: %v", other)
			}
		})
	}
}

// Only connection Secrets and composed Secrets are read.
func TestObserveReadsConnectionSecretsOnly(t *testing.T) {
	xr := restored(xptest.XR("x", xptest.NeverComposed(), xptest.PublishesTo("infra", "s")))
	s := newServer(xr, xptest.Secret("s", xptest.In("infra")))
	w, err := s.cluster().Observe(context.Background(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(xr)})
	if err != nil || w.Get(xp.RefTo(xptest.Secret("s", xptest.In("infra")))) == nil {
		t.Fatalf("a Secret from before the restore must be observed; got error %v", err)
	}
	var lists []string
	for _, a := range s.Actions() {
		if a, ok := a.(clienttesting.ListActionImpl); ok && a.GetResource() == secrets {
			lists = append(lists, a.GetListRestrictions().Labels.String()+" "+a.GetListRestrictions().Fields.String())
		}
	}
	if diff := cmp.Diff([]string{selector + " ", " type=connection.crossplane.io/v1alpha1", "crossplane.io/composite "}, lists); diff != "" {
		t.Errorf("-want, +listed:\n%s", diff)
	}
}

// A release needs no right to read Secrets.
func TestObserveWithoutSecrets(t *testing.T) {
	xr := xptest.With(restored(xptest.XR("x", xptest.NeverComposed(), xptest.PublishesTo("infra", "s"))), xptest.SeenPaused())
	s := newServer(xr, restored(xptest.Revision(xptest.RevisionName, xr)))
	s.failOn("list", "secrets", 1<<30, apierrors.NewForbidden(secrets.GroupResource(), "", errDown))
	w, err := s.cluster().Observe(context.Background(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(xr)})
	if err != nil {
		t.Fatal(err)
	}
	if plan := adoption.Next(w, xp.RefTo(xr)); plan.Patch == nil || !plan.Failed.IsZero() {
		t.Errorf("the XR can be unpaused; got %+v", plan)
	}
	s.failOn("list", "secrets", 1, errDown)
	if _, err := s.cluster().Observe(context.Background(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(xr)}); !errors.Is(err, errDown) {
		t.Errorf("a failed list must be an error; got error %v", err)
	}
}

func TestObserveReadsEveryPage(t *testing.T) {
	a, b := restored(xptest.XR("a", xptest.NeverComposed())), restored(xptest.XR("b", xptest.NeverComposed()))
	s := newServer()
	pages := []*unstructured.Unstructured{a, b}
	s.PrependReactor("list", "xorders", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*pages[0]}}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(xptest.LegacyVersion, xptest.LegacyKind+"List"))
		if pages = pages[1:]; len(pages) > 0 {
			list.SetContinue("more")
		}

		return true, list, nil
	})
	w, err := s.cluster().Observe(context.Background(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(b)})
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Subjects()) != 2 || len(s.requests("list")) != 2 {
		t.Errorf("held %v, requested %v", w.Subjects(), s.requests("list"))
	}
}

func TestObserveErrors(t *testing.T) {
	xr := restored(xptest.XR("x", xptest.Refs(xptest.MR("b"))))
	gr := buckets.GroupResource()
	cases := map[string]struct {
		reason string
		err    error
		want   error
	}{
		"Passing":  {reason: "A failed list does not mean that the object is absent.", err: errDown, want: errDown},
		"NotFound": {reason: "A CRD that went away after discovery has no objects.", err: apierrors.NewNotFound(gr, "")},
		"NoList": {
			reason: "A kind that can only be created, such as a TokenReview, must not stop the others.",
			err:    apierrors.NewMethodNotSupported(gr, "list"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(xr, restored(xptest.Revision(xptest.RevisionName, xr)))
			s.failOn("list", "buckets", 1, tc.err)
			w, err := s.cluster().Observe(context.Background(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(xr)})
			if !errors.Is(err, tc.want) {
				t.Fatalf("%s\ngot error %v", tc.reason, err)
			}
			if err == nil && len(adoption.Next(w, xp.RefTo(xr)).Waiting) == 0 {
				t.Errorf("%s\nthe plan waits for nothing", tc.reason)
			}
		})
	}

	s := newServer()
	s.discoveryErr = errDown
	if _, err := s.cluster().Observe(context.Background(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(xr)}); !errors.Is(err, errDown) {
		t.Errorf("a failed discovery must be an error; got %v", err)
	}
}

func TestObserveGivesItemsTheirKind(t *testing.T) {
	u := ofKind(&unstructured.Unstructured{Object: map[string]any{}}, schema.FromAPIVersionAndKind("example.org/v1", "K"))
	if u.GetKind() != "K" || u.GetAPIVersion() != "example.org/v1" {
		t.Errorf("some servers omit the kind of a list's items; got %v", u)
	}
	if u := ofKind(xptest.XR("x"), schema.GroupVersionKind{Kind: "Other"}); u.GetKind() != xptest.LegacyKind {
		t.Errorf("got %v", u)
	}
}

// A reference can have a version that is no longer served. The object is the same in each version.
func TestObserveFindsWhatIsNamedInAnotherVersion(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Reconciled())
	old := xptest.With(bucket, xptest.Field("cloud.example.org/v1alpha0", "apiVersion"))
	gone := xptest.Object("cloud.example.org/v1alpha0", "Gone", "", "g")
	for name, restore := range map[string]func(*unstructured.Unstructured) *unstructured.Unstructured{
		"Restored": restored,
		"Live":     func(u *unstructured.Unstructured) *unstructured.Unstructured { return u },
	} {
		t.Run(name, func(t *testing.T) {
			xr := restored(xptest.XR("x", xptest.Refs(old, gone)))
			if _, err := adoption.Put(xr, adoption.Hold{Restore: "velero/monday"}); err != nil {
				t.Fatal(err)
			}
			s := newServer(xptest.With(xr, xptest.SeenPaused()), restore(bucket), restored(xptest.Revision(xptest.RevisionName, xr)))
			w, err := s.cluster().Observe(context.Background(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(xr)})
			if err != nil || w.Get(xp.RefTo(old)) == nil {
				t.Fatalf("the object is not found; error %v", err)
			}
			plan := adoption.Next(w, xp.RefTo(xr))
			if diff := cmp.Diff([]string{
				"Gone g: its kind is not served, so no restore can bring it yet. Install the provider or XRD of Gone.cloud.example.org, then restore again [KindNotServed]",
				"Bucket b: the resourceRefs of XOrder x have it as cloud.example.org/v1alpha0, which is not served. Write cloud.example.org/v1alpha1 there, and into " +
					"compositionRevisionRef a revision of its Composition with that version: kubectl edit XOrder.example.org x [VersionNotServed]",
			}, reason.Strings(plan.Waiting)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if got := s.requests("get"); len(got) > 0 {
				t.Errorf("an observation may only list: %v", got)
			}
		})
	}
}
