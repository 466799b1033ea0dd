package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// provider-terraform creates everything again if it does not find the state of a Workspace. It
// looks in the namespace that its code names, also if that is another one in the backup.
func TestAdoptHoldsWorkspaces(t *testing.T) {
	const name = "tfstate-net-s"
	state := func(namespace string) *unstructured.Unstructured {
		return xptest.Object("v1", "Secret", namespace, name)
	}
	workspace := func(exists, stored bool) *unstructured.Unstructured {
		u := xptest.Object("tf.m.upbound.io/v1beta1", "Workspace", "team-a", "net", xptest.Field(map[string]any{}, "spec", "forProvider"), xptest.Annotated(xp.AnnotationExternalName, "net"))
		xp.SetInputs(u, []xp.Input{{Ref: xp.RefTo(state("infra")), Exists: exists, Stored: stored}})

		return u
	}
	const bring = "velero restore create --from-backup nightly --include-namespaces infra --include-resources secrets"
	teamA := velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}}
	cases := map[string]struct {
		reason string
		live   *cluster
		item   *unstructured.Unstructured
		spec   velerov1.RestoreSpec
		held   []adoption.Input
	}{
		"LeftOut": {
			reason: "Without its state Terraform would create everything again.", live: live(), item: workspace(true, true), spec: teamA,
			held: []adoption.Input{{Namespace: "infra", Name: name, Stored: true, By: bring}},
		},
		"InNoBackup": {reason: "The backup lacks the state.", live: live(), item: workspace(true, false), spec: teamA, held: []adoption.Input{{Namespace: "infra", Name: name}}},
		"Live":       {reason: "The state is live.", live: live(state("infra")), item: workspace(true, true), spec: teamA},
		"Other":      {reason: "The state is in another cluster.", live: live(), item: workspace(false, false), spec: teamA},
		"Mapped": {
			reason: "Terraform's code still names the former namespace.", live: live(state("copy")), item: workspace(true, true),
			spec: velerov1.RestoreSpec{NamespaceMapping: map[string]string{"infra": "copy"}},
			held: []adoption.Input{{Namespace: "infra", Name: name, Stored: true, By: bring}},
		},
	}
	for test, tc := range cases {
		t.Run(test, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			restore := restoreOf(nil)
			restore.Spec = tc.spec
			restore.Spec.BackupName = "nightly"
			i := &item{Unstructured: tc.item.DeepCopy(), original: tc.item, restore: restore, log: log}
			NewAdopt(Crossplane(), tc.live, nil, log, Shared{}).findInputs(i)
			var inputs []adoption.Input
			if held := i.holdOf(); held != nil {
				inputs = held.Inputs
			}
			if diff := cmp.Diff(tc.held, inputs); diff != "" {
				t.Errorf("%s\n-want, +held for:\n%s", tc.reason, diff)
			}
			if got := reason.Join(i.notes); got != "" {
				t.Errorf("%s\nnoted %q", tc.reason, got)
			}
		})
	}
}
