package backupitem

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestTreeTakesEnvironmentConfigs(t *testing.T) {
	x := xptest.XR("x")
	environment := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", "", name, o...)
	}
	reading := func(entries string) *unstructured.Unstructured {
		return xptest.Revision(xptest.RevisionName, x, xptest.JSON(`{"spec":{"pipeline":[{"step":"env","input":{"spec":{"environmentConfigs":[`+entries+`]}}}]}}`))
	}
	const named = `{"ref":{"name":"e"}}`
	const selected = `{"type":"Selector","selector":{}}`
	const selects = "what its functions read ["
	kept := []velero.ResourceIdentifier{id(xp.GroupAPIExtensions, "environmentconfigs", "", "e")}
	cases := map[string]struct {
		reason   string
		revision *unstructured.Unstructured
		objects  []*unstructured.Unstructured
		spec     velerov1.BackupSpec
		want     []velero.ResourceIdentifier
		left     []string
	}{
		"Named": {reason: "A function may leave out resources if its EnvironmentConfig is missing.", revision: reading(named), objects: []*unstructured.Unstructured{environment("e")}, want: kept},
		"KeptOut": {
			reason: "An EnvironmentConfig that a user excludes from backups stays out.", revision: reading(named),
			objects: []*unstructured.Unstructured{environment("e", xptest.Labelled("velero.io/exclude-from-backup", "true"))},
			left:    []string{"EnvironmentConfig e [ExcludedByLabel]"},
		},
		"Selected": {reason: "A selector does not name the EnvironmentConfig.", revision: reading(selected), objects: []*unstructured.Unstructured{environment("e")}, left: []string{selects}},
		"SelectedOfAll": {
			reason: "The backup has all EnvironmentConfigs.", revision: reading(selected), spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(true)},
		},
		"SelectedOfNamespaces": {
			reason: "A backup of namespaces may lack namespaced objects that a function selects.", revision: reading(selected), left: []string{selects},
			spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(true), IncludedNamespaces: []string{"team-a"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(append(tc.objects, tc.revision, xptest.Composition(xptest.CompositionName, x), xptest.XRD("xorders.example.org"))...)
			got := backUp(t, c, xptest.XR("x", xptest.Refs()), &velerov1.Backup{Spec: tc.spec})
			notEnvironment := func(i velero.ResourceIdentifier) bool { return i.GroupResource != xp.ResourceEnvironment }
			for _, list := range [][]velero.ResourceIdentifier{got.Items, got.Before} {
				list = slices.DeleteFunc(list, notEnvironment)
				if diff := cmp.Diff(len(tc.want), len(list)); diff != "" || len(list) > 0 && list[0] != tc.want[0] {
					t.Errorf("%s\ngot %v, want %v", tc.reason, list, tc.want)
				}
			}
			if !slices.EqualFunc(tc.left, got.Left, func(want, got string) bool { return strings.HasPrefix(got, want) }) {
				t.Errorf("%s\nwarned of %q, want %q", tc.reason, got.Left, tc.left)
			}
			c.checkCost(t)
		})
	}
}

// Thousands of XRs can run on a pipeline that names a missing EnvironmentConfig.
func TestMissingEnvironmentConfigsAreReadAFewTimes(t *testing.T) {
	x := xptest.XR("x")
	revision := xptest.Revision(xptest.RevisionName, x, xptest.JSON(`{"spec":{"pipeline":[{"step":"env","input":{"environmentConfigs":[{"ref":{"name":"e"}}]}}]}}`))
	c := clusterOf(revision, xptest.Composition(xptest.CompositionName, x), xptest.XRD("xorders.example.org"))
	s := newSession(t, c)
	for n := range 2 * maxSingleReads {
		xr := xptest.XR(fmt.Sprint("x", n), xptest.Refs())
		s.related(xr)
		s.take(xr, &velerov1.Backup{})
	}
	asked := c.asked[xp.ID{Group: xp.GroupAPIExtensions, Kind: "EnvironmentConfig", Name: "e"}]
	if asked > maxSingleReads || len(s.codes()) != 1 {
		t.Errorf("asked %d times, warned %d times", asked, len(s.codes()))
	}
}
