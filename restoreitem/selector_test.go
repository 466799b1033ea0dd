package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestAppliesTo(t *testing.T) {
	for name, selector := range map[string]velero.ResourceSelector{"Crossplane": Crossplane(), "Composed": Composed(), "Runtime": Runtime()} {
		order, _ := NewOrder(selector, nil, nil, Shared{}).AppliesTo()
		adopt, _ := NewAdopt(selector, nil, nil, nil, Shared{}).AppliesTo()
		if diff := cmp.Diff(order, adopt); diff != "" {
			t.Errorf("%s: both actions must select the same items: -order, +adopt:\n%s", name, diff)
		}
		if len(selector.IncludedResources) == 0 {
			t.Errorf("%s: Velero calls an action without an include list for every item", name)
		}
	}
	want := velero.ResourceSelector{IncludedResources: []string{"*.*.*", "secrets"}, ExcludedResources: []string{"*.k8s.io", "*.velero.io"}}
	if diff := cmp.Diff(want, Crossplane()); diff != "" {
		t.Errorf("the selector must leave out CRDs, which can exceed a plugin call, and Velero's kinds: -want, +got:\n%s", diff)
	}
	if composed, runtime := Composed().LabelSelector, Runtime().LabelSelector; composed == "" || runtime != "!"+composed {
		t.Errorf("the two actions must split the items between them; got %q and %q", composed, runtime)
	}
}

func TestFilters(t *testing.T) {
	restore := func(spec velerov1.RestoreSpec) *velerov1.Restore { return &velerov1.Restore{Spec: spec} }
	type want struct{ OfNamespaces, Selective, TeamA bool }
	cases := map[string]struct {
		reason string
		spec   velerov1.RestoreSpec
		want   want
	}{
		"All":  {reason: "A restore without filters has all of the backup.", want: want{TeamA: true}},
		"Star": {reason: "A star includes all namespaces.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"*"}}, want: want{TeamA: true}},
		"One":  {reason: "A restore can have one namespace.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}}, want: want{OfNamespaces: true, TeamA: true}},
		"Glob": {
			reason: "Velero allows globs.",
			spec:   velerov1.RestoreSpec{IncludedNamespaces: []string{"team-*"}}, want: want{OfNamespaces: true, TeamA: true},
		},
		"Another": {reason: "A restore of another namespace lacks team-a.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"team-b"}}, want: want{OfNamespaces: true}},
		"Malformed": {
			reason: "A malformed pattern matches no namespace.",
			spec:   velerov1.RestoreSpec{IncludedNamespaces: []string{"["}}, want: want{OfNamespaces: true},
		},
		"WithCluster": {
			reason: "The restore includes cluster-scoped items.",
			spec:   velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: ptr.To(true)}, want: want{TeamA: true},
		},
		"WithoutCluster": {
			reason: "The restore excludes cluster-scoped items.",
			spec:   velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: ptr.To(false)}, want: want{OfNamespaces: true, TeamA: true},
		},
		"Excluded": {
			reason: "An exclusion takes precedence over an inclusion, and can be a glob.",
			spec:   velerov1.RestoreSpec{IncludedNamespaces: []string{"team-*"}, ExcludedNamespaces: []string{"*-a"}}, want: want{OfNamespaces: true},
		},
		"OnlyExcluded": {
			reason: "An exclusion makes it a restore of some namespaces.",
			spec:   velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-b"}}, want: want{OfNamespaces: true, TeamA: true},
		},
		"StarWithout": {
			reason: "A star with an exclusion makes it a restore of some namespaces.", spec: velerov1.RestoreSpec{IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{"team-a"}}, want: want{OfNamespaces: true},
		},
		"OnlyExcludedWithCluster": {
			reason: "The restore includes cluster-scoped items despite the exclusion.", want: want{TeamA: true},
			spec: velerov1.RestoreSpec{ExcludedNamespaces: []string{"team-b"}, IncludeClusterResources: ptr.To(true)},
		},
		"Labels": {reason: "A label selector selects some items.", spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}}, want: want{Selective: true, TeamA: true}},
		"OrLabels": {
			reason: "OrLabelSelectors select some items.", spec: velerov1.RestoreSpec{OrLabelSelectors: []*metav1.LabelSelector{{}}}, want: want{Selective: true, TeamA: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := restore(tc.spec)
			got := want{OfNamespaces: ofNamespaces(r), Selective: isSelective(r), TeamA: included(r, "team-a")}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTargetNamespace(t *testing.T) {
	restore := restoreOf(map[string]string{"team-a": "copy", "": "nowhere"})
	for namespace, want := range map[string]string{"team-a": "copy", "team-b": "team-b", "": ""} {
		if got := targetNamespace(namespace, restore); got != want {
			t.Errorf("a mapping must not move cluster-scoped items: %q is restored to %q, want %q", namespace, got, want)
		}
	}
}
