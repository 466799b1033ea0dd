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
			out, err := NewOrder(Crossplane(), ResourceMapperFn(served), requested, log).Execute(inputFor(tc.item, &velerov1.Restore{Spec: tc.spec}))
			if err != nil {
				t.Fatal(err)
			}
			got := ordering{First: out.AdditionalItems, Skipped: out.SkipRestore}
			left := out.SkipRestore
			for _, e := range hook.AllEntries() {
				why := e.Message
				if reason, ok := e.Data["reason"].(string); ok {
					why = reason
				}
				if items, ok := e.Data["items"].([]string); ok {
					why, left = "leaves out "+strings.Join(items, ", "), true
				}
				got.Warned = append(got.Warned, why)
			}
			progress, err := (&Order{}).Progress(out.OperationID, nil)
			if left != (out.OperationID != "") || left && (err != nil || !progress.Completed || !strings.Contains(progress.Description, xp.String(tc.item))) {
				t.Errorf("%s\nwhat is left out is told by an operation; got %q: %+v, %v", tc.reason, out.OperationID, progress, err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
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
	const nobodys = "no claim in them brought it about; to restore it, add --include-cluster-resources=true"
	const anothers = "it is of a claim in the namespace team-b; to restore it, restore that one too"
	refused := func(why string) ordering { return ordering{Skipped: true, Warned: []string{why}} }
	withCluster := velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: ptr.To(true)}
	cases := map[string]orderCase{
		"XR": {
			reason: "The XR of a claim in it.",
			item:   xptest.XR("x", xptest.ClaimedBy(mine), xptest.Tree("buckets.cloud.example.org//b")), spec: teamA(),
			want: ordering{First: []velero.ResourceIdentifier{bucketB()}},
		},
		"MR":               {reason: "Crossplane labels all of a claim's tree.", item: xptest.MR("b", labelled("team-a")), spec: teamA()},
		"AnotherTenantsXR": {reason: "A claim can name any XR.", item: xptest.XR("x", xptest.ClaimedBy(theirs)), spec: teamA(), want: refused(anothers)},
		"AnotherTenantsMR": {reason: "An XR that was let in can name any MR.", item: xptest.MR("b", labelled("team-b")), spec: teamA(), want: refused(anothers)},
		"CopiedLabel": {
			reason: "The claimRef of an XR is Crossplane's word, its labels may not be.",
			item:   xptest.XR("x", xptest.ClaimedBy(theirs), labelled("team-a")), spec: teamA(), want: refused(anothers),
		},
		"UnclaimedXR": {reason: "An XR without a claim is the platform's.", item: xptest.XR("x"), spec: teamA(), want: refused(nobodys)},
		"UnclaimedMR": {reason: "So is such an MR.", item: xptest.MR("b"), spec: teamA(), want: refused(nobodys)},
		"UnrelatedPackage": {
			reason: "So is a package.", item: xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p"), spec: teamA(), want: refused(nobodys),
		},
		"Namespaced":  {reason: "What is in a namespace is filtered by Velero.", item: xptest.NamespacedMR("b"), spec: teamA()},
		"Everything":  {reason: "A restore of everything has everything.", item: xptest.MR("b", labelled("team-b"))},
		"Star":        {reason: "The same.", item: xptest.MR("b"), spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"*"}}},
		"WithCluster": {reason: "Whoever restores asked for all that is cluster-scoped.", item: xptest.MR("b"), spec: withCluster},
		"Glob": {
			reason: "Velero allows globs.",
			item:   xptest.MR("b", labelled("team-b")), spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-*"}},
		},
		"Excluded": {
			reason: "An exclusion counts for more.", item: xptest.MR("b", labelled("team-b")), want: refused(anothers),
			spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-*"}, ExcludedNamespaces: []string{"team-b"}},
		},
		"ExcludedOnly": {
			reason: "A restore that leaves out a namespace is one of the others.", item: xptest.MR("b", labelled("team-b")), want: refused(anothers),
			spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-b"}},
		},
		"ExcludedOther": {
			reason: "The others are in it.", item: xptest.MR("b", labelled("team-b")), spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-c"}},
		},
	}
	unasked := map[string]orderCase{}
	for name, tc := range cases {
		tc.asked = []*unstructured.Unstructured{tc.item}
		cases[name] = tc
		tc.asked, tc.reason = []*unstructured.Unstructured{xptest.MR("another")}, "What nobody here has named came by another action of Velero's, which may know more."
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
	mapper := ResourceMapperFn(served)
	skipped := func(item *unstructured.Unstructured) bool {
		t.Helper()
		out, err := NewOrder(Crossplane(), mapper, requested, log).Execute(inputFor(item, restore))
		if err != nil {
			t.Fatal(err)
		}

		return out.SkipRestore
	}
	if skipped(theirs) {
		t.Error("Nobody has asked for it by name.")
	}
	forged := xptest.NamespacedMR("b", xptest.ControlledBy(theirs))
	if out, err := NewOrder(Composed(), mapper, requested, log).Execute(inputFor(forged, restore)); err != nil || len(out.AdditionalItems) != 1 {
		t.Fatalf("An owner comes first; got %+v, %v", out, err)
	}
	if !skipped(theirs) {
		t.Error("A tenant has named another team's XR as an owner, and it came.")
	}
	if skipped(xptest.With(theirs, xptest.ClaimedBy(xptest.Claim("o")))) {
		t.Error("The XR of a claim that is restored is let in, whoever has asked for it.")
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
		return ordering{Warned: []string{"Not restored first: " + who + " names " + whom + ", which is outside of its namespace"}}
	}
	runOrders(t, map[string]orderCase{
		"Annotations": {
			reason: "The list of what comes first is a field that only a backup can have.",
			item:   xptest.Claim("o", xptest.Annotated(xp.FieldRestoreFirst, `["secrets/team-b/theirs"]`)),
		},
		"AnnotationsOfXR": {
			reason: "The same for an XR.", item: xptest.XR("x", xptest.Annotated(xp.FieldRestoreFirst, `["secrets/team-b/theirs"]`)), want: ordering{First: platform()},
		},
		"Usage": {
			reason: "A Usage can name another namespace.", want: outside("Usage team-a/u", "LocalBucket team-b/b"),
			item: usage("team-a", `{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket","resourceRef":{"name":"b","namespace":"team-b"}}`),
		},
		"UsageInside": {
			reason: "In its own it names what it likes.", want: ordering{First: []velero.ResourceIdentifier{id("cloud.example.org", "localbuckets", "team-a", "b")}},
			item: usage("team-a", `{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket","resourceRef":{"name":"b","namespace":"team-a"}}`),
		},
		"ClusterUsage": {
			reason: "A cluster-scoped one is the platform's.",
			want:   ordering{First: []velero.ResourceIdentifier{id("cloud.example.org", "localbuckets", "team-b", "b")}},
			item: xptest.Object("protection.crossplane.io/v1beta1", "ClusterUsage", "", "u", xptest.JSON(
				`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"LocalBucket","resourceRef":{"name":"b","namespace":"team-b"}}}}`)),
		},
		"Owner": {
			reason: "A cluster-scoped XR can be a tenant's, which is asked of itself.",
			item:   owned(metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x"}),
			want:   ordering{First: []velero.ResourceIdentifier{xorder("x")}},
		},
		"Node": {
			reason: "Kubernetes' own kinds are nobody's XRs.", item: owned(metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n"}),
			want: outside("Bucket team-a/b", "Node n"),
		},
		"Package": {
			reason: "Nor are Crossplane's own.", item: owned(metav1.OwnerReference{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: "p"}),
			want: outside("Bucket team-a/b", "Provider p"),
		},
		"Composition": {
			reason: "Nor is a Composition.", item: owned(metav1.OwnerReference{APIVersion: "apiextensions.crossplane.io/v1", Kind: "Composition", Name: "c"}),
			want: outside("Bucket team-a/b", "Composition c"),
		},
		"ClaimOfAnotherGroup": {
			reason: "An XRD has one group for claims and XRs, so a claim of another can't be the XR's.",
			item:   xptest.Claim("o", xptest.OfXR(xptest.MR("b"))),
		},
		"Claim": {
			reason: "Whether the XR is the claim's is asked of the XR.",
			item:   xptest.Claim("o", xptest.OfXR(x)), want: ordering{First: []velero.ResourceIdentifier{xorder("x")}},
		},
		"ModernXR": {
			reason: "What a namespaced XR composes is in its namespace.",
			spec:   velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}},
			item: xptest.ModernXR("x", xptest.Tree(), xptest.JSON(`{"spec":{"crossplane":{"resourceRefs":[
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
		return ordering{Warned: []string{"Not restored first: " + who +
			" names Composition orders, which comes only with the XRs that run on it; to restore it, add --include-cluster-resources=true"}}
	}
	runOrders(t, map[string]orderCase{
		"Owner":      {reason: "It comes with the XRs of the namespace.", item: owned, spec: teamA(), want: left("Bucket b")},
		"Usage":      {reason: "The same.", item: usage, spec: teamA(), want: left("Usage u")},
		"OwnerOfAll": {reason: "A restore of everything refuses nothing.", item: owned, want: asked},
		"UsageOfAll": {reason: "The same.", item: usage, want: asked},
		"XR":         {reason: "An XR asks for what it runs on.", item: xptest.XR("x"), spec: teamA(), want: ordering{First: platform()}},
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
		"Everything": {reason: "All comes by itself.", item: xptest.XR("x", xptest.Refs(b)), want: ordering{First: platform()}},
		"Labels": {
			reason: "What an XR composes may have none of its labels, and a held XR waits for it.", item: xptest.XR("x", xptest.Refs(b)), spec: labels,
			want: ordering{First: platform(bucketB())},
		},
		"EitherLabel": {reason: "The same.", item: xptest.XR("x", xptest.Refs(b)), spec: either, want: ordering{First: platform(bucketB())}},
		"Dangling": {
			reason: "What was not there when the backup was taken is not in it.", item: xptest.XR("x", xptest.Refs(gone, b), xptest.Dangling(gone)), spec: labels,
			want: ordering{First: platform(bucketB())},
		},
		"Modern": {
			reason: "The same for Crossplane v2.",
			item:   xptest.ModernXR("x", xptest.Tree(), xptest.Refs(xptest.Object(xptest.ManagedVersion, "LocalBucket", "team-a", "b"))), spec: labels,
			want: ordering{First: []velero.ResourceIdentifier{id("cloud.example.org", "localbuckets", "team-a", "b")}},
		},
		"OfAClaim": {reason: "The list of the claim has all of its tree.", item: claimed, spec: labels, want: ordering{First: platform()}},
		"OldBackup": {
			reason: "A backup that was taken without the plugin has no list on the claim, and nobody asks for what is cluster-scoped.", item: claimed, spec: teamA(),
			want: ordering{First: platform(bucketB())},
		},
		"OldBackupByLabel": {reason: "The same.", item: claimed, spec: both, want: ordering{First: platform(bucketB())}},
		"NewBackup": {
			reason: "The list of the claim has all of its tree.", item: xptest.With(claimed, xptest.Tree("buckets.cloud.example.org//b")), spec: teamA(),
			want: ordering{First: []velero.ResourceIdentifier{bucketB()}},
		},
	})
}

func TestOrderNamesWhatTheFiltersLeaveOut(t *testing.T) {
	local := xptest.Tree("localbuckets.cloud.example.org/team-b/b", "buckets.cloud.example.org//b", "secrets/team-a/s")
	secret := id("", "secrets", "team-a", "s")
	runOrders(t, map[string]orderCase{
		"Namespace": {
			reason: "Velero drops it without a word.", item: xptest.Claim("o", local), spec: teamA(),
			want: ordering{First: []velero.ResourceIdentifier{bucketB(), secret}, Warned: []string{"leaves out localbuckets.cloud.example.org/team-b/b"}},
		},
		"Cluster": {
			reason: "The tree of a claim can't come, so the claim stays held.",
			item:   xptest.Claim("o", local), spec: velerov1.RestoreSpec{IncludeClusterResources: ptr.To(false)},
			want: ordering{
				First:  []velero.ResourceIdentifier{id("cloud.example.org", "localbuckets", "team-b", "b"), secret},
				Warned: []string{"leaves out buckets.cloud.example.org//b"},
			},
		},
		"Excluded": {
			reason: "The same for an exclusion.", item: xptest.Claim("o", local), spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-*"}},
			want: ordering{
				First:  []velero.ResourceIdentifier{bucketB()},
				Warned: []string{"leaves out localbuckets.cloud.example.org/team-b/b, secrets/team-a/s"},
			},
		},
		"Nothing": {
			reason: "Nothing is left out.",
			item:   xptest.Claim("o", xptest.Tree("buckets.cloud.example.org//b")), want: ordering{First: []velero.ResourceIdentifier{bucketB()}},
		},
	})
}

func TestOrderErrors(t *testing.T) {
	selective := &velerov1.Restore{Spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}}}
	log, _ := logtest.NewNullLogger()
	malformed := xptest.XR("x", xptest.JSON(`{"spec":{"resourceRefs":7}}`))
	if _, err := NewOrder(Crossplane(), ResourceMapperFn(served), &RequestedItems{}, log).Execute(inputFor(malformed, selective)); err == nil {
		t.Error("An XR whose refs can't be read is not one that composes nothing.")
	}
	composing := xptest.XR("x", xptest.Tree(), xptest.Refs(xptest.MR("b")))
	if _, err := NewOrder(Crossplane(), ResourceMapperFn(failing), &RequestedItems{}, log).Execute(inputFor(composing, selective)); !errors.Is(err, errAPI) {
		t.Errorf("A failure that passes must not decide; got %v", err)
	}
}
