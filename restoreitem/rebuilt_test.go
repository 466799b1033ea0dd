package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestAdoptSkipsWhatIsRebuilt(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	a := NewAdopt(Crossplane(), failingCluster(errAPI), nil, log, Shared{})
	for range 3 {
		for _, item := range []*unstructured.Unstructured{
			xptest.Object("pkg.crossplane.io/v1beta1", "Lock", "", "lock"), xptest.Object("ops.crossplane.io/v1alpha1", "Operation", "", "o"),
		} {
			out, err := a.Execute(inputFor(item, restoreOf(nil)))
			if err != nil || !out.SkipRestore {
				t.Errorf("the restore must skip an object that the control plane creates; got %+v, %v", out, err)
			}
		}
	}
	var reported []string
	for _, e := range hook.AllEntries() {
		reported = append(reported, e.Level.String()+" "+e.Data["kind"].(string)) //nolint:forcetypeassert // The test fails.
	}
	if diff := cmp.Diff([]string{"info Lock", "info Operation"}, reported); diff != "" {
		t.Errorf("want one log line for each skipped kind: -want, +got:\n%s", diff)
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
		Skip   bool
		Owner  string
		Logged []string
		Err    error
	}
	left := func(why string) want {
		return want{Skip: true, Logged: []string{"info: It is not restored, because a restored one is of no use: " + why + " [Rebuilt]"}}
	}
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		live   *cluster
		want   want
	}{
		"Automatic": {
			reason: "Two active revisions would compete for the package's objects.", item: revision, live: live(pkg("Automatic")),
			want: left("its package creates it again; a restored one has no controller"),
		},
		"Manual": {reason: "A revision that a user activated must come back active.", item: revision, live: live(pkg("Manual")), want: want{Owner: "new"}},
		"Absent": {reason: "Without its package the package manager does not manage the revision.", item: revision, live: live(), want: left("its package p is not in the cluster")},
		"Orphan": {reason: "A revision without an owner has no package that manages it.", item: orphan, live: failingCluster(errAPI), want: left("it has no package that shows how it is activated")},
		"API":    {reason: "A temporary API error must not decide whether the revision comes back.", item: revision, live: failingCluster(errAPI), want: want{Err: errAPI}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, tc.live, tc.item, restoreOf(nil))
			got := want{Err: out.err}
			if out.err == nil {
				got = want{Skip: out.SkipRestore, Logged: out.logged}
			}
			if out.object != nil {
				for _, o := range out.object.GetOwnerReferences() {
					got.Owner += string(o.UID)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
