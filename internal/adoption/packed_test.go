package adoption

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
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
		"Some":     {reason: "Packed managers can be read again.", entries: `[` + kubectl + `]`, want: `[` + kubectl + `]`},
		"Own":      {reason: "The managers of an earlier hold are gone.", entries: `[` + kubectl + `,{"manager":"velero-plugin-for-crossplane","operation":"Apply"}]`, want: `[` + kubectl + `]`},
		"Reset":    {reason: "Reset managedFields have no managers.", entries: `[{}]`, want: `null`},
		"Many":     {reason: "A mark has no room for thousands of managers, and the backup has them.", entries: "[" + many.String() + kubectl + "]", want: `null`},
		"Damaged":  {reason: "Unreadable managers are not kept.", entries: `["x",7]`, want: `null`},
		"NoFields": {reason: "The object has no managed fields.", entries: `[]`, want: `null`},
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

// The mark of an XR that composes many has all references, and fits into an annotation.
func TestPackRefs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // It is the same each time.
	cases := map[string]struct {
		reason    string
		namespace string
		refs      int
		packed    bool
	}{
		"Few":        {reason: "Users can read a short list of references.", refs: manyRefs},
		"Many":       {reason: "A long list of references is packed.", refs: manyRefs + 1, packed: true},
		"Most":       {reason: "A mark has room for 10,000 references with Crossplane's generated names.", refs: 10_000, packed: true},
		"Namespaced": {reason: "The references are in the namespace of the XR.", namespace: "shop", refs: 10_000, packed: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			composed := make([]*unstructured.Unstructured, tc.refs)
			for i := range composed {
				composed[i] = xptest.MR(fmt.Sprintf("environment-%05x-%012x", random.Uint32(), random.Uint64()>>16), xptest.In(tc.namespace))
			}
			xr := xptest.XR("x", xptest.In(tc.namespace), xptest.Refs(composed...))
			want, err := xp.CompositeFrom(xr).SavedRefs()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Put(xr, Hold{Restore: restoreName, Since: restoredAt}); err != nil {
				t.Fatal(err)
			}
			if err := key.Sign(xr, tc.namespace); err != nil {
				t.Fatal(err)
			}
			mark := xp.Annotation(xr, AnnotationHold)
			t.Logf("%d references need a mark of %d bytes", tc.refs, len(mark))
			if got := strings.Contains(mark, `"composed":`); got != tc.packed {
				t.Errorf("%s packed: %t", tc.reason, got)
			}
			for name, read := range map[string]func(*unstructured.Unstructured) (*Hold, error){"Unverified": Unverified.HoldOf, "Key": key.HoldOf} {
				h, err := read(xr)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if diff := cmp.Diff(want, h.Refs); diff != "" || h.Composed != "" {
					t.Errorf("%s: %s\n-want, +got:\n%s", name, tc.reason, diff)
				}
			}
		})
	}
}

// What another writer has packed does not count, and takes little memory.
func TestPackedRefsOfOthers(t *testing.T) {
	bomb, none := packedText(t, strings.Repeat(" ", 64<<20)), packedText(t, `{"resourceRefs":[]}`)
	for name, packed := range map[string]string{"Bomb": bomb, "NoRefs": none, "NoBase64": "%%%", "NoGzip": "eA", "CutOff": bomb[:100]} {
		u := xptest.XR("x", xptest.Annotated(AnnotationHold, `{"restore":"`+restoreName+`","composed":"`+packed+`"}`))
		if _, err := Unverified.HoldOf(u); !errors.Is(err, errPacked) {
			t.Errorf("%s: got error %v", name, err)
		}
		if _, err := key.HoldOf(u); !errors.Is(err, ErrForged) {
			t.Errorf("%s with the key: got error %v", name, err)
		}
	}
}

// Managers are lost only if neither the mark nor the cluster has them.
func TestForgetsManagers(t *testing.T) {
	veleros := xptest.JSON(`{"metadata":{"managedFields":[{"manager":"velero-server","time":"2999-01-01T00:00:00Z"}]}}`)
	theirs := xptest.JSON(`{"metadata":{"managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{}}}]}}`)
	known := heldFor(xptest.XR("x", theirs), Hold{}, veleros)
	if ForgetsManagers(known) {
		t.Error("the mark has the managers")
	}
	if !ForgetsManagers(heldFor(xptest.XR("x"), Hold{}, veleros)) {
		t.Error("the mark must lack the managers")
	}
	if ForgetsManagers(heldFor(xptest.XR("x", theirs), Hold{})) {
		t.Error("the cluster has the managers")
	}
}
