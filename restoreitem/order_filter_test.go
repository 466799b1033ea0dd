package restoreitem

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// An ordering is the result of Order for an item.
type ordering struct {
	First   []velero.ResourceIdentifier
	Skipped bool
	// Warned are the reasons, or else the ends of the warnings.
	Warned []string
}

type orderCase struct {
	reason string
	item   *unstructured.Unstructured
	// asked are earlier items of the same restore, which have requested others.
	asked []*unstructured.Unstructured
	spec  velerov1.RestoreSpec
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
			out, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{Requested: requested}).Execute(inputFor(tc.item, &velerov1.Restore{Spec: tc.spec}))
			if err != nil {
				t.Fatal(err)
			}
			got := ordering{First: out.AdditionalItems, Skipped: out.SkipRestore}
			left := out.SkipRestore
			for _, e := range hook.AllEntries() {
				why := e.Message
				if _, cause, ok := strings.Cut(why, " is not restored: "); ok {
					why = cause
				}
				if _, items, ok := strings.Cut(why, " belongs with: "); ok {
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
	const nobodys = "it is cluster-scoped, and it is of no claim in the restored namespaces. To restore it, add --include-cluster-resources=true [ClusterScopedLeftOut]"
	const anothers = "it is cluster-scoped, and it is of a claim in the namespace team-b. Restore that namespace, too [ClusterScopedLeftOut]"
	refused := func(why string) ordering { return ordering{Skipped: true, Warned: []string{why}} }
	withCluster := velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: ptr.To(true)}
	cases := map[string]orderCase{
		"XR": {
			reason: "The XR of a claim in the restored namespace comes.",
			item:   xptest.XR("x", xptest.ClaimedBy(mine), xptest.RestoreFirst("buckets.cloud.example.org//b")), spec: teamA(),
			want: ordering{First: []velero.ResourceIdentifier{bucketB()}},
		},
		"MR":               {reason: "Crossplane labels all resources of a claim's tree.", item: xptest.MR("b", labelled("team-a")), spec: teamA()},
		"AnotherTenantsXR": {reason: "A claim can name any XR, so the XR must name the claim too.", item: xptest.XR("x", xptest.ClaimedBy(theirs)), spec: teamA(), want: refused(anothers)},
		"AnotherTenantsMR": {reason: "A restored XR can name any MR, so the MR's labels decide.", item: xptest.MR("b", labelled("team-b")), spec: teamA(), want: refused(anothers)},
		"CopiedLabel": {
			reason: "Crossplane writes an XR's claimRef, but a tenant can copy labels.",
			item:   xptest.XR("x", xptest.ClaimedBy(theirs), labelled("team-a")), spec: teamA(), want: refused(anothers),
		},
		"UnclaimedXR": {reason: "An XR without a claim belongs to the platform.", item: xptest.XR("x"), spec: teamA(), want: refused(nobodys)},
		"UnclaimedMR": {reason: "An MR without a claim belongs to the platform.", item: xptest.MR("b"), spec: teamA(), want: refused(nobodys)},
		"UnrelatedPackage": {
			reason: "A package belongs to the platform.", item: xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p"), spec: teamA(), want: refused(nobodys),
		},
		"Namespaced":  {reason: "Velero filters namespaced items.", item: xptest.NamespacedMR("b"), spec: teamA()},
		"Everything":  {reason: "A restore of everything leaves nothing out.", item: xptest.MR("b", labelled("team-b"))},
		"Star":        {reason: "A star includes all namespaces.", item: xptest.MR("b"), spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"*"}}},
		"WithCluster": {reason: "The Restore asks for all cluster-scoped objects.", item: xptest.MR("b"), spec: withCluster},
		"Glob": {
			reason: "Velero allows globs.",
			item:   xptest.MR("b", labelled("team-b")), spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-*"}},
		},
		"Excluded": {
			reason: "An exclusion takes precedence over an inclusion.", item: xptest.MR("b", labelled("team-b")), want: refused(anothers),
			spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-*"}, ExcludedNamespaces: []string{"team-b"}},
		},
		"ExcludedOnly": {
			reason: "A restore that excludes a namespace restores the others only.", item: xptest.MR("b", labelled("team-b")), want: refused(anothers),
			spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-b"}},
		},
		"ExcludedOther": {
			reason: "A restore that excludes another namespace still has this one.", item: xptest.MR("b", labelled("team-b")), spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-c"}},
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
	restore := &velerov1.Restore{Spec: teamA()}
	log, _ := logtest.NewNullLogger()
	requested := &RequestedItems{}
	mapper := kindsFn(served)
	skipped := func(item *unstructured.Unstructured) bool {
		t.Helper()
		out, err := NewOrder(Crossplane(), mapper, log, Shared{Requested: requested}).Execute(inputFor(item, restore))
		if err != nil {
			t.Fatal(err)
		}

		return out.SkipRestore
	}
	if skipped(theirs) {
		t.Error("an XR for which no item asked by name must come")
	}
	forged := xptest.NamespacedMR("b", xptest.ControlledBy(theirs))
	if out, err := NewOrder(Composed(), mapper, log, Shared{Requested: requested}).Execute(inputFor(forged, restore)); err != nil || len(out.AdditionalItems) != 1 {
		t.Fatalf("an owner must come first; got %+v, %v", out, err)
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
	outside := func(who, whom string) ordering {
		return ordering{Warned: []string{who + " names " + whom + ", which is not restored first, because it is outside of its namespace [OutsideNamespace]"}}
	}
	runOrders(t, map[string]orderCase{
		"Annotations": {
			reason: "Only the backup can write the restore-first field, so an annotation is ignored.",
			item:   xptest.Claim("o", xptest.Annotated(xp.FieldRestoreFirst, `["secrets/team-b/theirs"]`)),
		},
		"AnnotationsOfXR": {
			reason: "An annotation on an XR is ignored too.", item: xptest.XR("x", xptest.Annotated(xp.FieldRestoreFirst, `["secrets/team-b/theirs"]`)), want: ordering{First: platform()},
		},
		"Usage": {
			reason: "A Usage can name another namespace.", want: outside("Usage team-a/u", "LocalBucket team-b/b"),
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
		"Node": {
			reason: "Kubernetes' own kinds are not XRs.", item: owned(metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n"}),
			want: outside("Bucket team-a/b", "Node n"),
		},
		"Package": {
			reason: "Crossplane's package kinds are not XRs.", item: owned(metav1.OwnerReference{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: "p"}),
			want: outside("Bucket team-a/b", "Provider p"),
		},
		"Composition": {
			reason: "A Composition is not an XR.", item: owned(metav1.OwnerReference{APIVersion: "apiextensions.crossplane.io/v1", Kind: "Composition", Name: "c"}),
			want: outside("Bucket team-a/b", "Composition c"),
		},
		"ClaimOfAnotherGroup": {
			reason: "An XRD has one group for claims and XRs, so this claim cannot match.",
			item:   xptest.Claim("o", xptest.OfXR(xptest.MR("b"))),
		},
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
			want: ordering{First: []velero.ResourceIdentifier{id("", "secrets", "team-a", "s")}, Warned: outside("Order team-a/x", "Node n").Warned},
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
	left := func(who string) ordering {
		return ordering{Warned: []string{who + " names Composition orders, which is not restored first: it comes only with the XRs that run on it. To restore it, add " +
			"--include-cluster-resources=true [PlatformLeftOut]"}}
	}
	runOrders(t, map[string]orderCase{
		"Owner":      {reason: "Only an XR can ask for a Composition in a restore of namespaces, so an owner reference is named.", item: owned, spec: teamA(), want: left("Bucket b")},
		"Usage":      {reason: "Only an XR can ask for a Composition in a restore of namespaces, so a Usage is named.", item: usage, spec: teamA(), want: left("Usage u")},
		"OwnerOfAll": {reason: "A restore of everything refuses no owner.", item: owned, want: asked},
		"UsageOfAll": {reason: "A restore of everything refuses no Usage.", item: usage, want: asked},
		"XR":         {reason: "An XR asks for the objects that it needs.", item: xptest.XR("x"), spec: teamA(), want: ordering{First: platform()}},
	})
}

func TestOrderBringsWhatAnXRComposes(t *testing.T) {
	b, gone := xptest.MR("b"), xptest.MR("gone")
	labels := velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}
	either := velerov1.RestoreSpec{OrLabelSelectors: []*metav1.LabelSelector{labels.LabelSelector}}
	both := velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, LabelSelector: labels.LabelSelector}
	claim := xptest.Claim("o")
	claimed := xptest.XR("x", xptest.ClaimedBy(claim), xptest.Refs(b))
	runOrders(t, map[string]orderCase{
		"Everything": {reason: "A restore of everything brings the resources without a request.", item: xptest.XR("x", xptest.Refs(b)), want: ordering{First: platform()}},
		"Labels": {
			reason: "Composed resources may lack the XR's labels, and a held XR waits for them.", item: xptest.XR("x", xptest.Refs(b)), spec: labels,
			want: ordering{First: platform(bucketB())},
		},
		"EitherLabel": {reason: "OrLabelSelectors can miss composed resources too.", item: xptest.XR("x", xptest.Refs(b)), spec: either, want: ordering{First: platform(bucketB())}},
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
		"OldBackupByLabel": {reason: "A backup without the plugin has no list, and the labels may miss resources.", item: claimed, spec: both, want: ordering{First: platform(bucketB())}},
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

func TestOrderErrors(t *testing.T) {
	selective := &velerov1.Restore{Spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}}}
	log, _ := logtest.NewNullLogger()
	malformed := xptest.XR("x", xptest.JSON(`{"spec":{"resourceRefs":7}}`))
	if _, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{}).Execute(inputFor(malformed, selective)); err == nil {
		t.Error("unreadable refs must not count as none")
	}
	composing := xptest.XR("x", xptest.RestoreFirst(), xptest.Refs(xptest.MR("b")))
	if _, err := NewOrder(Crossplane(), kindsFn(failing), log, Shared{}).Execute(inputFor(composing, selective)); !errors.Is(err, errAPI) {
		t.Errorf("a temporary API error must not decide; got %v", err)
	}
}
