package restoreitem

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// claimKinds are the kinds of package xptest, with that of claims.
type claimKinds struct{ err error }

func (claimKinds) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return served(gvk)
}

func (c claimKinds) IsClaimKind(gvk schema.GroupVersionKind) (bool, error) {
	return gvk.Kind == xptest.ClaimKind, c.err
}

// A provider that reconciles before all is restored creates what it does not find, and Velero
// leaves that as it is.
func TestDryRunOfEarlyItems(t *testing.T) {
	s := newShop()
	ofClaim := xptest.Labelled(xp.LabelClaimNamespace, xptest.Namespace)
	s.mr = xptest.With(s.mr, ofClaim)
	free := xptest.MR("free", xptest.ControlledBy(s.xr), ofClaim)
	claim := xptest.With(s.claim, xptest.PublishesTo(xptest.Namespace, "c"), xptest.RestoreFirst("xorders.example.org//x", "buckets.cloud.example.org//b", "buckets.cloud.example.org//free"))
	loose := xptest.MR("loose")
	cases := map[string]struct {
		reason string
		backup []*unstructured.Unstructured
		spec   velerov1.RestoreSpec
	}{
		"Claim": {
			reason: "The secret of a claim does not bring the claim's tree.", backup: []*unstructured.Unstructured{claim, xptest.Secret("c", xptest.ControlledBy(claim))},
		},
		"Namespace": {
			reason: "In a restore of its namespace the secret does not bring the claim's cluster-scoped tree.",
			backup: []*unstructured.Unstructured{claim, xptest.Secret("c", xptest.ControlledBy(claim))}, spec: teamA(),
		},
		"Unlisted": {
			reason: "In a backup without lists the XR brings its resources, so an MR's secret does too.",
			backup: []*unstructured.Unstructured{
				xptest.With(s.claim, xptest.Without("metadata", xp.FieldRestoreFirst)), xptest.With(s.xr, xptest.Without("metadata", xp.FieldRestoreFirst), xptest.Refs(s.mr, free)),
			},
			spec: teamA(),
		},
		"Labels": {
			reason: "In a restore by labels an MR's secret brings the tree too.", backup: []*unstructured.Unstructured{
				xptest.XR("x", xptest.Refs(s.mr, free), xptest.PublishesTo(xptest.Namespace, "x")), xptest.Secret("x", xptest.ControlledBy(xptest.XR("x"))),
			},
			spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}},
		},
		"NotAnyMore": {
			reason: "An MR can control a secret to which it no longer publishes.",
			backup: []*unstructured.Unstructured{loose, xptest.Secret("old", xptest.ControlledBy(loose))},
		},
		"ConfigMap": {
			reason: "A composed resource asks for its owners, whatever their kinds.",
			backup: []*unstructured.Unstructured{
				loose, xptest.Object("v1", "ConfigMap", "team-a", "a", xptest.ControlledBy(s.xr), xptest.OwnedBy(metav1.OwnerReference{
					APIVersion: loose.GetAPIVersion(), Kind: loose.GetKind(), Name: loose.GetName(), UID: loose.GetUID(),
				})),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			last := xptest.Object("v1", "ConfigMap", "team-a", "zz")
			backup := slices.Concat(tc.backup, []*unstructured.Unstructured{s.xr, s.mr, s.secret, free, last})
			seen := map[string]bool{}
			backup = slices.DeleteFunc(backup, func(u *unstructured.Unstructured) bool {
				again := seen[xp.String(u)]
				seen[xp.String(u)] = true

				return again
			})
			restore := restoreOf(nil)
			restore.Spec = tc.spec
			results, err := dryRunResults(t.Context(), packed(t, backup...), &fakeDryRunCluster{cluster: live(), resources: anything}, restore)
			if err != nil {
				t.Fatal(err)
			}
			lines := resultLines(results)
			at := slices.Index(lines, "create ConfigMap team-a/zz")
			if at < 0 {
				t.Fatalf("the item must come back: %v", lines)
			}
			for _, f := range results[:at] {
				if kind := f.Item.Kind; kind == xptest.ManagedKind && f.Outcome.Action != "hold" {
					t.Errorf("%s\n%s must be held or come after a ConfigMap: %v", tc.reason, f.Item, lines)
				}
			}
		})
	}
}

// A claim becomes the controller of its Secret before it is released. Other publishers come before
// their Secrets.
func TestOrderRequestsNoClaims(t *testing.T) {
	xr := xptest.XR("x")
	claim := xptest.Claim("o", xptest.OfXR(xr))
	cases := map[string]struct {
		reason string
		secret *unstructured.Unstructured
		claims claimKinds
		first  []velero.ResourceIdentifier
		info   string
	}{
		"Claim": {reason: "The claim comes later and adopts the Secret.", secret: xptest.Secret("s", xptest.ControlledBy(claim)), info: "Restored before its owner, which takes it over"},
		"XR": {
			reason: "The XR comes back held and brings only held objects.", secret: xptest.Secret("s", xptest.ControlledBy(xr)),
			first: []velero.ResourceIdentifier{id("example.org", "xorders", "", "x")}, info: "Restored without its owner",
		},
		"Unread": {
			reason: "An unreadable kind may be a claim, so its objects are not asked for.", secret: xptest.Secret("s", xptest.ControlledBy(claim)), claims: claimKinds{err: errAPI},
			first: []velero.ResourceIdentifier{id("example.org", "orderclaims", "team-a", "o")}, info: "Restored without its owner",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			requested := &RequestedItems{}
			in := inputFor(tc.secret, restoreOf(nil))
			out, err := NewOrder(Crossplane(), tc.claims, log, Shared{Requested: requested}).Execute(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.first, out.AdditionalItems); diff != "" {
				t.Errorf("%s\nfirst: -want, +got:\n%s", tc.reason, diff)
			}
			adopted, err := NewAdopt(Crossplane(), live(), nil, log, Shared{Requested: requested}).Execute(in)
			if err != nil {
				t.Fatal(err)
			}
			got := &unstructured.Unstructured{Object: adopted.UpdatedItem.UnstructuredContent()}
			if entry := hook.LastEntry(); !strings.HasPrefix(entry.Message, tc.info) || len(got.GetOwnerReferences()) > 0 {
				t.Errorf("%s\ngot the message %q and the owners %v", tc.reason, entry.Message, got.GetOwnerReferences())
			}
		})
	}
}

// Velero restores unrequested items in alphabetical order, and filters can exclude a Secret's
// claim.
func TestOrderNamesTheClaimThatFiltersLeaveOut(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	restore := restoreOf(nil)
	restore.Spec = velerov1.RestoreSpec{IncludedResources: []string{"secrets"}}
	log, _ := logtest.NewNullLogger()
	out, err := NewOrder(Crossplane(), claimKinds{}, log, Shared{}).Execute(inputFor(xptest.Secret("s", xptest.ControlledBy(claim)), restore))
	if err != nil {
		t.Fatal(err)
	}
	if out.OperationID == "" || len(out.AdditionalItems) > 0 {
		t.Errorf("the plugin must name the excluded claim and not ask for it: %+v", out)
	}
}

func TestHeldWhileEarly(t *testing.T) {
	mr := xptest.MR("b")
	owner := metav1.OwnerReference{APIVersion: mr.GetAPIVersion(), Kind: mr.GetKind(), Name: mr.GetName(), UID: mr.GetUID()}
	composed := func(apiVersion, kind string) *unstructured.Unstructured {
		return xptest.Object(apiVersion, kind, "team-a", "c", xptest.ControlledBy(xptest.XR("x")), xptest.OwnedBy(owner))
	}
	mapper := func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
		if gvk.Kind == "Lease" {
			return schema.GroupVersionResource{}, false, errAPI
		}

		return anything(gvk)
	}
	cases := map[string]struct {
		reason    string
		requester *unstructured.Unstructured
		want      string
	}{
		"Secret":     {reason: "Velero restores Secrets before custom resources.", requester: xptest.Secret("s", xptest.ControlledBy(mr)), want: adoption.ReasonEarly},
		"ConfigMap":  {reason: "Velero restores ConfigMaps before custom resources.", requester: composed("v1", "ConfigMap"), want: adoption.ReasonEarly},
		"Deployment": {reason: "Deployments come after the kinds with a fixed order.", requester: composed("apps/v1", "Deployment")},
		"Unread":     {reason: "A kind that cannot be read may come before its owner.", requester: composed("coordination.k8s.io/v1", "Lease"), want: adoption.ReasonEarly},
		"Custom":     {reason: "An MR comes after its owners.", requester: xptest.MR("c", xptest.ControlledBy(xptest.XR("x")), xptest.OwnedBy(owner))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			requested := &RequestedItems{}
			if _, err := NewOrder(Crossplane(), kindsFn(mapper), log, Shared{Requested: requested}).Execute(inputFor(tc.requester, restoreOf(nil))); err != nil {
				t.Fatal(err)
			}
			out, err := NewAdopt(Crossplane(), live(), nil, log, Shared{Requested: requested}).Execute(inputFor(mr, restoreOf(nil)))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if out.UpdatedItem != nil {
				h, err := adoption.HoldOf(&unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()})
				if err != nil {
					t.Fatal(err)
				}
				got = h.Reason
			}
			if got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// Without a cluster, the backup's CRDs identify the kinds of claims.
func TestDryRunOfClaimsWithoutACluster(t *testing.T) {
	s := newShop()
	claim := xptest.With(s.claim, xptest.PublishesTo(xptest.Namespace, "c"))
	crd := xptest.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "orderclaims.example.org", xptest.JSON(
		`{"spec":{"group":"example.org","scope":"Namespaced","names":{"kind":"OrderClaim","plural":"orderclaims","categories":["claim"]},
		"versions":[{"name":"v1alpha1","served":true}]}}`))
	results, err := dryRunResults(t.Context(), packed(t, crd, claim, s.xr, s.mr, s.secret, xptest.Secret("c", xptest.ControlledBy(claim))), nil, restoreOf(nil))
	if err != nil {
		t.Fatal(err)
	}
	lines := resultLines(results)
	if secret, held := slices.Index(lines, "create Secret team-a/c"), slices.Index(lines, "hold OrderClaim team-a/c"); secret < 0 || held < secret {
		t.Errorf("the Secret must not bring the claim: %v", lines)
	}
}
