package adopter

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

func survey(t *testing.T, s *apiserver.Server, scope Scope) *Survey {
	t.Helper()
	scope.Velero = "velero"
	got, err := ReadSurvey(t.Context(), clusterOf(s), scope)
	xptest.Must(t, err)

	return got
}

// problems returns the problems that validation finds in a survey.
func problems(s *Survey) []string {
	var all []string
	for _, p := range diagnosis.Validate(s.Objects, s.State) {
		all = append(all, string(p.Code)+" "+p.Object.String())
	}

	return all
}

func TestSurvey(t *testing.T) {
	a, b := apiserver.ClaimedTree("team-a", "a"), apiserver.ClaimedTree("team-b", "b")
	config := xptest.Object("v1", "ConfigMap", "team-a", "settings", xptest.ControlledBy(xptest.XR("xa")))
	a[1] = xptest.With(a[1], xptest.Refs(a[2], config))
	objects := slices.Concat(a, b, []*unstructured.Unstructured{config})
	far := xptest.XR("far", xptest.Refs(xptest.MR("c"), xptest.MR("gone")))
	type args struct {
		reason  string
		objects []*unstructured.Unstructured
		// forbidden is a resource that may not be listed.
		forbidden string
		scope     Scope
		want      []string
		// buckets and configmaps are the label selectors of the lists.
		buckets    string
		configmaps []string
	}
	xptest.Each(t, map[string]args{
		"Whole": {
			reason: "Kinds of Crossplane's categories are listed whole, and others by the label of composed resources.", objects: objects,
			configmaps: []string{"crossplane.io/composite"},
		},
		"Namespace": {
			reason: "The survey reads only the cluster-scoped MRs that belong to the namespace.", objects: objects, scope: Scope{Namespace: "team-a"},
			buckets: "crossplane.io/claim-namespace=team-a", configmaps: []string{"crossplane.io/composite"},
		},
		"Unlabelled": {
			reason:  "The survey looks for an object without the label among all objects.",
			objects: slices.Concat(a, []*unstructured.Unstructured{xptest.With(config, xptest.Without("metadata", "labels"))}), configmaps: []string{"", "crossplane.io/composite"},
		},
		"Forbidden": {reason: "The survey names a kind that it can't read and reports no problems of it.", objects: objects, forbidden: "buckets", want: []string{"NotRead Bucket *"}},
		"Nested": {
			reason: "A tree counts as a whole if one of its objects is in the namespace.", scope: Scope{Namespace: "team-a"},
			objects: []*unstructured.Unstructured{
				xptest.XR("top", xptest.Refs(xptest.XR("mid")), xptest.Reconciled()), xptest.XR("mid", xptest.Refs(config), xptest.ControlledBy(xptest.XR("top")), xptest.Reconciled()),
				xptest.With(config, xptest.Without("metadata", "ownerReferences"), xptest.ControlledBy(xptest.XR("mid"))),
			},
		},
		"UnlistedOfAnother": {
			reason: "An MR that an XR of another namespace lists is no orphan.", scope: Scope{Namespace: "team-a"},
			objects: slices.Concat(objects, []*unstructured.Unstructured{far, xptest.MR("c", xptest.Labelled(xp.LabelClaimNamespace, "team-a"), xptest.ControlledBy(far), xptest.Reconciled())}),
		},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewCategorized(tc.objects...)
		if tc.forbidden != "" {
			apiserver.Forbid(s, tc.forbidden)
		}
		xptest.Same(t, tc.want, problems(survey(t, s, tc.scope)), tc.reason)
		if tc.configmaps == nil {
			return
		}
		want := []string{"buckets " + tc.buckets, "compositeresourcedefinitions ", "orderclaims ", "restores ", "usages crossplane.io/composite", "xorders "}
		for _, selector := range tc.configmaps {
			want = append(want, "configmaps "+selector)
		}
		got := s.Requests("list")
		slices.Sort(want)
		slices.Sort(got)
		xptest.Same(t, want, got, tc.reason)
	})
}

// A command with a namespace must not hold, release or delete what belongs to others.
func TestSurveyOfNamespace(t *testing.T) {
	type objects = []*unstructured.Unstructured
	alone, gone := xptest.MR("alone", xptest.Reconciled()), objects{xptest.MR("gone")}
	foreign, other := xptest.XR("other", xptest.ControlledBy(xptest.XR("top")), xptest.Reconciled()), xptest.XR("other", xptest.Reconciled())
	inner := xptest.XR("inner", xptest.Labelled(xp.LabelComposite, "xa"), xptest.Refs(alone), xptest.Reconciled())
	kept := xptest.MR("kept", xptest.ControlledBy(xptest.XR("xa")), xptest.Reconciled())
	type args struct {
		reason string
		// lists are what the XR of team-a lists besides its own MR.
		lists, others objects
		// more is what is found besides the claim of team-a.
		more string
		// nested is true if the XR inner has to be in the tree.
		nested bool
	}
	xptest.Each(t, map[string]args{
		"Sound":       {reason: "The tree of team-b is not read."},
		"Missing":     {reason: "To find a missing MR all MRs are listed.", lists: gone},
		"Foreign":     {reason: "An XR can list the MR of another XR.", lists: objects{xptest.MR("bb")}},
		"ForeignXR":   {reason: "An XR can list the XR that another one composes.", lists: objects{other}, others: objects{foreign}},
		"ClaimedXR":   {reason: "An XR can list that of another claim.", lists: objects{xptest.XR("xb")}},
		"UnrelatedXR": {reason: "An XR can list one without a claim.", lists: objects{other}, others: objects{other}},
		"NestedXR":    {reason: "Velero alone restores what an XR composes without its controller.", lists: objects{inner}, others: objects{inner, alone}, nested: true},
		"Alone":       {reason: "An MR without an XR belongs to no namespace.", lists: gone, others: objects{alone}},
		"Unlisted":    {reason: "An MR that its XR no longer lists belongs to the XR.", lists: gone, others: objects{kept}, more: "Bucket kept"},
		"Labelled": {
			reason: "The label names the namespace of a lost claim.", others: objects{xptest.With(alone, xptest.Labelled(xp.LabelClaimNamespace, "team-a"))}, more: "Bucket alone",
		},
	}, func(t *testing.T, tc args) {
		a := apiserver.ClaimedTree("team-a", "a")
		a[1] = xptest.With(a[1], xptest.Refs(append([]*unstructured.Unstructured{a[2]}, tc.lists...)...))
		got := survey(t, apiserver.NewCategorized(slices.Concat(a, apiserver.ClaimedTree("team-b", "b"), tc.others)...), Scope{Namespace: "team-a"})
		var roots []string
		for _, n := range got.Trees() {
			roots = append(roots, n.String())
		}
		if want := strings.TrimSpace("OrderClaim team-a/a " + tc.more); strings.Join(roots, " ") != want {
			t.Errorf("%s\nwant %s, got %v", tc.reason, want, roots)
		}
		nested := false
		for n := range report.All(got.Trees()...) {
			nested = nested || n.Name == "inner" && len(n.Children) > 0
		}
		if nested != tc.nested {
			t.Errorf("%s\nthe nested XR is in the tree: %t", tc.reason, nested)
		}
	})
}

func TestSurveyFails(t *testing.T) {
	s := apiserver.NewCategorized(apiserver.ClaimedTree("team-a", "a")...)
	apiserver.Forbid(s, "*")
	if _, err := ReadSurvey(t.Context(), clusterOf(s), Scope{}); err == nil || !strings.Contains(err.Error(), "rights") {
		t.Errorf("without read access the survey must fail; got error %v", err)
	}
	s = apiserver.NewCategorized()
	delete(s.Kinds, xptest.LegacyVersion)
	delete(s.Kinds, xptest.ManagedVersion)
	if _, err := ReadSurvey(t.Context(), clusterOf(s), Scope{}); err == nil || !strings.Contains(err.Error(), "is Crossplane installed") {
		t.Errorf("without Crossplane the survey must fail; got error %v", err)
	}
}

func TestSurveyOfHolds(t *testing.T) {
	tree := apiserver.ClaimedTree("team-a", "a")
	for i, u := range tree[:2] {
		tree[i] = xptest.With(apiserver.Restored(u), xptest.Labelled(xp.LabelClaimNamespace, "team-a"))
	}
	restore := xptest.Object("velero.io/v1", "Restore", "velero", "monday", xptest.JSON(`{"spec":{"backupName":"b"},"status":{"phase":"WaitingForPluginOperations"}}`))
	revision := "CompositionRevision " + xptest.RevisionName
	type args struct {
		reason  string
		objects []*unstructured.Unstructured
		// forbidden is a resource that may not be listed.
		forbidden string
		// want are the problems, and waits is what the XR's plan waits for, "" if it has no plan.
		want  []string
		waits string
	}
	xptest.Each(t, map[string]args{
		"UnderWay": {
			reason: "The plugin reads what a held object needs.", objects: append(tree[:3:3], restore), want: []string{"Held OrderClaim team-a/a", "Held XOrder xa"}, waits: revision,
		},
		"Gone": {reason: "A hold without its Restore is leaked.", objects: tree, want: []string{"LeakedHold OrderClaim team-a/a", "LeakedHold XOrder xa"}, waits: revision},
		"RestoresForbidden": {
			reason: "Without the Restores the plugin can't know whether a hold is leaked.", objects: tree, forbidden: "restores",
			want: []string{"Held OrderClaim team-a/a", "Held XOrder xa", "NotRead Restore *"}, waits: revision,
		},
		"RevisionsForbidden": {
			reason: "An object without read access must not count as missing.", objects: append(tree[:3:3], restore), forbidden: "compositionrevisions",
			want: []string{"Held OrderClaim team-a/a", "Held XOrder xa", "NotRead CompositionRevision *"},
		},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewCategorized(tc.objects...)
		if tc.forbidden != "" {
			apiserver.Forbid(s, tc.forbidden)
		}
		got := survey(t, s, Scope{})
		xptest.Same(t, tc.want, problems(got), tc.reason)
		plan, planned := got.State.Plans[xp.RefTo(tree[1]).ID()]
		if planned != (tc.waits != "") || !strings.Contains(waiting(plan), tc.waits) {
			t.Errorf("%s\ngot the plan %+v", tc.reason, plan)
		}
	})
}

func TestSurveyReadsNoSecrets(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled())
	secret := xptest.Object("v1", "Secret", "team-a", "s", xptest.ControlledBy(x), xptest.Labelled(xp.LabelComposite, "x"),
		xptest.Annotated("kubectl.kubernetes.io/last-applied-configuration", `{"data":{"password":"x"}}`), xptest.Field(map[string]any{"password": "x"}, "data"))
	s := apiserver.NewTransport()
	s.Put(xptest.With(x, xptest.Refs(secret)), secret)
	got, err := ReadSurvey(t.Context(), connect(t, s), Scope{Velero: "velero"})
	xptest.Must(t, err)
	u := got.Get(xp.RefTo(secret))
	if u == nil || u.Object["data"] != nil || len(u.GetAnnotations()) != 0 {
		t.Errorf("a Secret must keep its owner and nothing else; got %v", u)
	}
	if p := problems(got); len(p) > 0 {
		t.Errorf("the tree must have no problems; got %v", p)
	}
	if asked := s.TakeRequests(); asked["list metadata of secrets"] != 1 || asked["list secrets"] > 0 {
		t.Errorf("no Secret may be read whole; requested %v", asked)
	}
}

// A validation reports the definition of MRs to activate.
func TestSurveyNamesInactiveDefinitions(t *testing.T) {
	mr := xptest.MR("b")
	mrd := xptest.ManagedDefinition("buckets", mr, xptest.Inactive())
	s := apiserver.NewCategorized(mrd, xptest.XR("x", xptest.Reconciled(), xptest.Refs(mr)))
	s.Serve(apiserver.DefinitionsOfMRs.GroupVersion().String(), metav1.APIResource{Name: apiserver.DefinitionsOfMRs.Resource, Kind: xp.KindManagedDefinition.Kind})
	delete(s.Kinds, xptest.ManagedVersion)
	got := survey(t, s, Scope{})
	if found := diagnosis.Validate(got.Objects, got.State); !slices.ContainsFunc(found, func(p report.Problem) bool {
		return p.Object == xp.RefTo(mr) && strings.Contains(p.Reason, mrd.GetName()) && strings.HasPrefix(p.Next, "activate it: ")
	}) {
		t.Errorf("validate prints %v", found)
	}
}
