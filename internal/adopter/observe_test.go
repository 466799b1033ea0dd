package adopter

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// observe observes with a new process.
func observe(t *testing.T, s *apiserver.Server, of ...*unstructured.Unstructured) *adoption.Snapshot {
	t.Helper()
	w, err := snapshotOf(t.Context(), clusterOf(s), hold.Unverified, selector, apiserver.RefsOf(of))
	xptest.Must(t, err)

	return w
}

func TestObserve(t *testing.T) {
	type objects = []*unstructured.Unstructured
	x := xptest.XR("x")
	mine, revision := xptest.MR("b", xptest.ControlledBy(x)), xptest.Revision(xptest.RevisionName, x)
	claim := xptest.Claim("o", xptest.OfXR(x))
	xr := xptest.XR("x", xptest.Refs(mine), xptest.ClaimedBy(claim))
	child, parent := xptest.XR("child", xptest.ControlledBy(x)), xptest.XR("x", xptest.Refs(xptest.XR("child"), mine))
	gone, malformed := xptest.Object("gone.org/v1", "Gone", "", "g"), objects{xptest.Object("a/b/c", "K", "", "g"), xptest.Object("..", "K", "", "g"), mine}
	type args struct {
		reason  string
		objects objects
		from    *unstructured.Unstructured
		// lists are the resources that are listed with the selector, and whole is one that is listed
		// whole.
		lists, whole   string
		there, missing objects
		held           int
	}
	xptest.Each(t, map[string]args{
		"AllRestored": {
			reason:  "The restored objects are enough: one list for each kind.",
			objects: objects{apiserver.Restored(xr), apiserver.Restored(mine), apiserver.Restored(claim), apiserver.Restored(revision), xptest.MR("other"), xptest.XR("other")},
			lists:   "xorders compositionrevisions orderclaims buckets", there: objects{xr, mine, claim, revision}, missing: objects{xptest.MR("other"), xptest.XR("other")}, held: 1,
		},
		"RevisionWasThere": {
			reason:  "An object from before the restore lacks its label: only that kind is listed whole.",
			objects: objects{apiserver.Restored(xr), apiserver.Restored(mine), apiserver.Restored(claim), revision},
			lists:   "xorders compositionrevisions orderclaims buckets", whole: "compositionrevisions", there: objects{xr, mine, claim, revision}, held: 1,
		},
		"Missing": {
			reason: "A missing object is looked for once.", objects: objects{apiserver.Restored(xr), apiserver.Restored(claim), apiserver.Restored(revision)},
			lists: "xorders compositionrevisions orderclaims buckets", whole: "buckets", there: objects{xr, claim, revision}, missing: objects{mine}, held: 1,
		},
		"Nested": {
			reason: "A kind further down the tree is not listed again.", objects: objects{apiserver.Restored(parent), apiserver.Restored(child), apiserver.Restored(mine), apiserver.Restored(revision)},
			lists: "xorders compositionrevisions buckets", there: objects{parent, child, mine, revision}, held: 2,
		},
		"OthersOfTheKind": {
			reason:  "One snapshot has all held objects of a kind and what they need.",
			objects: objects{apiserver.Restored(xr), apiserver.Restored(mine), apiserver.Restored(claim), apiserver.Restored(revision), apiserver.Restored(xptest.XR("y", xptest.Refs(xptest.MR("c")))), apiserver.Restored(xptest.MR("c"))},
			lists:   "xorders compositionrevisions orderclaims buckets", there: objects{xptest.MR("c")}, held: 2,
		},
		"FromTheClaim": {
			reason: "A claim leads to its XR.", objects: objects{apiserver.Restored(xr), apiserver.Restored(mine), apiserver.Restored(claim), apiserver.Restored(revision)}, from: claim,
			lists: "orderclaims xorders compositionrevisions buckets", there: objects{xr, mine, claim, revision}, held: 1,
		},
		"NotServed": {
			reason:  "A kind that is not served has no objects, and the rest is observed.",
			objects: objects{apiserver.Restored(xptest.XR("x", xptest.Refs(gone, mine))), apiserver.Restored(mine), apiserver.Restored(revision)},
			lists:   "xorders compositionrevisions buckets", there: objects{mine}, held: 1,
		},
		"MalformedRef": {
			reason:  "A malformed ref of a tenant must not stop the others.",
			objects: objects{apiserver.Restored(xptest.XR("x", xptest.Refs(malformed...))), apiserver.Restored(mine), apiserver.Restored(revision)},
			lists:   "xorders compositionrevisions buckets", there: objects{mine}, held: 1,
		},
		"NothingThere": {reason: "The plugin looks for an XR that did not come back among all XRs.", lists: "xorders", whole: "xorders", missing: objects{xr}},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer(tc.objects...)
		from := tc.from
		if from == nil {
			from = xr
		}
		w := observe(t, s, from)
		var lists []string
		for r := range strings.FieldsSeq(tc.lists) {
			lists = append(lists, r+" "+selector)
		}
		if tc.whole != "" {
			lists = append(lists, tc.whole+" ")
		}
		xptest.Same(t, lists, s.Requests("list"), tc.reason)
		for _, u := range append(tc.there, tc.missing...) {
			if there := w.Get(xp.RefTo(u)) != nil; there == slices.Contains(tc.missing, u) {
				t.Errorf("%s\n%s was observed: %t", tc.reason, xp.String(u), there)
			}
		}
		if other := append(s.Requests("get"), s.Requests("patch")...); len(other) > 0 || len(w.Subjects()) != tc.held {
			t.Errorf("%s\nheld: %v; an observation may only list: %v", tc.reason, w.Subjects(), other)
		}
	})
}

// An API server that fails for a while has not said that nothing is held.
func TestObserveOutlastsFailures(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		mr := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")))
		xr := apiserver.Restored(xptest.XR("x", xptest.Refs(mr)))
		s := apiserver.NewServer(xr, mr, apiserver.Restored(xptest.Revision(xptest.RevisionName, xr)))
		down := apierrors.NewServiceUnavailable("starting")
		s.FailOn("*", "*", 2, down)
		if w := observe(t, s, xr); w.Get(xp.RefTo(xr)) == nil || w.Get(xp.RefTo(mr)) == nil {
			t.Error("a poll that observes nothing would find no holds")
		}
		s.FailOn("*", "*", 1<<20, down)
		if _, err := snapshotOf(t.Context(), clusterOf(s), hold.Unverified, selector, apiserver.RefsOf([]*unstructured.Unstructured{xr})); !errors.Is(err, down) {
			t.Errorf("a server that is down is an error; got %v", err)
		}
	})
}

// Only connection Secrets and composed Secrets are read. A release needs no right to read them.
func TestObserveReadsConnectionSecretsOnly(t *testing.T) {
	xr := apiserver.Restored(xptest.XR("x", xptest.NeverComposed(), xptest.PublishesTo("infra", "s"), xptest.SeenPaused()))
	secret := xptest.Secret("s", xptest.In("infra"))
	s := apiserver.NewServer(xr, secret, apiserver.Restored(xptest.Revision(xptest.RevisionName, xr)))
	if w := observe(t, s, xr); w.Get(xp.RefTo(secret)) == nil {
		t.Error("a Secret from before the restore must be observed")
	}
	var lists []string
	for _, a := range s.Actions() {
		if a, ok := a.(clienttesting.ListActionImpl); ok && a.GetResource() == apiserver.Secrets {
			lists = append(lists, a.GetListRestrictions().Labels.String()+" "+a.GetListRestrictions().Fields.String())
		}
	}
	xptest.Same(t, []string{selector + " ", " type=connection.crossplane.io/v1alpha1", "crossplane.io/composite "}, lists, "no other Secrets may be listed")
	apiserver.Forbid(s, "secrets")
	if plan := adoption.Next(observe(t, s, xr), xp.RefTo(xr)); plan.Patch == nil || !plan.Failed.IsZero() {
		t.Errorf("the XR can be unpaused; got %+v", plan)
	}
}

// A provider's kind can have the name Secret too. It has no type to select by.
func TestObserveListsSecretsOfOtherGroups(t *testing.T) {
	mr := xptest.Object(apiserver.OtherSecrets.GroupVersion().String(), "Secret", "", "s")
	xr := apiserver.Restored(xptest.XR("x", xptest.Refs(mr)))
	s := apiserver.NewServer(xr, apiserver.Restored(xptest.Revision(xptest.RevisionName, xr)), mr).Serve(apiserver.OtherSecrets.GroupVersion().String(), metav1.APIResource{Name: "secrets", Kind: "Secret"})
	s.PrependReactor("list", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		l, _ := action.(clienttesting.ListActionImpl)

		return action.GetResource() == apiserver.OtherSecrets && !l.GetListRestrictions().Fields.Empty(), nil, apierrors.NewBadRequest("field label not supported: type") // As for every custom resource.
	})
	if observe(t, s, xr).Get(xp.RefTo(mr)) == nil {
		t.Error("an MR from before the restore must be observed")
	}
}

// A namespaced object refers to its own namespace, so no other is read for it.
func TestObserveListsInNamespaces(t *testing.T) {
	type args struct {
		reason string
		of     []string
		want   []string
	}
	xptest.Each(t, map[string]args{
		"One":  {reason: "Only this namespace has composed objects.", of: []string{"team-a"}, want: []string{"team-a"}},
		"Two":  {reason: "The plugin lists each of two namespaces separately.", of: []string{"team-a", "team-b"}, want: []string{"team-a", "team-b"}},
		"Many": {reason: "The objects of many tenants justify a list of all namespaces.", of: []string{"a", "b", "c", "d", "e"}, want: []string{""}},
	}, func(t *testing.T, tc args) {
		var xrs []*unstructured.Unstructured
		for _, namespace := range tc.of {
			xrs = append(xrs, apiserver.Restored(xptest.XR("of-"+namespace, xptest.Refs(xptest.Object("v1", "ConfigMap", namespace, "c")))))
		}
		s := apiserver.NewServer(append(xrs, apiserver.Restored(xptest.Revision(xptest.RevisionName, xrs[0])))...)
		observe(t, s, xrs[0])
		var lists []string
		for _, a := range s.Actions() {
			if a.GetVerb() == "list" && a.GetResource() == apiserver.ConfigMaps {
				lists = append(lists, a.GetNamespace())
			}
		}
		slices.Sort(lists)
		if len(lists) != 2*len(tc.want) || !slices.Equal(slices.Compact(lists), tc.want) {
			t.Errorf("%s\nwant two lists for each: the restored objects, and then all; got %q", tc.reason, lists)
		}
	})
}

// A reference can have a version that is no longer served. The object is the same in each version.
func TestObserveFindsWhatIsNamedInAnotherVersion(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Reconciled())
	old := xptest.With(bucket, xptest.Field("cloud.example.org/v1alpha0", "apiVersion"))
	xr := apiserver.Held(xptest.XR("x", xptest.Refs(old, xptest.Object("cloud.example.org/v1alpha0", "Gone", "", "g"))), hold.Hold{})
	for _, u := range []*unstructured.Unstructured{bucket, apiserver.Restored(bucket)} {
		s := apiserver.NewServer(xptest.With(xr, xptest.SeenPaused()), u, apiserver.Restored(xptest.Revision(xptest.RevisionName, xr)))
		w := observe(t, s, xr)
		var codes []reason.Code
		for _, m := range adoption.Next(w, xp.RefTo(xr)).Waiting {
			codes = append(codes, m.Code)
		}
		if diff := cmp.Diff([]reason.Code{reason.KindNotServed, reason.VersionNotServed}, codes); diff != "" || w.Get(xp.RefTo(old)) == nil || len(s.Requests("get")) > 0 {
			t.Errorf("the object must be found by lists: -want, +got:\n%s", diff)
		}
	}
}

// A composed kind that can't be read blocks only the XRs that compose it. A kind that all plans
// need blocks all. An object that can't be converted is not missing, and blocks no other XR.
func TestObserveWhatCannotBeRead(t *testing.T) {
	c := xptest.Object("v1", "ConfigMap", "infra", "c", xptest.ControlledBy(xptest.XR("y")))
	theirs := apiserver.Restored(xptest.XR("y", xptest.Refs(c), xptest.SeenPaused()))
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")))
	mine := apiserver.Restored(xptest.XR("x", xptest.Refs(bucket), xptest.SeenPaused()))
	publisher := apiserver.Restored(xptest.MR("b", xptest.PublishesTo("infra", "s")))
	claimed := apiserver.Restored(xptest.XR("x", xptest.ClaimedBy(xptest.Claim("o", xptest.OfXR(mine))), xptest.SeenPaused()))
	down, forbidden := apierrors.NewServiceUnavailable("its server is down"), apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("not for you"))
	type args struct {
		reason string
		object *unstructured.Unstructured
		// fails is the resource that can't be listed; with whole, only its lists without a selector
		// fail.
		fails string
		whole bool
		with  error
		// asked is requested too, and unread is set if the other XR can't be read either.
		asked  *unstructured.Unstructured
		unread bool
		// wants is the object that the XR waits for; if it is empty, all wait.
		wants string
	}
	xptest.Each(t, map[string]args{
		"Down":        {reason: "A tenant's XR can list any kind.", object: mine, fails: "buckets", with: down, wants: "Bucket b"},
		"Forbidden":   {reason: "The plugin may lack the right to read a kind.", object: mine, fails: "buckets", with: forbidden, wants: "Bucket b"},
		"DownWhole":   {reason: "The plugin can't read an object from before the restore.", object: mine, fails: "buckets", whole: true, with: down, wants: "Bucket b"},
		"Dropped":     {reason: "An object that may exist must not be given up.", object: xptest.With(mine, xptest.Refs()), fails: "buckets", with: down, wants: "Bucket b"},
		"NotAnXR":     {reason: "A claim can name any object.", object: apiserver.Restored(xptest.Claim("o", xptest.OfXR(bucket))), fails: "buckets", with: down, wants: "Bucket b"},
		"Hangs":       {reason: "Perhaps only the server of this kind does not answer.", object: mine, fails: "buckets", with: context.DeadlineExceeded, wants: "Bucket b"},
		"Converted":   {reason: "The adoption of an MR waits for the webhook.", object: publisher, fails: "buckets", with: apiserver.ErrConversion, wants: "Bucket b"},
		"ConvertedXR": {reason: "An XRD can have a webhook.", object: claimed, fails: "xorders", with: apiserver.ErrConversion, unread: true, wants: "XOrder x"},
		"OfClaim":     {reason: "An XR waits if its claim can't be read.", object: claimed, fails: "orderclaims", with: apiserver.ErrConversion, wants: "OrderClaim team-a/o"},
		"Unanswered":  {reason: "A broken connection does not prove that one kind is down.", object: mine, fails: "buckets", with: apiserver.ErrDown},
		"Subject":     {reason: "The user requested this object, so the failure is an error.", object: mine, fails: "buckets", with: down, asked: bucket},
		"XRs":         {reason: "Without XRs there is nothing to adopt.", object: mine, fails: "xorders", with: down},
		"Claims":      {reason: "The plan depends on whether an XR has a claim.", object: claimed, fails: "orderclaims", with: forbidden},
		"Revisions":   {reason: "All XRs depend on revisions.", object: mine, fails: "compositionrevisions", with: forbidden},
		"Secrets":     {reason: "Connection Secrets concern all objects.", object: apiserver.Restored(xptest.XR("x", xptest.NeverComposed(), xptest.PublishesTo("infra", "s"))), fails: "secrets", with: down},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer(theirs, apiserver.Restored(c), tc.object, apiserver.Restored(xptest.Revision(xptest.RevisionName, theirs)))
		s.RefuseLists(tc.fails, tc.whole, tc.with)
		objects := []*unstructured.Unstructured{theirs, tc.object}
		if tc.asked != nil {
			objects = append(objects, tc.asked)
		}
		w, err := snapshotOf(t.Context(), clusterOf(s), hold.Unverified, selector, apiserver.RefsOf(objects))
		if tc.wants == "" {
			if !errors.Is(err, tc.with) {
				t.Errorf("%s\ngot error %v", tc.reason, err)
			}

			return
		}
		if err != nil {
			t.Fatalf("%s\n%v", tc.reason, err)
		}
		if plan := adoption.Next(w, xp.RefTo(theirs)); plan.Patch == nil && !tc.unread {
			t.Errorf("%s\nthe other XR waits for %v", tc.reason, plan.Waiting)
		}
		plan := adoption.Next(w, xp.RefTo(tc.object))
		causes := strings.Split(tc.with.Error(), ": ")
		if plan.Patch != nil || plan.Done || !plan.Failed.IsZero() || plan.Adopted > 0 || !strings.Contains(waiting(plan), tc.wants+": it can't be read") ||
			!strings.Contains(waiting(plan), causes[len(causes)-1]) {
			t.Errorf("%s\ngot %+v, want a plan that waits for %s because of %v", tc.reason, plan, tc.wants, tc.with)
		}
	})
	for name, err := range map[string]error{
		"NotFound": apierrors.NewNotFound(apiserver.Buckets.GroupResource(), ""), // A CRD that went away after discovery has no objects.
		"NoList":   apierrors.NewMethodNotSupported(apiserver.Buckets.GroupResource(), "list"),
	} {
		s := apiserver.NewServer(mine, apiserver.Restored(xptest.Revision(xptest.RevisionName, mine)))
		s.FailOn("list", "buckets", 1, err)
		if plan := adoption.Next(observe(t, s, mine), xp.RefTo(mine)); plan.Patch != nil || len(plan.Waiting) == 0 {
			t.Errorf("%s: the plan waits for nothing: %+v", name, plan)
		}
	}
}

// A tenant's XR can list as many kinds as fit into etcd, and all adoptions wait for each request.
func TestObserveDiscoversOnce(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("y")))
	theirs := apiserver.Restored(xptest.XR("y", xptest.Refs(bucket)))
	down := schema.GroupVersion{Group: "down.example.org", Version: "v1"}
	requests := func(t *testing.T, made int, of func(*apiserver.Server) *cluster.Cluster) int {
		t.Helper()
		var listed []*unstructured.Unstructured
		for i := range made {
			n := strconv.Itoa(i)
			listed = append(listed, xptest.Object("group"+n+".org/v1", "K", "", "a"), xptest.Object(xptest.ManagedVersion, "K"+n, "", "a"),
				xptest.Object("cloud.example.org/v"+n, "Bucket", "", "a"), xptest.Object(down.String(), "K"+n, "", "a"))
		}
		mine := apiserver.Restored(xptest.XR("x", xptest.Refs(listed...)))
		s := apiserver.NewServer(theirs, mine, apiserver.Restored(bucket), apiserver.Restored(xptest.Revision(xptest.RevisionName, mine))).Serve(down.String())
		s.Undiscoverable = map[string]error{down.String(): apierrors.NewServiceUnavailable("its server is down")}
		w, err := snapshotOf(t.Context(), of(s), hold.Unverified, selector, []xp.Ref{xp.RefTo(theirs), xp.RefTo(mine)})
		xptest.Must(t, err)
		// The fourth list is of all Buckets: refs with unknown versions are looked for in the
		// served one.
		if len(s.Requests("list")) != 4 || w.Get(xp.RefTo(bucket)) == nil {
			t.Errorf("the lists were %v", s.Requests("list"))
		}
		if waiting := adoption.Next(w, xp.RefTo(mine)).Waiting; len(waiting) < len(listed) {
			t.Errorf("the plan must wait for all %d missing objects, not for %d", len(listed), len(waiting))
		}

		return len(s.KindReads) + s.GroupReads
	}
	for name, of := range map[string]func(*apiserver.Server) *cluster.Cluster{
		"InParts": clusterOf,
		"AtOnce": func(s *apiserver.Server) *cluster.Cluster { // The server returns all groups at once, except those that are down.
			g := &apiserver.BulkServer{Server: s, Failing: map[schema.GroupVersion]error{down: apiserver.ErrDown}}

			return cluster.New(g, g)
		},
	} {
		xptest.Bubble(t, func(t *testing.T) {
			if few, many := requests(t, 2, of), requests(t, 60, of); few != many {
				t.Errorf("%s: %d requests for few kinds and %d for many", name, few, many)
			}
		})
	}
}

func TestObserveFindsKindsThatHaveCome(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")))
	xr := apiserver.Restored(xptest.XR("x", xptest.Refs(bucket)))
	s := apiserver.NewServer(xr, apiserver.Restored(bucket), apiserver.Restored(xptest.Revision(xptest.RevisionName, xr)))
	served := s.Kinds[xptest.ManagedVersion]
	delete(s.Kinds, xptest.ManagedVersion)
	c := clusterOf(s)
	for _, there := range []bool{false, true} {
		w, err := snapshotOf(t.Context(), c, hold.Unverified, selector, []xp.Ref{xp.RefTo(xr)})
		if err != nil || (w.Get(xp.RefTo(bucket)) != nil) != there {
			t.Errorf("the provider is installed: %v; got %v, %v", there, w.Get(xp.RefTo(bucket)), err)
		}
		s.Kinds[xptest.ManagedVersion] = served
	}
}
