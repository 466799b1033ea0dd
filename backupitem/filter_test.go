package backupitem

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestTreeWarnsOfWhatTheFiltersLeaveOut(t *testing.T) {
	mr := xptest.MR("b", xptest.PublishesTo("infra", "s"))
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	reaching := xptest.XR("y")
	local := xptest.Object(xptest.ManagedVersion, "LocalBucket", "team-a", "l", xptest.ControlledBy(reaching))
	elsewhereXR := xptest.XR("y", xptest.NeverComposed(), xptest.Without("spec", "compositionRef"), xptest.Refs(local))
	c := clusterOf(local, xptest.XRD("xorders.example.org"), xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr)), xptest.XR("x", xptest.ClaimedBy(claim)))
	resources := velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, IncludedResources: []string{"*"}}
	var policy velerov1.BackupSpec
	if err := json.Unmarshal([]byte(`{"includedNamespaces":["team-a"],"resourcePolicy":{"kind":"ConfigMap","name":"p"}}`), &policy); err != nil {
		t.Fatal(err)
	}
	const elsewhere = "secrets infra/s: its namespace is not in the backup; add infra to --include-namespaces if it can't be made anew"
	const cluster = "xorders.example.org x: the backup is made with --include-cluster-resources=false, so the tree can't be restored from it"
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		spec   velerov1.BackupSpec
		want   []string
		// beyond says that Velero is told to look beyond its filters.
		beyond bool
	}{
		"Everything": {reason: "Nothing is left out.", item: mr},
		"Included":   {reason: "The namespace is in the list.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a", "infra"}}},
		"Glob":       {reason: "Velero allows globs.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"inf*"}}},
		"Star":       {reason: "Velero allows a star for all.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}}},
		"NotIncluded": {
			reason: "A password may be nowhere else.", item: mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}, beyond: true,
		},
		"SomeResources": {reason: "Whoever chooses resources chooses what is left out.", item: mr, spec: resources, want: []string{elsewhere}},
		"WithoutCluster": {
			reason: "What can't be restored from the backup is not made whole by its Secret.", item: mr,
			spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}, IncludeClusterResources: ptr.To(false)}, want: []string{elsewhere},
		},
		"Policy": {
			reason: "A resource policy can leave anything out.", item: mr, want: []string{elsewhere},
			spec: policy,
		},
		"NotASecret": {
			reason: "Only connection secrets are taken from elsewhere.", item: elsewhereXR, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-b"}},
			want: []string{"localbuckets.cloud.example.org team-a/l: its namespace is not in the backup; add team-a to --include-namespaces if it can't be made anew"},
		},
		"Excluded": {
			reason: "The same for an exclusion.",
			item:   mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"*"}, ExcludedNamespaces: []string{"infra"}}, want: []string{elsewhere},
		},
		"BadPattern": {
			reason: "A pattern that can't be read matches nothing.",
			item:   mr, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"["}, ExcludedNamespaces: []string{"infra", "["}}, want: []string{elsewhere},
		},
		"NoCluster": {
			reason: "The tree of a claim is cluster-scoped.",
			item:   claim, spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(false)}, want: []string{cluster},
		},
		"WithCluster":   {reason: "Then it is in.", item: claim, spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(true)}},
		"NamespaceOnly": {reason: "Additional items are in by default.", item: claim, spec: velerov1.BackupSpec{IncludedNamespaces: []string{"team-a"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// A tenant who wrote the annotation would have Velero take what the filters leave out.
			got := backUp(c, xptest.With(tc.item, xp.SetMustInclude), &velerov1.Backup{Spec: tc.spec})
			if diff := cmp.Diff(tc.want, got.Left); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if _, beyond := got.Stored.GetAnnotations()[xp.AnnotationMustInclude]; beyond != tc.beyond {
				t.Errorf("%s\nbeyond the filters: got %v, want %v", tc.reason, beyond, tc.beyond)
			}
			for _, i := range slices.Concat(got.Items, got.Before) {
				to := xp.Ref{Kind: i.GroupResource.String(), Namespace: i.Namespace, Name: i.Name}.String() + ": "
				if i.Namespace != "" && slices.ContainsFunc(tc.want, func(s string) bool { return strings.HasPrefix(s, to) }) {
					t.Errorf("%s\n%s is left out and asked for", tc.reason, to)
				}
			}
		})
	}
}
