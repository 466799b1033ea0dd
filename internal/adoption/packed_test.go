package adoption

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestPackManagers(t *testing.T) {
	const kubectl = `{"manager":"kubectl","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:region":{}}}}`
	var many strings.Builder
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // It is the same each time.
	for range 2000 {
		many.WriteString(`{"manager":"` + strconv.FormatUint(random.Uint64(), 36) + `"},`)
	}
	cases := map[string]struct {
		reason, entries, want string
	}{
		"Some":     {reason: "They can be read again.", entries: `[` + kubectl + `]`, want: `[` + kubectl + `]`},
		"Own":      {reason: "An earlier hold's are over.", entries: `[` + kubectl + `,{"manager":"velero-plugin-for-crossplane","operation":"Apply"}]`, want: `[` + kubectl + `]`},
		"Reset":    {reason: "Nobody manages anything.", entries: `[{}]`, want: `null`},
		"Many":     {reason: "A mark is not for thousands; the backup has them.", entries: "[" + many.String() + kubectl + "]", want: `null`},
		"Damaged":  {reason: "What can't be read is not kept.", entries: `["x",7]`, want: `null`},
		"NoFields": {reason: "There are none.", entries: `[]`, want: `null`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var want []map[string]any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			got := unpackManagers(packManagers(xptest.XR("x", xptest.JSON(`{"metadata":{"managedFields":`+tc.entries+`}}`))))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	for _, packed := range []string{"", "x", "H4sIAAAAAAAA", "%%%"} {
		if got := unpackManagers(packed); got != nil {
			t.Errorf("%q is %v", packed, got)
		}
	}
}

// Only what neither the mark nor the cluster has is lost.
func TestForgetsManagers(t *testing.T) {
	veleros := xptest.JSON(`{"metadata":{"managedFields":[{"manager":"velero-server","time":"2999-01-01T00:00:00Z"}]}}`)
	theirs := xptest.JSON(`{"metadata":{"managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{}}}]}}`)
	known := heldFor(xptest.XR("x", theirs), Hold{}, veleros)
	if ForgetsManagers(known) {
		t.Error("the mark has them")
	}
	if !ForgetsManagers(heldFor(xptest.XR("x"), Hold{}, veleros)) {
		t.Error("the mark has none")
	}
	if ForgetsManagers(heldFor(xptest.XR("x", theirs), Hold{})) {
		t.Error("they were written back")
	}
}
