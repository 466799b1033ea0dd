package live

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Crossplane v2 rejects a revision, so the restore lacks it and the converted Composition has a new
// one. An XR on Automatic waits for that revision and is adopted.
func TestAdoptFollowsAConvertedComposition(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled(), xptest.Annotated(xp.AnnotationResourceName, "bucket"))
	claim := xptest.Claim("o", xptest.OfXR(x))
	xr := xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(bucket))
	s := newServer(restored(claim), restored(xr), restored(bucket))
	simulateCrossplane(s)
	carry := func() adoption.Plan {
		t.Helper()
		plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
		if err != nil {
			t.Fatal(err)
		}

		return plans[xp.RefTo(xr).ID()]
	}
	if p := carry(); p.Done || !strings.Contains(strings.Join(reason.Strings(p.Waiting), "\n"), "convert pipeline-composition") || len(s.steps()) > 0 {
		t.Errorf("without a revision that it can run on the XR must wait; got %+v, and steps %v", p, s.steps())
	}
	told := len(s.requests("patch"))
	composition := xptest.Composition(xptest.CompositionName, x)
	s.put(revisions, xptest.Revision("orders-2", x, xptest.ControlledBy(composition),
		xptest.JSON(`{"spec":{"revision":2,"pipeline":[{"input":{"resources":[{"name":"bucket"}]}}]}}`)))
	if p := carry(); !p.Done || p.Adopted != 1 {
		t.Errorf("with a revision the adoption must go on; got %+v", p)
	}
	want := []string{"orderclaims team-a/o", "xorders /x", "xorders /x", "orderclaims team-a/o", "xorders /x"}
	if diff := cmp.Diff(want, s.requests("patch")[told:]); diff != "" {
		t.Errorf("the claim must follow first, since Crossplane writes its revision on the XR: -want, +requested:\n%s", diff)
	}
	if got := xp.ClaimFrom(s.get(t, orderclaims, xptest.Namespace, "o")).Revision(); got != "orders-2" {
		t.Errorf("the claim is on revision %q", got)
	}
	got := s.get(t, xorders, "", "x")
	if diff := cmp.Diff("", xp.CompositeFrom(got).Revision()); diff != "" {
		t.Errorf("Crossplane writes the newest revision itself: -want, +got:\n%s", diff)
	}
	if policy, set := (xp.Instance{Unstructured: got}).UpdatePolicy(); set {
		t.Errorf("the XR had no update policy of its own, and has %s", policy)
	}
	if _, held, _ := unstructured.NestedString(got.Object, "metadata", "annotations", adoption.AnnotationHold); held {
		t.Errorf("the XR still has its hold")
	}
}
