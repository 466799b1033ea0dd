package live

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// surveyed returns a server with the categories of Crossplane's and providers' kinds.
func surveyed(objects ...*unstructured.Unstructured) *server {
	s := newServer()
	var all []runtime.Object
	for _, u := range objects {
		all = append(all, u)
	}
	kinds := map[string][]metav1.APIResource{
		xptest.LegacyVersion: {
			{Name: "xorders", Kind: xptest.LegacyKind, Verbs: metav1.Verbs{"list"}, Categories: []string{"composite"}},
			{Name: "orderclaims", Kind: xptest.ClaimKind, Namespaced: true, Verbs: metav1.Verbs{"list"}, Categories: []string{"claim"}},
		},
		xptest.ManagedVersion: {{Name: "buckets", Kind: xptest.ManagedKind, Verbs: metav1.Verbs{"list"}, Categories: []string{"managed"}}},
		"v1":                  s.kinds["v1"],
		"velero.io/v1":        {{Name: "restores", Kind: "Restore", Namespaced: true}},
		xp.GroupAPIExtensions + "/v1": {
			{Name: "compositionrevisions", Kind: "CompositionRevision"},
			{Name: "compositeresourcedefinitions", Kind: "CompositeResourceDefinition"},
		},
		xp.GroupProtection + "/v1beta1": {{Name: "usages", Kind: "Usage", Namespaced: true}},
	}
	names := map[schema.GroupVersionResource]string{definitionsOfMRs: "ManagedResourceDefinitionList"}
	for groupVersion, resources := range kinds {
		gv, _ := schema.ParseGroupVersion(groupVersion)
		for _, r := range resources {
			names[gv.WithResource(r.Name)] = r.Kind + "List"
		}
	}
	s.kinds = kinds
	s.FakeDynamicClient = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), names, all...)

	return s
}

func survey(t *testing.T, s *server, scope Scope) *Survey {
	t.Helper()
	c := s.cluster()
	c.metadataPages = metadataOf()
	scope.Velero = "velero"
	got, err := c.Survey(context.Background(), scope)
	if err != nil {
		t.Fatal(err)
	}

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

func claimed(namespace, name string) []*unstructured.Unstructured {
	x := xptest.XR("x" + name)
	labels := func(u *unstructured.Unstructured) {
		xptest.Labelled(xp.LabelClaimNamespace, namespace)(u)
		xptest.Reconciled()(u)
	}
	mr := xptest.MR("b"+name, xptest.ControlledBy(x), labels)
	claim := xptest.Claim(name, xptest.In(namespace), xptest.OfXR(x), xptest.Reconciled())

	return []*unstructured.Unstructured{claim, xptest.XR("x"+name, xptest.Refs(mr), xptest.ClaimedBy(claim), labels), mr}
}

func TestSurvey(t *testing.T) {
	a, b := claimed("team-a", "a"), claimed("team-b", "b")
	config := xptest.Object("v1", "ConfigMap", "team-a", "settings", xptest.ControlledBy(xptest.XR("xa")))
	a[1] = xptest.With(a[1], xptest.Refs(a[2], config))
	objects := append(append(a, b...), config)
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		change  func(s *server)
		scope   Scope
		want    []string
		asked   []string
	}{
		"Whole": {
			reason: "Kinds of Crossplane's categories are listed whole, and others by the label of composed resources.", objects: objects,
			asked: []string{
				"buckets ", "compositeresourcedefinitions ", "configmaps crossplane.io/composite", "orderclaims ", "restores ", "usages crossplane.io/composite", "xorders ",
			},
		},
		"Namespace": {
			reason: "The survey reads only the cluster-scoped MRs that belong to the namespace.", objects: objects, scope: Scope{Namespace: "team-a"},
			asked: []string{
				"buckets crossplane.io/claim-namespace=team-a", "compositeresourcedefinitions ", "configmaps crossplane.io/composite", "orderclaims ", "restores ",
				"usages crossplane.io/composite", "xorders ",
			},
		},
		"Unlabelled": {
			reason:  "The survey looks for an object without the label among all objects.",
			objects: append(append([]*unstructured.Unstructured{}, a...), xptest.With(config, xptest.Without("metadata", "labels"))),
			asked: []string{
				"buckets ", "compositeresourcedefinitions ", "configmaps ", "configmaps crossplane.io/composite", "orderclaims ", "restores ",
				"usages crossplane.io/composite", "xorders ",
			},
		},
		"Forbidden": {
			reason: "The survey names a kind that it can't read and reports no problems of it.", objects: objects,
			change: func(s *server) {
				s.failOn("list", "buckets", 1<<30, apierrors.NewForbidden(buckets.GroupResource(), "", errDown))
			},
			want: []string{"NotRead Bucket *"},
		},
		"Nested": {
			reason: "A tree counts as a whole if one of its objects is in the namespace.", scope: Scope{Namespace: "team-a"},
			objects: []*unstructured.Unstructured{
				xptest.XR("top", xptest.Refs(xptest.XR("mid")), xptest.Reconciled()), xptest.XR("mid", xptest.Refs(config), xptest.ControlledBy(xptest.XR("top")), xptest.Reconciled()),
				xptest.With(config, xptest.Without("metadata", "ownerReferences"), xptest.ControlledBy(xptest.XR("mid"))),
			},
		},
		"UnlistedOfAnother": {
			reason: "An MR that an XR of another namespace lists is no orphan.", scope: Scope{Namespace: "team-a"},
			objects: append(append([]*unstructured.Unstructured{}, objects...),
				xptest.XR("far", xptest.Refs(xptest.MR("c"), xptest.MR("gone"))), xptest.MR("c", xptest.Labelled(xp.LabelClaimNamespace, "team-a"), xptest.ControlledBy(xptest.XR("far")), xptest.Reconciled())),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := surveyed(tc.objects...)
			if tc.change != nil {
				tc.change(s)
			}
			got := survey(t, s, tc.scope)
			if diff := cmp.Diff(tc.want, problems(got)); diff != "" {
				t.Errorf("%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
			if tc.asked == nil {
				return
			}
			if diff := cmp.Diff(tc.asked, sortedRequests(s)); diff != "" {
				t.Errorf("%s\n-want, +requested:\n%s", tc.reason, diff)
			}
		})
	}
}

// A command with a namespace must not hold, release or delete what belongs to others.
func TestSurveyOfNamespace(t *testing.T) {
	alone := xptest.MR("alone", xptest.Reconciled())
	cases := map[string]struct {
		reason string
		// lists are the MRs that the XR of team-a lists besides its own.
		lists  []*unstructured.Unstructured
		others []*unstructured.Unstructured
		want   []string
		// nested is true if the XR inner has to be in the tree.
		nested bool
	}{
		"Sound":   {reason: "The tree of team-b is not read.", want: []string{"OrderClaim team-a/a"}},
		"Missing": {reason: "To find a missing MR all MRs are listed.", lists: []*unstructured.Unstructured{xptest.MR("gone")}, want: []string{"OrderClaim team-a/a"}},
		"Foreign": {reason: "An XR can list the MR of another XR.", lists: []*unstructured.Unstructured{xptest.MR("bb")}, want: []string{"OrderClaim team-a/a"}},
		"ForeignXR": {
			reason: "An XR can list the XR that another one composes.", lists: []*unstructured.Unstructured{xptest.XR("other")},
			others: []*unstructured.Unstructured{xptest.XR("other", xptest.ControlledBy(xptest.XR("top")), xptest.Reconciled())},
			want:   []string{"OrderClaim team-a/a"},
		},
		"ClaimedXR": {reason: "An XR can list that of another claim.", lists: []*unstructured.Unstructured{xptest.XR("xb")}, want: []string{"OrderClaim team-a/a"}},
		"UnrelatedXR": {
			reason: "An XR can list one without a claim.", lists: []*unstructured.Unstructured{xptest.XR("other")},
			others: []*unstructured.Unstructured{xptest.XR("other", xptest.Reconciled())}, want: []string{"OrderClaim team-a/a"},
		},
		"NestedXR": {
			reason: "Velero alone restores what an XR composes without its controller.", lists: []*unstructured.Unstructured{xptest.XR("inner")},
			others: []*unstructured.Unstructured{
				xptest.XR("inner", xptest.Labelled(xp.LabelComposite, "xa"), xptest.Refs(alone), xptest.Reconciled()), alone,
			},
			want: []string{"OrderClaim team-a/a"}, nested: true,
		},
		"Alone": {
			reason: "An MR without an XR belongs to no namespace.", lists: []*unstructured.Unstructured{xptest.MR("gone")},
			others: []*unstructured.Unstructured{alone}, want: []string{"OrderClaim team-a/a"},
		},
		"Unlisted": {
			reason: "An MR that its XR no longer lists belongs to the XR.", lists: []*unstructured.Unstructured{xptest.MR("gone")},
			others: []*unstructured.Unstructured{xptest.MR("kept", xptest.ControlledBy(xptest.XR("xa")), xptest.Reconciled())},
			want:   []string{"OrderClaim team-a/a", "Bucket kept"},
		},
		"Labelled": {
			reason: "The label names the namespace of a lost claim.",
			others: []*unstructured.Unstructured{xptest.With(alone, xptest.Labelled(xp.LabelClaimNamespace, "team-a"))},
			want:   []string{"OrderClaim team-a/a", "Bucket alone"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := claimed("team-a", "a")
			a[1] = xptest.With(a[1], xptest.Refs(append([]*unstructured.Unstructured{a[2]}, tc.lists...)...))
			got := survey(t, surveyed(slices.Concat(a, claimed("team-b", "b"), tc.others)...), Scope{Namespace: "team-a"})
			var roots []string
			for _, n := range got.Trees() {
				roots = append(roots, n.String())
			}
			if diff := cmp.Diff(tc.want, roots); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
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
}

func sortedRequests(s *server) []string {
	asked := s.requests("list")
	slices.Sort(asked)

	return asked
}

func TestSurveyFails(t *testing.T) {
	s := surveyed(claimed("team-a", "a")...)
	s.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{}, "", errDown)
	})
	if _, err := s.cluster().Survey(context.Background(), Scope{}); err == nil || !strings.Contains(err.Error(), "rights") {
		t.Errorf("without read access the survey must fail; got error %v", err)
	}
	s = surveyed()
	delete(s.kinds, xptest.LegacyVersion)
	delete(s.kinds, xptest.ManagedVersion)
	if _, err := s.cluster().Survey(context.Background(), Scope{}); err == nil || !strings.Contains(err.Error(), "is Crossplane installed") {
		t.Errorf("without Crossplane the survey must fail; got error %v", err)
	}
}
