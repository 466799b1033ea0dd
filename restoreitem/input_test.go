package restoreitem

import (
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestAdoptTellsOfMissingInputSecrets(t *testing.T) {
	mr := xptest.MR("db", xptest.JSON(`{"spec":{"forProvider":{"passwordSecretRef":{"namespace":"infra","name":"password","key":"p"}}}}`))
	password := func(namespace string) *unstructured.Unstructured {
		return xptest.Object("v1", "Secret", namespace, "password", xptest.Field("Opaque", "type"))
	}
	const told = "Bucket db has its provider read Secret infra/password, which is neither in the cluster nor was restored before it"
	cases := map[string]struct {
		reason  string
		live    *cluster
		came    *unstructured.Unstructured
		mapping map[string]string
		item    *unstructured.Unstructured
		want    string
	}{
		"Missing":  {reason: "Its provider may make another password.", live: live(), item: mr, want: told},
		"Live":     {reason: "It is there.", live: live(password("infra")), item: mr},
		"Restored": {reason: "The restore has brought it since it has looked.", live: live(), came: password("infra"), item: mr},
		"Mapped": {
			reason: "It comes back where the MR says then.", live: live(), mapping: map[string]string{"infra": "copy"}, came: password("infra"), item: mr,
		},
		"Elsewhere": {reason: "One of that name elsewhere is another.", live: live(password("team-a")), item: mr, want: told},
		"Unknown":   {reason: "That nobody knows is told too.", live: nobody(errAPI), item: mr, want: "Cannot find out whether Secret infra/password is there, which the provider of Bucket db reads"},
		"None":      {reason: "Most MRs read none.", live: nobody(errAPI), item: xptest.MR("db")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			asks, restore := &Asks{}, restoreOf(tc.mapping)
			if tc.came != nil {
				if _, err := NewOrder(Crossplane(), ResourceMapperFn(served), asks, log).Execute(inputFor(tc.came, restore)); err != nil {
					t.Fatal(err)
				}
			}
			a := NewAdopt(Crossplane(), tc.live, nil, log).Knowing(asks)
			i := &item{Unstructured: tc.item.DeepCopy(), original: tc.item, restore: restore, log: log}
			a.warnOfInputs(i)
			a.warnOfInputs(i) // The next that reads the same.
			got := strings.Join(i.notes, "; ")
			if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") || len(i.notes) > 1 {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
