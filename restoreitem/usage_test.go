package restoreitem

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// usage returns a Usage of bucket b by bucket n.
func usage(o ...xptest.Option) *unstructured.Unstructured {
	return xptest.Object(xp.GroupAPIExtensions+"/v1beta1", "Usage", "", "u", append([]xptest.Option{xptest.JSON(`{"spec":{
		"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"b"}},
		"by":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"n"}}}}`)}, o...)...)
}

func TestAdoptUsages(t *testing.T) {
	b, n := xptest.MR("b"), xptest.MR("n")
	old, x := xptest.XR("x", xptest.UID("old")), xptest.XR("x", xptest.UID("new"))
	composed := usage(xptest.ControlledBy(old))
	const command = "kubectl label Usage.v1beta1.apiextensions.crossplane.io u crossplane.io/composite- && kubectl delete Usage.v1beta1.apiextensions.crossplane.io u"
	type want struct {
		Skip bool
		// Warned are the codes of the warnings, and Clears reports whether one has the command.
		Warned []reason.Code
		Clears bool
	}
	runAdopts(t, map[string]adoptCase[want]{
		"Whole": {reason: "A Usage comes back unchanged when both of its objects are live.", item: usage(), live: live(b, n)},
		"Leftover": {
			reason: "A Usage that its XR dropped would protect for ever.", item: composed, live: live(b, n, x),
			want: want{Skip: true, Warned: []reason.Code{reason.UsageLeftBehind}, Clears: true},
		},
		"LeftoverOfHeld": {
			reason: "A Usage that its restored XR does not list would protect for ever too.", item: composed, live: live(b, n, heldWith(x)),
			want: want{Skip: true, Warned: []reason.Code{reason.UsageLeftBehind}, Clears: true},
		},
		"XRUnreadable": {
			reason: "An unreadable XR may list the Usage.", item: composed,
			live: live(b, n, xptest.With(heldWith(x), xptest.Field("odd", "spec", "resourceRefs"))), want: want{Warned: []reason.Code{reason.RestoredWithoutOwner}, Clears: true},
		},
		"XRGone": {
			reason: "A Usage without its XR still protects the restored object.", item: composed, live: live(b, n),
			want: want{Warned: []reason.Code{reason.RestoredWithoutOwner}, Clears: true},
		},
		"Terminating": {
			reason: "Velero cannot restore a live Usage that is being deleted.", item: composed,
			live: live(b, n, xptest.With(x, xptest.Refs(composed)), xptest.With(composed, xptest.Deleting())),
			want: want{Skip: true, Warned: []reason.Code{reason.UsageDeleted}},
		},
		"TerminatingAlone": {
			reason: "The API server deletes a user's own Usage at once.", item: usage(), live: live(b, n, usage(xptest.Deleting())),
			want: want{Skip: true, Warned: []reason.Code{reason.UsageDeleted}},
		},
		"TerminatingInBackup": {
			reason: "A Usage that was terminating in the backup does not come back.", item: usage(xptest.Deleting()), live: live(b, n),
			want: want{Skip: true, Warned: []reason.Code{reason.UsageDeleted}},
		},
		"Live": {reason: "Velero leaves a live Usage as it is.", item: usage(), live: live(usage())},
		"NoUsingObject": {
			reason: "Without the using object the protection never ends.", item: usage(), live: live(b),
			want: want{Warned: []reason.Code{reason.UsageIncomplete}, Clears: true},
		},
		"NoProtectedObject": {
			reason: "Without the protected object a Usage is useless.", item: usage(), live: live(n), want: want{Warned: []reason.Code{reason.UsageIncomplete}},
		},
		"Selected":   {reason: "In a restore by labels the objects may come later.", item: usage(), restore: restoreWith(velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}})},
		"NoAnswer":   {reason: "Without an answer a Usage must not come back.", item: usage(), live: failingCluster(errAPI), err: errAPI},
		"WithReason": {reason: "A Usage with a reason needs no using object.", item: usage(xptest.Without("spec", "by")), live: live(b)},
		"Unresolved": {reason: "A selector finds the objects that are live.", item: usage(xptest.Without("spec", "of", "resourceRef"))},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		exists := slices.ContainsFunc(out.cluster.objects, xp.IsUsage)
		if got := slices.Contains(out.cluster.asked, "owner Usage /u"); got != exists {
			t.Errorf("the plugin read the Usage: %t, it exists: %t", got, exists)
		}

		return want{Skip: out.SkipRestore, Warned: out.codes, Clears: strings.Contains(strings.Join(out.logged, "\n"), command)}
	})
}

// A deletion that a user attempted before the backup is not replayed.
func TestAdoptRemovesDeletionAttempts(t *testing.T) {
	tried := xptest.Annotated(xp.AnnotationDeletionAttempt, "Background")
	for name, item := range map[string]*unstructured.Unstructured{
		"MR":        xptest.MR("b", tried),
		"XR":        xptest.XR("x", tried),
		"ConfigMap": xptest.Object("v1", "ConfigMap", "team-a", "c", tried, xptest.Labelled(xp.LabelInUse, "true")),
		"Thing":     xptest.Object("example.org/v1", "Thing", "team-a", "t", tried, xptest.Annotated("theirs", "kept")),
	} {
		out := adopt(t, live(), item, restoreOf(nil))
		if out.err != nil || out.object == nil || xp.HasDeletionAttempt(out.object) || len(out.logged) != 1 {
			t.Errorf("%s must come back without the annotation, and log that; got %+v", name, out)

			continue
		}
		if diff := cmp.Diff(item.GetLabels(), out.object.GetLabels()); diff != "" {
			t.Errorf("%s must stay protected: -before, +after:\n%s", name, diff)
		}
		if name == "Thing" && out.object.GetAnnotations()["theirs"] != "kept" {
			t.Errorf("other annotations must stay: %v", out.object.GetAnnotations())
		}
	}
}

func TestAdoptSkipsWhatIsRebuilt(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	a := NewAdopt(Crossplane(), failingCluster(errAPI), nil, log, Shared{})
	for range 3 {
		for _, item := range []*unstructured.Unstructured{
			xptest.Object("pkg.crossplane.io/v1beta1", "Lock", "", "lock"), xptest.Object("ops.crossplane.io/v1alpha1", "Operation", "", "o"),
		} {
			if out := execute(t, a, item, restoreOf(nil)); !out.SkipRestore {
				t.Errorf("the restore must skip an object that the control plane creates; got %+v", out)
			}
		}
	}
	if n := len(hook.AllEntries()); n != 2 {
		t.Errorf("want one log line for each skipped kind, got %d", n)
	}
}

func TestAdoptPackageRevisions(t *testing.T) {
	pkg := func(policy string) *unstructured.Unstructured {
		return xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p", xptest.UID("new"), xptest.Field(policy, "spec", "revisionActivationPolicy"))
	}
	old := xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p", xptest.UID("old"))
	revision := xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p-1", xptest.ControlledBy(old), xptest.Labelled(xp.LabelPackage, "p"))
	orphan := xptest.With(revision, xptest.Without("metadata", "ownerReferences"))
	type want struct {
		Skip  bool
		Owner string
	}
	runAdopts(t, map[string]adoptCase[want]{
		"Automatic": {reason: "Two active revisions would compete for the package's objects.", item: revision, live: live(pkg("Automatic")), want: want{Skip: true}},
		"Manual":    {reason: "A revision that a user activated must come back active.", item: revision, live: live(pkg("Manual")), want: want{Owner: "new"}},
		"Absent":    {reason: "Without its package the package manager does not manage the revision.", item: revision, live: live(), want: want{Skip: true}},
		"Orphan":    {reason: "A revision without an owner has no package that manages it.", item: orphan, live: failingCluster(errAPI), want: want{Skip: true}},
		"API":       {reason: "A temporary API error must not decide whether the revision comes back.", item: revision, live: failingCluster(errAPI), err: errAPI},
	}, func(_ *testing.T, out adopted) want {
		got := want{Skip: out.SkipRestore && strings.HasSuffix(strings.Join(out.logged, "\n"), "[Rebuilt]")}
		if out.object != nil {
			got.Owner = string(out.object.GetOwnerReferences()[0].UID)
		}

		return got
	})
}

func TestAdoptServiceAccountsOfPackages(t *testing.T) {
	const role = "eks.amazonaws.com/role-arn"
	revision := xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "p-1", xptest.UID("old"))
	of := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("v1", "ServiceAccount", "crossplane-system", name, append([]xptest.Option{
			xptest.ControlledBy(revision),
			xptest.JSON(`{"metadata":{"managedFields":[{"manager":"crossplane","fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"old\"}":{}}}}}]}}`),
		}, o...)...)
	}
	assumes := xptest.Annotated(role, "arn:aws:iam::1:role/crossplane")
	annotations := map[string]string{role: "arn:aws:iam::1:role/crossplane"}
	type want struct {
		Skip        bool
		Annotations map[string]string
		Noted       bool
	}
	runAdopts(t, map[string]adoptCase[want]{
		"AsMade": {reason: "The package manager creates the ServiceAccount again.", item: of("p-1"), live: failingCluster(errAPI), want: want{Skip: true}},
		"Annotated": {
			reason: "The package manager does not write a user's annotations, which a provider may need for authentication.", item: of("p-1", assumes), live: live(),
			want: want{Annotations: annotations, Noted: true},
		},
		"Running": {
			reason: "The revision is installed, so Velero adds the annotations to the live ServiceAccount.", item: of("p-1", assumes), live: live(revision),
			want: want{Annotations: annotations},
		},
		"Named": {
			reason: "A name that the user chose does not change with the revision.", item: of("provider", assumes), live: failingCluster(errAPI),
			want: want{Annotations: annotations},
		},
		"API": {reason: "A temporary API error must not decide whether the ServiceAccount comes back.", item: of("p-1", assumes), live: failingCluster(errAPI), err: errAPI},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		if out.object == nil {
			return want{Skip: out.SkipRestore}
		}
		if len(out.object.GetOwnerReferences()) > 0 || strings.Contains(fmt.Sprint(out.object.Object["metadata"]), "f:ownerReferences") {
			t.Errorf("the garbage collector deletes an object whose owner is missing; got %v", out.object)
		}

		return want{Annotations: out.object.GetAnnotations(), Noted: strings.Contains(out.note, "annotation "+role) && strings.Contains(out.note, "[SettingsMisplaced]")}
	})
}

// newDefinition returns an XRD in v2, as a backup of Crossplane v2 has it.
func newDefinition(scope string) *unstructured.Unstructured {
	return xptest.Object(xp.GroupAPIExtensions+"/v2", "CompositeResourceDefinition", "", "xorders.example.org", xptest.Field(scope, "spec", "scope"),
		xptest.Field(map[string]any{"kind": "OrderClaim", "plural": "orderclaims"}, "spec", "claimNames"))
}

func TestAdoptChangesVersion(t *testing.T) {
	legacy := xptest.With(newDefinition(xp.ScopeLegacy), xptest.Annotated("example.org/theirs", "kept"))
	v1 := stripped(legacy)
	xp.StripBackupMetadata(v1)
	v1.SetAPIVersion(xp.GroupAPIExtensions + "/v1")
	runAdopts(t, map[string]adoptCase[*unstructured.Unstructured]{
		"Legacy":    {reason: "v2 of XRDs refuses what v1 accepts, and Velero creates an item in the version that an action returns.", item: legacy, want: v1},
		"InV1":      {reason: "v1 accepts it.", item: v1},
		"ScopeOfV2": {reason: "v2 accepts what it was made for.", item: newDefinition("Namespaced")},
	}, func(_ *testing.T, out adopted) *unstructured.Unstructured { return out.object })
}

func TestReadinessChecksCreatedVersion(t *testing.T) {
	for reason, tc := range map[string]struct {
		item    *unstructured.Unstructured
		refused bool
	}{
		"Crossplane v1 has no scopes, but all its XRDs are such.": {item: newDefinition(xp.ScopeLegacy)},
		"Crossplane v1 can't have it.":                            {item: newDefinition("Cluster"), refused: true},
	} {
		c := conversion{versions: xp.Versions{Kind: xp.KindDefinition.GroupKind(), Stored: "v1", Served: []string{"v1"}}}
		if _, err := newOrder(Shared{Ready: c.readiness()}).Execute(inputFor(tc.item, restoreOf(nil))); (err != nil) != tc.refused {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// The backup has XRDs only in v2, and inspect needs no cluster.
func TestDryRunCreatesLegacyDefinition(t *testing.T) {
	results := dryRunOf(t, nil, restoreOf(nil), newDefinition(xp.ScopeLegacy))
	if diff := cmp.Diff([]string{"create CompositeResourceDefinition xorders.example.org"}, resultLines(results)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
