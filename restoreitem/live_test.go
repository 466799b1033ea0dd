package restoreitem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// With --existing-resource-policy=update Velero would write the backup's resourceRefs into a live XR, which may compose something else by now.
func TestAdoptLeavesWhatIsLive(t *testing.T) {
	xr := xptest.XR("x")
	composition := xptest.Composition("c", xr)
	cases := map[string]struct {
		reason string
		policy velerov1.PolicyType
		item   *unstructured.Unstructured
		finder Finder
		skip   bool
		op     bool
		err    error
	}{
		"Live":   {reason: "What is live stays as it is.", policy: velerov1.PolicyTypeUpdate, item: xr, finder: live(xr), skip: true, op: true},
		"Absent": {reason: "What is not there comes back.", policy: velerov1.PolicyTypeUpdate, item: xr, finder: live(), op: true},
		"None":   {reason: "Without the policy Velero leaves it by itself, and nobody needs to be asked.", item: xr, finder: nobody(errAPI), op: true},
		"API":    {reason: "Without an answer nothing is written.", policy: velerov1.PolicyTypeUpdate, item: xr, finder: nobody(errAPI), err: errAPI},
		"Platform": {
			reason: "A restore of one namespace must not change the Composition of all.",
			policy: velerov1.PolicyTypeUpdate, item: composition, finder: live(composition), skip: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			a := NewAdopt(tc.finder, RankerFn(noRanks), nil, log)
			restore := restoreOf(nil)
			restore.Spec.ExistingResourcePolicy = tc.policy
			out, err := a.Execute(inputFor(tc.item.DeepCopy(), restore))
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("%s\n-want error, +got error:\n%s", tc.reason, diff)
			}
			if err != nil {
				return
			}
			if out.SkipRestore != tc.skip || (out.OperationID != "") != tc.op {
				t.Errorf("%s\nskipped %v, operation %q", tc.reason, out.SkipRestore, out.OperationID)
			}
		})
	}
}
