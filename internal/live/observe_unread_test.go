package live

import (
	"errors"
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

// What cannot be read and is composed by one only keeps that one waiting; whatever all are planned by keeps all.
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
		// fails is the resource that can't be listed, all of it or, with whole, what no restore has made.
		fails string
		whole bool
		with  error
		refs  []*unstructured.Unstructured
		// want is what is waited for; if there is none, all wait.
		want string
	}{
		"Down":      {reason: "A tenant can list any kind.", object: mine, fails: "buckets", with: down, want: "its server is down"},
		"Forbidden": {reason: "Also one that nobody has given the right to read.", object: mine, fails: "buckets", with: forbidden("buckets"), want: "not for you"},
		"DownWhole": {reason: "What was there before the restore can't be read.", object: mine, fails: "buckets", whole: true, with: down, want: "its server is down"},
		"Dropped":   {reason: "What may be there is not given up.", object: dropped, fails: "buckets", with: down, want: "its server is down"},
		"NotAnXR":   {reason: "A claim can name anything.", object: strange, fails: "buckets", with: down, want: "its server is down"},
		"Unanswered": {
			reason: "A connection that breaks says nothing of a kind.", object: mine, fails: "buckets", with: errDown,
		},
		"Subject":   {reason: "What is asked about is nothing that somebody else has named.", object: mine, fails: "buckets", with: down, refs: []*unstructured.Unstructured{bucket}},
		"XRs":       {reason: "Without XRs there is nothing to plan for.", object: mine, fails: "xorders", with: down},
		"Claims":    {reason: "Whether an XR has a claim decides on it.", object: claimed, fails: "orderclaims", with: forbidden("orderclaims")},
		"Revisions": {reason: "All XRs run on revisions.", object: mine, fails: "compositionrevisions", with: forbidden("compositionrevisions")},
		"Secrets": {
			reason: "Connection secrets are everybody's.", fails: "secrets", with: down,
			object: restored(xptest.XR("x", xptest.NeverComposed(), xptest.PublishesTo("infra", "s"))),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(theirs, restored(c), tc.object, restored(xptest.Revision(xptest.RevisionName, theirs)))
			s.refuseLists(tc.fails, tc.whole, tc.with)
			cluster := s.cluster()
			cluster.pauses = wait.Backoff{Steps: 1}
			refs := []xp.Ref{xp.RefTo(theirs), xp.RefTo(tc.object)}
			for _, u := range tc.refs {
				refs = append(refs, xp.RefTo(u))
			}
			w, err := cluster.Observe(t.Context(), selector, refs)
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
				t.Errorf("%s\nthe other waits for %v", tc.reason, plan.Waiting)
			}
			plan := adoption.Next(w, xp.RefTo(tc.object))
			if plan.Patch != nil || plan.Done || plan.Failed != "" || len(plan.Waiting) != 1 ||
				!strings.Contains(plan.Waiting[0], "Bucket b: it can't be read") || !strings.Contains(plan.Waiting[0], tc.want) {
				t.Errorf("%s\ngot %+v, want that it waits for Bucket b because of %q", tc.reason, plan, tc.want)
			}
		})
	}
}
