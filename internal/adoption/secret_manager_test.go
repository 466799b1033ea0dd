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
		"Data":   {reason: "The writer of the data is the publisher.", entries: `{"manager":"crossplane","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{},"f:type":{}}}`, want: "crossplane"},
		"NoData": {reason: "The creator of a Secret without data is the publisher too.", entries: `{"manager":"crossplane","operation":"Update","apiVersion":"v1","fieldsV1":{"f:type":{}}}`, want: "crossplane"},
		"Others": {
			reason: "A creator that wrote no data is not the publisher.", want: "provider",
			entries: `{"manager":"velero","operation":"Update","apiVersion":"v1","fieldsV1":{"f:type":{}}},{"manager":"provider","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{}}}`,
		},
		"Several": {
			reason: "With several writers the publisher is unknown.", entries: `{"manager":"a","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{}}},{"manager":"b","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{}}}`,
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
