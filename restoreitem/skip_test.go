package restoreitem

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

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
	const reported = "ServiceAccount crossplane-system/p-1: Restored without its owner, the package revision p-1, because users added to it: annotation " + role +
		". To have that with all revisions, use a DeploymentRuntimeConfig and packagePullSecrets [SettingsMisplaced]"
	type want struct {
		Skip        bool
		Annotations map[string]string
		Note        string
		Err         error
	}
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		live   *cluster
		want   want
	}{
		"AsMade": {reason: "The package manager creates the ServiceAccount again.", item: of("p-1"), live: failingCluster(errAPI), want: want{Skip: true}},
		"Annotated": {
			reason: "The package manager does not write a user's annotations, which a provider may need for authentication.", item: of("p-1", assumes), live: live(),
			want: want{Annotations: map[string]string{role: "arn:aws:iam::1:role/crossplane"}, Note: reported},
		},
		"Running": {
			reason: "The revision is installed, so Velero adds the annotations to the live ServiceAccount.", item: of("p-1", assumes), live: live(revision),
			want: want{Annotations: map[string]string{role: "arn:aws:iam::1:role/crossplane"}},
		},
		"Named": {
			reason: "A name that the user chose does not change with the revision.", item: of("provider", assumes), live: failingCluster(errAPI),
			want: want{Annotations: map[string]string{role: "arn:aws:iam::1:role/crossplane"}},
		},
		"API": {reason: "A temporary API error must not decide whether the ServiceAccount comes back.", item: of("p-1", assumes), live: failingCluster(errAPI), want: want{Err: errAPI}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := adopt(t, tc.live, tc.item, restoreOf(nil))
			got := want{Err: out.err, Note: out.note}
			if out.err == nil {
				got.Skip = out.SkipRestore
			}
			if out.object != nil {
				got.Annotations = out.object.GetAnnotations()
				if owners := out.object.GetOwnerReferences(); len(owners) > 0 {
					t.Errorf("the garbage collector deletes an object whose owner is missing; got %v", owners)
				}
				if managers := fmt.Sprint(out.object.Object["metadata"]); strings.Contains(managers, "f:ownerReferences") {
					t.Errorf("managedFields must not have the dropped owner; got %v", managers)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
