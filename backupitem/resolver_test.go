package backupitem

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Each kind costs one list for all XRs. A backup of a thousand XRs with a hundred MRs each would
// otherwise make a hundred thousand requests.
func TestComposedResourcesCostOneList(t *testing.T) {
	const xrs, mrs = 3, 50
	objects, _ := platform()
	var items []*unstructured.Unstructured
	for x := range xrs {
		claim := xptest.Claim(fmt.Sprint("o", x))
		xr := xptest.XR(fmt.Sprint("x", x))
		var composed []*unstructured.Unstructured
		for m := range mrs {
			name := fmt.Sprint("b", x, "-", m)
			mr := xptest.MR(name, xptest.ControlledBy(xr), xptest.Labelled(xp.LabelClaimNamespace, "team-a"), xptest.PublishesTo("infra", name))
			composed = append(composed, mr, xptest.Secret(name, xptest.In("infra"), xptest.ControlledBy(mr)))
			items = append(items, mr)
		}
		var refs []*unstructured.Unstructured
		for i := 0; i < len(composed); i += 2 {
			refs = append(refs, composed[i])
		}
		claim = xptest.With(claim, xptest.OfXR(xr))
		xr = xptest.With(xr, xptest.ClaimedBy(claim), xptest.Refs(refs...))
		items = append(items, claim, xr)
		objects = append(objects, append(composed, claim, xr)...)
	}
	c := clusterOf(objects...)
	s := newSession(t, c)
	followed := 0
	for _, item := range items {
		s.related(item)
		followed += len(s.take(item, &velerov1.Backup{}).Items)
	}
	// An MR requests its Secret, a claim its XR, and a few XRs the XRD, the Composition and the
	// revision. The rest is not requested.
	if want := xrs*(mrs+1) + maxRequests*3; followed != want {
		t.Errorf("the plugin followed %d refs, want %d", followed, want)
	}
	c.checkCost(t)
	if diff := cmp.Diff([]string{"Bucket  crossplane.io/claim-namespace=team-a", "Secret infra type=connection.crossplane.io/v1alpha1", "XOrder  "}, c.lists); diff != "" {
		t.Errorf("-want, +listed:\n%s", diff)
	}
	for id := range c.asked {
		if id.Kind == xptest.ManagedKind || id.Kind == "Secret" {
			t.Errorf("the plugin read %v, though the list has it", id)
		}
	}
}

// An object that lost its label is not in the list, and is read singly.
func TestComposedResourcesOutsideOfTheList(t *testing.T) {
	x := xptest.XR("x", xptest.NeverComposed(), xptest.Without("spec", "compositionRef"))
	unlabelled := xptest.MR("b", xptest.ControlledBy(x), xptest.Without("metadata", "labels"))
	c := clusterOf(unlabelled, xptest.XRD("xorders.example.org"))
	got := backUp(t, c, xptest.With(x, xptest.Refs(unlabelled)), &velerov1.Backup{})
	if len(got.Items) != 2 || got.Items[1].Name != "b" || len(got.Left) > 0 {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"Bucket  crossplane.io/composite"}, c.lists); diff != "" || c.asked[xp.RefTo(unlabelled).ID()] != 1 {
		t.Errorf("asked %v, -want, +listed:\n%s", c.asked, diff)
	}
	c = clusterOf(unlabelled)
	c.down = true
	got = backUp(t, c, xptest.With(x, xptest.Refs(unlabelled)), &velerov1.Backup{})
	if len(got.Dangling) > 0 || !slices.Contains(got.Left, unread("Bucket b")) {
		t.Errorf("a failed list must not count as one without the resource; got %v, %q", got.Dangling, got.Left)
	}
}

// A nested XR's resources are found in the list, which keeps only what links need.
func TestTrimmed(t *testing.T) {
	mr := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.PublishesTo("infra", "s"), xptest.Reconciled(),
		xptest.JSON(`{"metadata":{"managedFields":[{"manager":"m"}]}}`))
	want := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Without("spec"), xptest.PublishesTo("infra", "s"),
		xptest.JSON(`{"status":{"conditions":[{"type":"Synced","status":"True"}]}}`))
	if diff := cmp.Diff(want, trim(mr)); diff != "" {
		t.Errorf("An MR: -want, +got:\n%s", diff)
	}
	xr := xptest.XR("x", xptest.Refs(mr), xptest.JSON(`{"status":{"own":"dropped","conditions":[{"type":"Ready","status":"False","message":"m"},{"type":"Other"}]}}`))
	want = xptest.XR("x", xptest.Refs(mr), xptest.JSON(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`))
	if diff := cmp.Diff(want, trim(xr)); diff != "" {
		t.Errorf("An XR: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(xptest.Secret("s", xptest.Without("type")), trim(xptest.Secret("s", xptest.JSON(`{"data":{"password":"x"}}`)))); diff != "" {
		t.Errorf("A Secret: -want, +got:\n%s", diff)
	}
}

// The cached copy must not change what Velero stores.
func TestRemember(t *testing.T) {
	xr := xptest.XR("x", xptest.JSON(`{"metadata":{"managedFields":[{"manager":"m"}]},"status":{"own":"dropped","conditions":[{"type":"Ready","status":"True"}]}}`))
	stored := xr.DeepCopy()
	l := NewResolver(clusterOf())
	l.remember(xr)
	if diff := cmp.Diff(stored, xr); diff != "" {
		t.Errorf("the backup's copy: -want, +got:\n%s", diff)
	}
	got, err := l.get(t.Context(), xp.RefTo(xr))
	if diff := cmp.Diff(xptest.XR("x", xptest.JSON(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)), got); err != nil || diff != "" {
		t.Errorf("the cache's copy: %v, -want, +got:\n%s", err, diff)
	}
}
