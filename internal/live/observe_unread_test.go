package live

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A composed kind that can't be read blocks only the XRs that compose it. A kind that all plans
// need blocks all.
func TestObserveWhatCannotBeRead(t *testing.T) {
	c := xptest.Object("v1", "ConfigMap", "infra", "c", xptest.ControlledBy(xptest.XR("y")))
	theirs := xptest.With(restored(xptest.XR("y", xptest.Refs(c))), xptest.SeenPaused())
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")))
	mine := xptest.With(restored(xptest.XR("x", xptest.Refs(bucket))), xptest.SeenPaused())
	dropped := xptest.With(mine, xptest.Refs())
	strange := restored(xptest.Claim("o", xptest.OfXR(bucket)))
	claim := xptest.Claim("o", xptest.OfXR(mine))
	claimed := restored(xptest.XR("x", xptest.ClaimedBy(claim)))
	down := apierrors.NewServiceUnavailable("its server is down")
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("not for you"))
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		// fails is the resource that can't be listed; with whole, only its lists without a selector
		// fail.
		fails string
		whole bool
		with  error
		refs  []*unstructured.Unstructured
		// want is what the XR waits for; if it is empty, all wait.
		want string
	}{
		"Down":      {reason: "A tenant's XR can list any kind.", object: mine, fails: "buckets", with: down, want: "its server is down"},
		"Forbidden": {reason: "The plugin may lack the right to read a kind.", object: mine, fails: "buckets", with: forbidden("buckets"), want: "not for you"},
		"DownWhole": {reason: "The plugin can't read an object from before the restore.", object: mine, fails: "buckets", whole: true, with: down, want: "its server is down"},
		"Dropped":   {reason: "An object that may exist must not be given up.", object: dropped, fails: "buckets", with: down, want: "its server is down"},
		"NotAnXR":   {reason: "A claim can name any object.", object: strange, fails: "buckets", with: down, want: "its server is down"},
		"Hangs":     {reason: "Perhaps only the server of this kind does not answer.", object: mine, fails: "buckets", with: context.DeadlineExceeded, want: "deadline exceeded"},
		"Unanswered": {
			reason: "A broken connection does not prove that one kind is down.", object: mine, fails: "buckets", with: errDown,
		},
		"Subject":   {reason: "The user requested this object, so the failure is an error.", object: mine, fails: "buckets", with: down, refs: []*unstructured.Unstructured{bucket}},
		"XRs":       {reason: "Without XRs there is nothing to adopt.", object: mine, fails: "xorders", with: down},
		"Claims":    {reason: "The plan depends on whether an XR has a claim.", object: claimed, fails: "orderclaims", with: forbidden("orderclaims")},
		"Revisions": {reason: "All XRs depend on revisions.", object: mine, fails: "compositionrevisions", with: forbidden("compositionrevisions")},
		"Secrets": {
			reason: "Connection Secrets concern all objects.", fails: "secrets", with: down,
			object: restored(xptest.XR("x", xptest.NeverComposed(), xptest.PublishesTo("infra", "s"))),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(theirs, restored(c), tc.object, restored(xptest.Revision(xptest.RevisionName, theirs)))
			s.refuseLists(tc.fails, tc.whole, tc.with)
			cluster := s.cluster()
			cluster.backoff = wait.Backoff{Steps: 1}
			refs := []xp.Ref{xp.RefTo(theirs), xp.RefTo(tc.object)}
			for _, u := range tc.refs {
				refs = append(refs, xp.RefTo(u))
			}
			w, err := cluster.Observe(t.Context(), adoption.Unverified, selector, refs)
			if tc.want == "" {
				if !errors.Is(err, tc.with) {
					t.Errorf("%s\ngot error %v", tc.reason, err)
				}

				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if plan := adoption.Next(w, xp.RefTo(theirs)); plan.Patch == nil {
				t.Errorf("%s\nthe other XR waits for %v", tc.reason, plan.Waiting)
			}
			plan := adoption.Next(w, xp.RefTo(tc.object))
			if plan.Patch != nil || plan.Done || !plan.Failed.IsZero() || len(plan.Waiting) != 1 ||
				!strings.Contains(plan.Waiting[0].String(), "Bucket b: it can't be read") || !strings.Contains(plan.Waiting[0].String(), tc.want) {
				t.Errorf("%s\ngot %+v, want a plan that waits for Bucket b because of %q", tc.reason, plan, tc.want)
			}
		})
	}
}

// A tenant's XR can list as many kinds as fit into etcd, and all adoptions wait for each request.
func TestObserveDiscoversOnce(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("y")))
	theirs := restored(xptest.XR("y", xptest.Refs(bucket)))
	down := schema.GroupVersion{Group: "down.example.org", Version: "v1"}
	observe := func(t *testing.T, made int, of func(*server) *Cluster) int {
		t.Helper()
		var listed []*unstructured.Unstructured
		for i := range made {
			n := strconv.Itoa(i)
			listed = append(listed, xptest.Object("group"+n+".org/v1", "K", "", "a"), xptest.Object(xptest.ManagedVersion, "K"+n, "", "a"),
				xptest.Object("cloud.example.org/v"+n, "Bucket", "", "a"), xptest.Object(down.String(), "K"+n, "", "a"))
		}
		mine := restored(xptest.XR("x", xptest.Refs(listed...)))
		s := newServer(theirs, mine, restored(bucket), restored(xptest.Revision(xptest.RevisionName, mine)))
		s.kinds[down.String()] = nil
		s.undiscoverable = map[string]error{down.String(): apierrors.NewServiceUnavailable("its server is down")}
		c := of(s)
		c.backoff = wait.Backoff{Steps: 1}
		w, err := c.Observe(t.Context(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(theirs), xp.RefTo(mine)})
		if err != nil {
			t.Fatal(err)
		}
		// The fourth list is of all Buckets: refs with unknown versions are looked for in the
		// served one.
		if len(s.requests("list")) != 4 || w.Get(xp.RefTo(bucket)) == nil {
			t.Errorf("the lists were %v", s.requests("list"))
		}
		if waiting := adoption.Next(w, xp.RefTo(mine)).Waiting; len(waiting) < len(listed) {
			t.Errorf("the plan must wait for all %d missing objects, not for %d", len(listed), len(waiting))
		}

		return len(s.kindReads) + s.groupReads
	}
	cases := map[string]struct {
		reason string
		of     func(*server) *Cluster
	}{
		"AtOnce": {"The server returns all groups at once, except those that are down.", func(s *server) *Cluster {
			g := &bulkServer{server: s, failing: map[schema.GroupVersion]error{down: errDown}}

			return NewCluster(g, g)
		}},
		"InParts": {"The server returns each group separately.", (*server).cluster},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			few, many := observe(t, 2, tc.of), observe(t, 60, tc.of)
			if few != many {
				t.Errorf("%s\n%d requests for few kinds and %d for many", tc.reason, few, many)
			}
		})
	}
}

func TestObserveFindsKindsThatHaveCome(t *testing.T) {
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")))
	xr := restored(xptest.XR("x", xptest.Refs(bucket)))
	s := newServer(xr, restored(bucket), restored(xptest.Revision(xptest.RevisionName, xr)))
	served := s.kinds[xptest.ManagedVersion]
	c := s.cluster()
	for _, there := range []bool{false, true} {
		delete(s.kinds, xptest.ManagedVersion)
		if there {
			s.kinds[xptest.ManagedVersion] = served
		}
		w, err := c.Observe(t.Context(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(xr)})
		if err != nil || (w.Get(xp.RefTo(bucket)) != nil) != there {
			t.Errorf("the provider is installed: %v; got %v, %v", there, w.Get(xp.RefTo(bucket)), err)
		}
	}
}
