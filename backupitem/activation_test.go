package backupitem

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestTreeTakesWhatActivatesKinds(t *testing.T) {
	xr := xptest.XR("x")
	mr := xptest.MR("b", xptest.ControlledBy(xr))
	mrd := xptest.ManagedDefinition("buckets", mr)
	isActivation := func(i velero.ResourceIdentifier) bool {
		return i.GroupResource == xp.ResourceManagedDefinition || i.GroupResource == xp.ResourceActivationPolicy
	}
	definition := id(xp.GroupAPIExtensions, "managedresourcedefinitions", "", "buckets.cloud.example.org")
	policy := func(name string) velero.ResourceIdentifier {
		return id(xp.GroupAPIExtensions, "managedresourceactivationpolicies", "", name)
	}
	keptOut := xptest.Labelled("velero.io/exclude-from-backup", "true")
	exact := xptest.ActivationPolicy("exact", xptest.Activating("buckets.cloud.example.org"))
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		spec    velerov1.BackupSpec
		want    []velero.ResourceIdentifier
		left    []string
	}{
		"Activated": {
			reason: "The backup takes only the policies that activate the kind.",
			objects: []*unstructured.Unstructured{
				mrd, exact, xptest.ActivationPolicy("wild", xptest.Activating("*.cloud.example.org")),
				xptest.ActivationPolicy("other", xptest.Activating("queues.cloud.example.org", "*.example.com")),
			},
			want: []velero.ResourceIdentifier{policy("exact"), policy("wild"), definition},
		},
		"ByHand": {reason: "A user activated a kind that no policy activates.", objects: []*unstructured.Unstructured{mrd}, want: []velero.ResourceIdentifier{definition}},
		"NoSuch": {reason: "Some kinds have no definition.", objects: []*unstructured.Unstructured{exact}},
		"KeptOut": {
			reason:  "An object that a user excludes from backups stays out.",
			objects: []*unstructured.Unstructured{xptest.With(mrd, keptOut), exact}, want: []velero.ResourceIdentifier{policy("exact")},
			left: []string{"ManagedResourceDefinition buckets.cloud.example.org [ExcludedByLabel]"},
		},
		"Filtered": {
			reason: "The plugin names a filtered object once.", objects: []*unstructured.Unstructured{mrd, exact},
			spec: velerov1.BackupSpec{ExcludedResources: []string{"managedresourcedefinitions.apiextensions.crossplane.io"}},
			want: []velero.ResourceIdentifier{policy("exact")},
			left: []string{"managedresourcedefinitions.apiextensions.crossplane.io buckets.cloud.example.org [ExcludedByFilter]"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			runsOn, _ := platform()
			for kind, item := range map[string]*unstructured.Unstructured{"XR": xptest.With(xr, xptest.Refs(mr)), "MR": mr} {
				c := clusterOf(slices.Concat(tc.objects, runsOn, []*unstructured.Unstructured{mr, xr})...)
				c.activates = true
				got := backUp(t, c, item, &velerov1.Backup{Spec: tc.spec})
				not := func(i velero.ResourceIdentifier) bool { return !isActivation(i) }
				byName := cmpopts.SortSlices(func(a, b velero.ResourceIdentifier) bool { return a.Name < b.Name })
				if diff := cmp.Diff(tc.want, slices.DeleteFunc(got.Items, not), cmpopts.EquateEmpty(), byName); diff != "" {
					t.Errorf("%s: %s\n-want, +taken along:\n%s", kind, tc.reason, diff)
				}
				before := tc.want
				if kind == "MR" {
					before = nil // It comes with its XR, or alone, and requests no platform.
				}
				if diff := cmp.Diff(before, slices.DeleteFunc(got.Before, not), cmpopts.EquateEmpty(), byName); diff != "" {
					t.Errorf("%s: %s\n-want, +restored first:\n%s", kind, tc.reason, diff)
				}
				if !slices.EqualFunc(tc.left, got.Left, func(want, got string) bool { return strings.HasPrefix(got, want) }) {
					t.Errorf("%s: %s\nwarned of %q, want %q", kind, tc.reason, got.Left, tc.left)
				}
				c.checkCost(t)
			}
		})
	}
}

// Thousands of MRs are of one kind: what activates it is read once, and one warning names what the
// backup can't have.
func TestActivationCosts(t *testing.T) {
	mrd := xptest.ManagedDefinition("buckets", xptest.MR("b"))
	c := clusterOf(mrd, xptest.ActivationPolicy("all", xptest.Activating("*")))
	c.activates = true
	s := newSession(t, c)
	for n := range 100 {
		s.take(xptest.MR(fmt.Sprint("b", n)), &velerov1.Backup{Spec: velerov1.BackupSpec{IncludeClusterResources: ptr.To(false)}})
	}
	c.checkCost(t)
	if n := len(s.codes()); n != 2 {
		t.Errorf("warned %d times, want one warning for each object", n)
	}
}

// A warning names what can't be read, and the MR is stored.
func TestActivationCannotBeRead(t *testing.T) {
	mr := xptest.MR("b")
	mrd := xptest.ManagedDefinition("buckets", mr)
	c := clusterOf(mrd).without(mrd)
	c.activates = true
	got := backUp(t, c, mr, &velerov1.Backup{})
	want := []string{unread("ManagedResourceDefinition buckets.cloud.example.org")}
	if diff := cmp.Diff(want, got.Left); diff != "" || got.Stored == nil {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
