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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
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
	for name, tc := range map[string]struct {
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
	} {
		t.Run(name, func(t *testing.T) {
			last := xptest.Object("v1", "ConfigMap", "team-a", "zz")
			backup := slices.Concat(tc.backup, []*unstructured.Unstructured{s.xr, s.mr, s.secret, free, last})
			seen := map[string]bool{}
			backup = slices.DeleteFunc(backup, func(u *unstructured.Unstructured) bool {
				again := seen[xp.String(u)]
				seen[xp.String(u)] = true

				return again
			})
			results := dryRunOf(t, &fakeDryRunCluster{cluster: live(), resources: anything}, restoreWith(tc.spec), backup...)
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
	for name, tc := range map[string]struct {
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
	} {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			requested := &RequestedItems{}
			out := execute(t, NewOrder(Crossplane(), tc.claims, log, Shared{Requested: requested}), tc.secret, restoreOf(nil))
			if diff := cmp.Diff(tc.first, out.AdditionalItems); diff != "" {
				t.Errorf("%s\nfirst: -want, +got:\n%s", tc.reason, diff)
			}
			got := updated(execute(t, NewAdopt(Crossplane(), live(), nil, log, Shared{Requested: requested}), tc.secret, restoreOf(nil)))
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
	log, _ := logtest.NewNullLogger()
	restore := restoreWith(velerov1.RestoreSpec{IncludedResources: []string{"secrets"}})
	out := execute(t, NewOrder(Crossplane(), claimKinds{}, log, Shared{}), xptest.Secret("s", xptest.ControlledBy(claim)), restore)
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
	for name, tc := range map[string]struct {
		reason    string
		requester *unstructured.Unstructured
		want      string
	}{
		"Secret":     {reason: "Velero restores Secrets before custom resources.", requester: xptest.Secret("s", xptest.ControlledBy(mr)), want: hold.ReasonEarly},
		"ConfigMap":  {reason: "Velero restores ConfigMaps before custom resources.", requester: composed("v1", "ConfigMap"), want: hold.ReasonEarly},
		"Deployment": {reason: "Deployments come after the kinds with a fixed order.", requester: composed("apps/v1", "Deployment")},
		"Unread":     {reason: "A kind that cannot be read may come before its owner.", requester: composed("coordination.k8s.io/v1", "Lease"), want: hold.ReasonEarly},
		"Custom":     {reason: "An MR comes after its owners.", requester: xptest.MR("c", xptest.ControlledBy(xptest.XR("x")), xptest.OwnedBy(owner))},
	} {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			requested := &RequestedItems{}
			execute(t, NewOrder(Crossplane(), kindsFn(mapper), log, Shared{Requested: requested}), tc.requester, restoreOf(nil))
			got := ""
			if h := adoptWith(t, Shared{Requested: requested}, live(), mr, restoreOf(nil)).hold(t); h != nil {
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
	lines := resultLines(dryRunOf(t, nil, restoreOf(nil), crd, claim, s.xr, s.mr, s.secret, xptest.Secret("c", xptest.ControlledBy(claim))))
	if secret, held := slices.Index(lines, "create Secret team-a/c"), slices.Index(lines, "hold OrderClaim team-a/c"); secret < 0 || held < secret {
		t.Errorf("the Secret must not bring the claim: %v", lines)
	}
}

// The file of a requested item can have another object, which Velero creates where that says.
func TestOrderTakesOnlyWhatIsInTheRequestedFile(t *testing.T) {
	claim := xptest.Claim("o")
	mr := xptest.MR("b", xptest.Labelled(xp.LabelClaimNamespace, xptest.Namespace))
	asking := xptest.With(claim, xptest.RestoreFirst("buckets.cloud.example.org//b", "localbuckets.cloud.example.org/team-a/l"))
	local := xptest.Object("cloud.example.org/v1alpha1", "LocalBucket", xptest.Namespace, "l")
	elsewhere := xptest.With(local, xptest.In("team-b"))
	mapped := teamA()
	mapped.NamespaceMapping = map[string]string{xptest.Namespace: "copy"}
	all := velerov1.RestoreSpec{}
	for name, tc := range map[string]struct {
		reason string
		item   *unstructured.Unstructured
		spec   velerov1.RestoreSpec
		// after means that Velero has come back to the claim.
		after bool
		want  bool
	}{
		"Requested":   {reason: "The claim has requested it.", item: mr, spec: teamA(), want: true},
		"Local":       {reason: "The claim has requested it.", item: local, spec: teamA(), want: true},
		"LocalMapped": {reason: "Velero creates it in the mapped namespace.", item: local, spec: mapped, want: true},
		"Elsewhere":   {reason: "Velero would create it in the namespace of another tenant.", item: elsewhere, spec: teamA()},
		"Unmapped":    {reason: "Velero would create it in the namespace that the restore copies.", item: xptest.With(local, xptest.Field("m", "metadata", "name")), spec: mapped},
		"OtherName":   {reason: "Nothing has requested a cluster-scoped object of this name.", item: xptest.With(mr, xptest.Field("c", "metadata", "name")), spec: teamA()},
		"OtherGroup":  {reason: "Nothing has requested an object of this group.", item: xptest.Object("policies.example.org/v1", "Bucket", "", "b"), spec: teamA()},
		"OtherPlugin": {reason: "Another plugin has requested it.", item: xptest.Object("policies.example.org/v1", "Bucket", "", "b"), spec: teamA(), after: true, want: true},
		"Everything":  {reason: "Such a restore brings all that the backup has.", item: elsewhere, spec: all, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			shared, restore := Shared{Requested: &RequestedItems{}}, restoreWith(tc.spec)
			order := newOrder(shared)
			execute(t, order, asking, restore)
			if tc.after {
				execute(t, newAdopt(live(), shared), asking, restore)
			}
			if out := execute(t, order, tc.item, restore); out.SkipRestore == tc.want {
				t.Errorf("%s\ngot restored: %t", tc.reason, !out.SkipRestore)
			}
		})
	}
}

// In a restore of namespaces a list that another writer may have forged must not bring anything. An
// EnvironmentConfig comes only if a CompositionRevision names it, which comes only if it is for the
// XR.
func TestOrderBringsEnvironmentConfigs(t *testing.T) {
	const listed = "environmentconfigs.apiextensions.crossplane.io//e"
	xr := xptest.XR("x", xptest.RestoreFirst("compositionrevisions.apiextensions.crossplane.io//"+xptest.RevisionName, listed), xptest.Refs())
	xptest.Labelled(xp.LabelClaimNamespace, "team-a")(xr)
	environment := xptest.Object("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", "", "e")
	reading := func(entries string) *unstructured.Unstructured {
		return xptest.Revision(xptest.RevisionName, xr, xptest.JSON(`{"spec":{"pipeline":[{"step":"env","input":{"environmentConfigs":[`+entries+`]}}]}}`))
	}
	named, selecting := reading(`{"ref":{"name":"e"}}`), reading(`{"selector":{}}`)
	other := xptest.Revision(xptest.RevisionName, xptest.XRV2("y"), xptest.Field(named.Object["spec"].(map[string]any)["pipeline"], "spec", "pipeline")) //nolint:forcetypeassert // The test fails.
	for name, tc := range map[string]struct {
		reason string
		items  []*unstructured.Unstructured
		spec   velerov1.RestoreSpec
		// left means that the EnvironmentConfig is left out, and reported is what the restore
		// reports.
		left     bool
		reported string
	}{
		"All":     {reason: "A restore of everything brings it without a request.", items: []*unstructured.Unstructured{environment}},
		"Named":   {reason: "The XR comes back with the EnvironmentConfigs that its functions read.", items: []*unstructured.Unstructured{xr, named, environment}, spec: teamA()},
		"Unnamed": {reason: "No reference connects the EnvironmentConfig to the XR.", items: []*unstructured.Unstructured{xr, selecting, environment}, spec: teamA(), left: true, reported: "[PipelineReads]"},
		"Foreign": {
			reason: "A revision for another kind of XR must not bring an EnvironmentConfig.", items: []*unstructured.Unstructured{xr, other, environment}, spec: teamA(), left: true,
			reported: "[PlatformLeftOut]",
		},
		"SelectedOfAll": {reason: "A restore of everything brings all EnvironmentConfigs.", items: []*unstructured.Unstructured{xr, selecting}},
	} {
		t.Run(name, func(t *testing.T) {
			o, reported, left := newOrder(Shared{}), "", false
			for _, item := range tc.items {
				out := execute(t, o, item, restoreWith(tc.spec))
				left = out.SkipRestore && item == environment
				reported += out.OperationID //nolint:perfsprint // There are two or three.
			}
			if left != tc.left || !strings.Contains(reported, tc.reported) || reported != "" && tc.reported == "" {
				t.Errorf("%s\nleft out: %v, warned %q, want %q", tc.reason, left, reported, tc.reported)
			}
		})
	}
}

func TestAdoptNotesWhatARevisionRequires(t *testing.T) {
	requested, xr := &RequestedItems{}, xptest.XR("x")
	revision := xptest.Revision(xptest.RevisionName, xr, xptest.JSON(`{"spec":{"pipeline":[{"step":"a","requirements":{"requiredSchemas":[{}]}}]}}`))
	execute(t, newOrder(Shared{Requested: requested}), revision, restoreOf(nil))
	if diff := cmp.Diff([]string{"requiredSchemas of the step a"}, requested.requires(xr)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := (&RequestedItems{}).requires(xr); got != nil {
		t.Errorf("want no requirements without a revision; got %v", got)
	}
}

func TestAdoptNotesEnvironmentConfigs(t *testing.T) {
	item := xptest.XR("x", xptest.RestoreFirst("environmentconfigs.apiextensions.crossplane.io//e"))
	if h := adopt(t, live(), item, restoreOf(nil)).hold(t); len(h.Environments) != 1 {
		t.Errorf("the hold must name the EnvironmentConfig in the backup; got %+v", h)
	}
}
