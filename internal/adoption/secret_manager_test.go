package adoption

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The publisher of a Secret made itself the owner, and must manage that again.
func TestTakeControlKeepsThePublisher(t *testing.T) {
	claim := xptest.Claim("o", xptest.UID("claim"))
	cases := map[string]struct {
		reason, entries, want string
	}{
		"Data":   {reason: "Who has written the data publishes.", entries: `{"manager":"crossplane","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{},"f:type":{}}}`, want: "crossplane"},
		"NoData": {reason: "Who has made it empty does too.", entries: `{"manager":"crossplane","operation":"Update","apiVersion":"v1","fieldsV1":{"f:type":{}}}`, want: "crossplane"},
		"Others": {
			reason: "Who has only made it does not.", want: "provider",
			entries: `{"manager":"velero","operation":"Update","apiVersion":"v1","fieldsV1":{"f:type":{}}},{"manager":"provider","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{}}}`,
		},
		"Several": {
			reason: "Nobody knows which of them.", entries: `{"manager":"a","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{}}},{"manager":"b","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := xptest.Secret("s", xptest.JSON(`{"metadata":{"managedFields":[`+tc.entries+`]}}`))
			if c := takeControl(claim, s); c.Manager != tc.want {
				t.Errorf("%s got %q", tc.reason, c.Manager)
			}
		})
	}
}
