package restoreitem

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// An ordering is the result of Order for an item.
type ordering struct {
	First   []velero.ResourceIdentifier
	Skipped bool
	// Warned are the codes of the warnings, and what the filters leave out.
	Warned []string
	Err    error
}

type orderCase struct {
	reason string
	item   *unstructured.Unstructured
	// asked are earlier items of the same restore, which have requested others.
	asked []*unstructured.Unstructured
	spec  velerov1.RestoreSpec
	// kinds are served if they are nil.
	kinds kindsFn
	want  ordering
}

func runOrders(t *testing.T, cases map[string]orderCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			requested := &RequestedItems{}
			for _, u := range tc.asked {
				requested.add(xptest.Claim("o"), u.GroupVersionKind().Group, u.GetName())
			}
			if tc.kinds == nil {
				tc.kinds = served
			}
			before := tc.item.DeepCopy()
			out, err := NewOrder(Crossplane(), tc.kinds, log, Shared{Requested: requested}).Execute(inputFor(tc.item, restoreWith(tc.spec)))
			if diff := cmp.Diff(before, tc.item); diff != "" {
				t.Errorf("the backed-up item was changed: %s", diff)
			}
			if err != nil || tc.want.Err != nil {
				if err == nil || !errors.Is(tc.want.Err, errAny) && !errors.Is(err, tc.want.Err) {
					t.Errorf("%s\ngot error %v", tc.reason, err)
				}

				return
			}
			got := ordering{First: out.AdditionalItems, Skipped: out.SkipRestore}
			left := out.SkipRestore
			for _, e := range hook.AllEntries() {
				why := fmt.Sprint(e.Data["reason"])
				if _, items, ok := strings.Cut(e.Message, " belongs with: "); ok {
					items, _, _ = strings.Cut(items, ". If the cluster")
					why, left = "leaves out "+items, true
				}
				got.Warned = append(got.Warned, why)
			}
			progress, err := (&Order{}).Progress(out.OperationID, nil)
			if left != (out.OperationID != "") || left && (err != nil || !progress.Completed || !strings.Contains(progress.Description, xp.String(tc.item))) {
				t.Errorf("%s\nan operation must name the item that is left out; got %q: %+v, %v", tc.reason, out.OperationID, progress, err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// warned returns the result for an item that comes after nothing, with warnings.
func warned(codes ...reason.Code) ordering {
	var got ordering
	for _, c := range codes {
		got.Warned = append(got.Warned, string(c))
	}

	return got
}

func xorder(name string) velero.ResourceIdentifier { return id("example.org", "xorders", "", name) }

func bucketB() velero.ResourceIdentifier { return id("cloud.example.org", "buckets", "", "b") }

// platform returns what an XR of the legacy kind comes after.
func platform(more ...velero.ResourceIdentifier) []velero.ResourceIdentifier {
	return append([]velero.ResourceIdentifier{
		id(xp.GroupAPIExtensions, "compositionrevisions", "", xptest.RevisionName), id(xp.GroupAPIExtensions, "compositions", "", "orders"),
		id(xp.GroupAPIExtensions, "compositeresourcedefinitions", "", "xorders.example.org"),
	}, more...)
}

func teamA() velerov1.RestoreSpec {
	return velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}}
}

// A cluster-scoped item must itself show which namespace it is of, since a user of a namespace can
// request anything.
func TestOrderRefusesForeignItems(t *testing.T) {
	mine, theirs := xptest.Claim("o"), xptest.Claim("o", xptest.In("team-b"))
	labelled := func(namespace string) xptest.Option { return xptest.Labelled(xp.LabelClaimNamespace, namespace) }
	refused := ordering{Skipped: true, Warned: []string{string(reason.ClusterScopedLeftOut)}}
	withCluster := velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: ptr.To(true)}
	cases := map[string]orderCase{
		"XR": {
			reason: "The XR of a claim in the restored namespace comes.",
			item:   xptest.XR("x", xptest.ClaimedBy(mine), xptest.RestoreFirst("buckets.cloud.example.org//b")), spec: teamA(),
			want: ordering{First: []velero.ResourceIdentifier{bucketB()}},
		},
		"MR":               {reason: "Crossplane labels all resources of a claim's tree.", item: xptest.MR("b", labelled("team-a")), spec: teamA()},
		"AnotherTenantsXR": {reason: "A claim can name any XR, so the XR must name the claim too.", item: xptest.XR("x", xptest.ClaimedBy(theirs)), spec: teamA(), want: refused},
		"AnotherTenantsMR": {reason: "A restored XR can name any MR, so the MR's labels decide.", item: xptest.MR("b", labelled("team-b")), spec: teamA(), want: refused},
		"CopiedLabel": {
			reason: "Crossplane writes an XR's claimRef, but a tenant can copy labels.",
			item:   xptest.XR("x", xptest.ClaimedBy(theirs), labelled("team-a")), spec: teamA(), want: refused,
		},
		"UnclaimedXR": {reason: "An XR without a claim belongs to the platform.", item: xptest.XR("x"), spec: teamA(), want: refused},
		"Namespaced":  {reason: "Velero filters namespaced items.", item: xptest.NamespacedMR("b"), spec: teamA()},
		"Everything":  {reason: "A restore of everything leaves nothing out.", item: xptest.MR("b", labelled("team-b"))},
		"WithCluster": {reason: "The Restore asks for all cluster-scoped objects.", item: xptest.MR("b"), spec: withCluster},
		"Excluded": {
			reason: "An exclusion takes precedence over an inclusion.", item: xptest.MR("b", labelled("team-b")), want: refused,
			spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-*"}, ExcludedNamespaces: []string{"team-b"}},
		},
		"ExcludedOnly": {
			reason: "A restore that excludes a namespace restores the others only.", item: xptest.MR("b", labelled("team-b")), want: refused,
			spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-b"}},
		},
	}
	unasked := map[string]orderCase{}
	for name, tc := range cases {
		tc.asked = []*unstructured.Unstructured{tc.item}
		cases[name] = tc
		tc.asked, tc.reason = []*unstructured.Unstructured{xptest.MR("another")}, "Another action may have asked for an item for which this plugin did not ask."
		if tc.want.Skipped {
			tc.want = ordering{}
			if xp.IsComposite(tc.item) {
				tc.want.First = platform()
			}
		}
		unasked[name+"Unasked"] = tc
	}
	runOrders(t, cases)
	runOrders(t, unasked)
}

// One action requests an item and another restores it, so the actions of a restore share the
// requests.
func TestOrderSharesRequests(t *testing.T) {
	theirs := xptest.XR("x", xptest.ClaimedBy(xptest.Claim("o", xptest.In("team-b"))))
	log, _ := logtest.NewNullLogger()
	shared, restore := Shared{Requested: &RequestedItems{}}, restoreWith(teamA())
	skipped := func(item *unstructured.Unstructured) bool {
		t.Helper()

		return execute(t, newOrder(shared), item, restore).SkipRestore
	}
	if skipped(theirs) {
		t.Error("an XR for which no item asked by name must come")
	}
	forged := xptest.NamespacedMR("b", xptest.ControlledBy(theirs))
	if out := execute(t, NewOrder(Composed(), kindsFn(served), log, shared), forged, restore); len(out.AdditionalItems) != 1 {
		t.Fatalf("an owner must come first; got %+v", out)
	}
	if !skipped(theirs) {
		t.Error("a tenant's owner reference must not bring another team's XR")
	}
	if skipped(xptest.With(theirs, xptest.ClaimedBy(xptest.Claim("o")))) {
		t.Error("the XR of a restored claim must come, whichever item asks for it")
	}
}

// A tenant's object must not request another's.
func TestOrderRequestsNothingOutside(t *testing.T) {
	x := xptest.XR("x")
	usage := func(namespace, of string) *unstructured.Unstructured {
		return xptest.Object("protection.crossplane.io/v1beta1", "Usage", namespace, "u", xptest.JSON(`{"spec":{"of":`+of+`}}`))
	}
	owned := func(o metav1.OwnerReference) *unstructured.Unstructured {
		return xptest.NamespacedMR("b", xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "b"), xptest.OwnedBy(o))
	}
	outside := warned(reason.OutsideNamespace)
	runOrders(t, map[string]orderCase{
		"Annotations": {
			reason: "Only the backup can write the restore-first field, so an annotation is ignored.",
			item:   xptest.Claim("o", xptest.Annotated(xp.FieldRestoreFirst, `["secrets/team-b/theirs"]`)),
		},
		"AnnotationsOfXR": {
			reason: "An annotation on an XR is ignored too.", item: xptest.XR("x", xptest.Annotated(xp.FieldRestoreFirst, `["secrets/team-b/theirs"]`)), want: ordering{First: platform()},
		},
		"Usage": {
			reason: "A Usage can name another namespace.", want: outside,
			item: usage("team-a", `{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket","resourceRef":{"name":"b","namespace":"team-b"}}`),
		},
		"UsageInside": {
			reason: "A Usage can name any object in its own namespace.", want: ordering{First: []velero.ResourceIdentifier{id("cloud.example.org", "localbuckets", "team-a", "b")}},
			item: usage("team-a", `{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket","resourceRef":{"name":"b","namespace":"team-a"}}`),
		},
		"ClusterUsage": {
			reason: "A cluster-scoped Usage belongs to the platform.",
			want:   ordering{First: []velero.ResourceIdentifier{id("cloud.example.org", "localbuckets", "team-b", "b")}},
			item: xptest.Object("protection.crossplane.io/v1beta1", "ClusterUsage", "", "u", xptest.JSON(
				`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket","resourceRef":{"name":"b","namespace":"team-b"}}}}`)),
		},
		"Owner": {
			reason: "A cluster-scoped owner XR can belong to a tenant, so the plugin checks the XR itself.",
			item:   owned(metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x"}),
			want:   ordering{First: []velero.ResourceIdentifier{xorder("x")}},
		},
		"Node": {reason: "Kubernetes' own kinds are not XRs.", item: owned(metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n"}), want: outside},
		"Composition": {
			reason: "A Composition is not an XR.", item: owned(metav1.OwnerReference{APIVersion: "apiextensions.crossplane.io/v1", Kind: "Composition", Name: "c"}),
			want: outside,
		},
		"ClaimOfAnotherGroup": {reason: "An XRD has one group for claims and XRs, so this claim cannot match.", item: xptest.Claim("o", xptest.OfXR(xptest.MR("b")))},
		"Claim": {
			reason: "The XR itself decides whether it belongs to the claim.",
			item:   xptest.Claim("o", xptest.OfXR(x)), want: ordering{First: []velero.ResourceIdentifier{xorder("x")}},
		},
		"ModernXR": {
			reason: "A namespaced XR composes only in its own namespace.",
			spec:   velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}},
			item: xptest.XRV2("x", xptest.RestoreFirst(), xptest.JSON(`{"spec":{"crossplane":{"resourceRefs":[
				{"apiVersion":"v1","kind":"Secret","name":"s","namespace":"team-b"},
				{"apiVersion":"v1","kind":"Node","name":"n"}]}}}`)),
			want: ordering{First: []velero.ResourceIdentifier{id("", "secrets", "team-a", "s")}, Warned: outside.Warned},
		},
	})
}

// Only XRs can request what they run on. If others could, it would be refused, and Velero does not
// come to it again.
func TestOrderLeavesThePlatformToXRs(t *testing.T) {
	composition := metav1.OwnerReference{APIVersion: "apiextensions.crossplane.io/v1", Kind: "Composition", Name: "orders"}
	owned := xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "b"), xptest.OwnedBy(composition))
	usage := xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "u", xptest.JSON(
		`{"spec":{"of":{"apiVersion":"apiextensions.crossplane.io/v1","kind":"Composition","resourceRef":{"name":"orders"}}}}`))
	asked := ordering{First: []velero.ResourceIdentifier{id(xp.GroupAPIExtensions, "compositions", "", "orders")}}
	left := warned(reason.PlatformLeftOut)
	runOrders(t, map[string]orderCase{
		"Owner":      {reason: "Only an XR can ask for a Composition in a restore of namespaces, so an owner reference is named.", item: owned, spec: teamA(), want: left},
		"Usage":      {reason: "Only an XR can ask for a Composition in a restore of namespaces, so a Usage is named.", item: usage, spec: teamA(), want: left},
		"OwnerOfAll": {reason: "A restore of everything refuses no owner.", item: owned, want: asked},
		"UsageOfAll": {reason: "A restore of everything refuses no Usage.", item: usage, want: asked},
		"XR":         {reason: "An XR asks for the objects that it needs.", item: xptest.XR("x"), spec: teamA(), want: ordering{First: platform()}},
	})
}

func TestOrderBringsWhatAnXRComposes(t *testing.T) {
	b, gone := xptest.MR("b"), xptest.MR("gone")
	labels := velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}
	claim := xptest.Claim("o")
	claimed := xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(b))
	runOrders(t, map[string]orderCase{
		"Everything": {reason: "A restore of everything brings the resources without a request.", item: xptest.XR("x", xptest.Refs(b)), want: ordering{First: platform()}},
		"Labels": {
			reason: "Composed resources may lack the XR's labels, and a held XR waits for them.", item: xptest.XR("x", xptest.Refs(b)), spec: labels,
			want: ordering{First: platform(bucketB())},
		},
		"Policy": {
			reason: "A resource policy excludes single objects, and nothing that an action requests.", item: xptest.XR("x", xptest.Refs(b)),
			spec: velerov1.RestoreSpec{ResourcePolicy: &corev1.TypedLocalObjectReference{Kind: "configmap", Name: "p"}}, want: ordering{First: platform(bucketB())},
		},
		"Malformed": {reason: "Unreadable refs must not count as none.", item: xptest.XR("x", xptest.JSON(`{"spec":{"resourceRefs":7}}`)), spec: labels, want: ordering{Err: errAny}},
		"API": {
			reason: "A temporary API error must not decide.", item: xptest.XR("x", xptest.RestoreFirst(), xptest.Refs(b)), spec: labels, kinds: failing,
			want: ordering{Err: errAPI},
		},
		"Dangling": {
			reason: "The backup lacks a resource that did not exist when it was taken.", item: xptest.XR("x", xptest.Refs(gone, b), xptest.UnresolvedRefs(gone)), spec: labels,
			want: ordering{First: platform(bucketB())},
		},
		"Modern": {
			reason: "A namespaced XR of Crossplane v2 asks for its resources too.",
			item:   xptest.XRV2("x", xptest.RestoreFirst(), xptest.Refs(xptest.Object(xptest.ManagedVersion, "LocalBucket", "team-a", "b"))), spec: labels,
			want: ordering{First: []velero.ResourceIdentifier{id("cloud.example.org", "localbuckets", "team-a", "b")}},
		},
		"OfAClaim": {reason: "The claim's list has the whole tree.", item: claimed, spec: labels, want: ordering{First: platform()}},
		"OldBackup": {
			reason: "A backup without the plugin has no list on the claim, so no object asks for cluster-scoped resources.", item: claimed, spec: teamA(),
			want: ordering{First: platform(bucketB())},
		},
		"NewBackup": {
			reason: "The claim's list has the whole tree in a restore of a namespace too.", item: xptest.With(claimed, xptest.RestoreFirst("buckets.cloud.example.org//b")), spec: teamA(),
			want: ordering{First: []velero.ResourceIdentifier{bucketB()}},
		},
	})
}

func TestOrderNamesWhatTheFiltersLeaveOut(t *testing.T) {
	local := xptest.RestoreFirst("localbuckets.cloud.example.org/team-b/b", "buckets.cloud.example.org//b", "secrets/team-a/s")
	secret := id("", "secrets", "team-a", "s")
	runOrders(t, map[string]orderCase{
		"Namespace": {
			reason: "Velero drops the request without a log line, so the plugin names it.", item: xptest.Claim("o", local), spec: teamA(),
			want: ordering{First: []velero.ResourceIdentifier{bucketB(), secret}, Warned: []string{"leaves out localbuckets.cloud.example.org/team-b/b"}},
		},
		"Cluster": {
			reason: "The tree of the claim is excluded, so the claim stays held.",
			item:   xptest.Claim("o", local), spec: velerov1.RestoreSpec{IncludeClusterResources: ptr.To(false)},
			want: ordering{
				First:  []velero.ResourceIdentifier{id("cloud.example.org", "localbuckets", "team-b", "b"), secret},
				Warned: []string{"leaves out buckets.cloud.example.org//b"},
			},
		},
		"Excluded": {
			reason: "An excluded namespace is dropped without a log line too.", item: xptest.Claim("o", local), spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-*"}},
			want: ordering{
				First:  []velero.ResourceIdentifier{bucketB()},
				Warned: []string{"leaves out localbuckets.cloud.example.org/team-b/b, secrets/team-a/s"},
			},
		},
		"Nothing": {
			reason: "The restore leaves nothing out, so it warns of nothing.",
			item:   xptest.Claim("o", xptest.RestoreFirst("buckets.cloud.example.org//b")), want: ordering{First: []velero.ResourceIdentifier{bucketB()}},
		},
	})
}

// All tenants share what activates kinds, and a tenant chooses what an XR composes.
func TestOrderRequestsActivations(t *testing.T) {
	const policy, definition = "managedresourceactivationpolicies.apiextensions.crossplane.io//all",
		"managedresourcedefinitions.apiextensions.crossplane.io//buckets.cloud.example.org"
	tree := xptest.RestoreFirst(policy, definition)
	both := []velero.ResourceIdentifier{
		id(xp.GroupAPIExtensions, "managedresourceactivationpolicies", "", "all"), id(xp.GroupAPIExtensions, "managedresourcedefinitions", "", "buckets.cloud.example.org"),
	}
	runOrders(t, map[string]orderCase{
		"All":           {reason: "Policies and definitions come before the XRs that need them.", item: xptest.XRV2("m", tree), want: ordering{First: both}},
		"Namespaces":    {reason: "A restore of namespaces activates no kind.", item: xptest.XRV2("m", tree), spec: teamA()},
		"ClusterScoped": {reason: "A claim's XR in a restore of namespaces activates no kind.", item: xptest.XR("x", tree), spec: teamA()},
		"ManagedForged": {reason: "An MR in a restore of namespaces cannot list activation policies.", item: xptest.NamespacedMR("b", tree), spec: teamA(), want: warned(reason.BackupTampered)},
		"NamedAsOwner":  {reason: "An owner reference to a policy activates no kind.", item: xptest.MR("b", xptest.ControlledBy(xptest.ActivationPolicy("all"))), spec: teamA()},
		"NamedAsUsedBy": {reason: "A Usage of a policy activates no kind in a restore of namespaces.", item: usageOf(xptest.ActivationPolicy("all")), spec: teamA(), want: warned(reason.OutsideNamespace)},
	})
}

func usageOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	of := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "resourceRef": map[string]any{"name": u.GetName()}}

	return xptest.Object(xp.GroupProtection+"/v1beta1", "Usage", xptest.Namespace, "u", xptest.Field(of, "spec", "of"))
}
