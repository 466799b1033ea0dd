package hold

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// packedText returns the text, packed as a mark has it.
func packedText(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	xptest.Must(t, w.Close())

	return base64.RawStdEncoding.EncodeToString(packed.Bytes())
}

// hostileMarks returns marks that a tenant can write, which need much memory if they are read
// without bounds.
func hostileMarks(t *testing.T) map[string]string {
	t.Helper()
	list := func(entry string, bytes int) string {
		return "[" + strings.Repeat(entry+",", bytes/(len(entry)+1)-1) + entry + "]"
	}
	begin := `{"restore":"` + restoreName + `","since":"` + restoredAt + `","reason":"r","of":"XOrder.example.org/x"`
	const mib = 1 << 20
	marks := map[string]string{}
	for name, composed := range map[string]string{
		"EmptyRefs":  `{"resourceRefs":` + list(`{}`, 8*mib-64) + `}`,
		"NullRefs":   `{"resourceRefs":` + list(`null`, 8*mib-64) + `}`,
		"Conditions": `{"resourceRefs":[{}],"composedConditions":` + list(`""`, 8*mib-64) + `}`,
		"LongName":   `{"resourceRefs":[{"name":"` + strings.Repeat("x", 8*mib-64) + `"}]}`,
		"TwoLists":   `{"resourceRefs":` + list(`{}`, 4*mib) + `,"resourceRefs":` + list(`{}`, 3*mib) + `}`,
		"Unknown":    `{"resourceRefs":[{}],"other":` + list(`[]`, 7*mib) + `}`,
		"Spaces":     strings.Repeat(" ", 64*mib),
		"Nested":     strings.Repeat("[", 7*mib),
	} {
		marks[name] = begin + `,"composed":"` + packedText(t, composed) + `"}`
	}
	for name, fields := range map[string]string{
		"Listed":       `"resourceRefs":` + list(`{}`, 250<<10),
		"Managers":     `"managers":` + list(`[]`, 250<<10),
		"Environments": `"environmentConfigs":` + list(`""`, 250<<10),
		"Inputs":       `"inputs":` + list(`{}`, 250<<10),
		"TooLong":      `"resourceRefs":` + list(`{}`, 2*mib),
		"Fields":       `"managedFields":"` + packedText(t, list(`{}`, mib-64)) + `"`,
		"FieldsSpaces": `"managedFields":"` + packedText(t, strings.Repeat(" ", 64*mib)) + `"`,
	} {
		marks[name] = begin + "," + fields + "}"
	}

	return marks
}

// mostPerMark is how many bytes each reading of a mark may allocate. An item of a backup or restore
// is read a handful of times, in the memory that Velero's server has (512 MiB by default).
const mostPerMark = 4 << 20

// mostUnpacked is the same for readings that unpack the references of an XR: of marks that this
// plugin has signed and, in commands, of others. These are 64 bytes each in memory.
const mostUnpacked = 48 << 20

// Anyone who can write an object can write its mark, and Velero's server calls this plugin for each
// object. So a mark is verified before it is unpacked, and a mark that can't be verified is read
// within bounds.
func TestHostileMarksNeedLittleMemory(t *testing.T) {
	for name, mark := range hostileMarks(t) {
		t.Run(name, func(t *testing.T) {
			for of, do := range map[string]func(){
				"HoldOf": func() { _, _ = Of(xptest.XR("x", xptest.Annotated(Annotation, mark))) },
				"Key.HoldOf": func() {
					if _, err := key.HoldOf(xptest.XR("x", xptest.Annotated(Annotation, mark))); !errors.Is(err, ErrForged) {
						t.Errorf("got error %v", err)
					}
				},
				"Unverified.HoldOf": func() { _, _ = Unverified.HoldOf(xptest.XR("x", xptest.Annotated(Annotation, mark))) },
				"Put": func() {
					_, _ = Put(xptest.XR("x", xptest.Annotated(Annotation, mark)), Hold{Restore: restoreName, Since: restoredAt})
				},
				"RemoveBackedUpHold": func() { _ = RemoveBackedUpHold(xptest.XR("x", xptest.Annotated(Annotation, mark))) },
				"ForgetsManagers":    func() { _ = ForgetsManagers(xptest.XR("x", xptest.Annotated(Annotation, mark))) },
				"Finish":             func() { _, _ = Finish(xptest.XR("x", xptest.Annotated(Annotation, mark))) },
			} {
				most := uint64(mostPerMark)
				if of == "Unverified.HoldOf" {
					most = mostUnpacked
				}
				if n := xptest.Allocated(do); n > most {
					t.Errorf("%s of a mark of %d bytes allocates %d bytes, more than %d", of, len(mark), n, most)
				}
			}
		})
	}
}

// What can be packed can be read again, up to the most.
func TestMostRefs(t *testing.T) {
	for _, n := range []int{manyRefs, manyRefs + 1, xp.MostRefs, xp.MostRefs + 1} {
		h := &Hold{}
		for i := range n {
			h.Refs = append(h.Refs, xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: xptest.Namespace, Name: strconv.Itoa(i)})
			h.ComposedConditions = append(h.ComposedConditions, "Ready,Synced")
		}
		want := *h
		if err := h.packRefs(); (err == nil) != (n <= xp.MostRefs) {
			t.Fatalf("%d references: got error %v", n, err)
		}
		if n > xp.MostRefs {
			continue
		}
		if packed := len(h.Refs) < n; packed != (n > manyRefs) {
			t.Fatalf("%d references are packed: %t", n, packed)
		}
		packed := *h
		if used := xptest.Allocated(func() { _ = packed.unpackRefs() }); used > mostUnpacked {
			t.Errorf("to unpack %d references allocates %d bytes", n, used)
		}
		if err := h.unpackRefs(); err != nil {
			t.Fatalf("%d references: %v", n, err)
		}
		xptest.Same(t, want, *h, fmt.Sprint(n, " references"))
	}
}

// The API server allows 256 KiB of annotations. Its error names neither the longest one nor a next
// step.
func TestPutRefusesLargeMarks(t *testing.T) {
	var composed []*unstructured.Unstructured
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // It is the same each time.
	for range 30_000 {
		composed = append(composed, xptest.MR(fmt.Sprintf("environment-%016x", random.Uint64())))
	}
	for name, u := range map[string]*unstructured.Unstructured{
		"Refs":        xptest.XR("x", xptest.Refs(composed...)),
		"Annotations": xptest.XR("x", xptest.Refs(composed[:1000]...), xptest.Annotated("kubectl.kubernetes.io/last-applied-configuration", strings.Repeat("x", 254<<10))),
	} {
		_, err := Put(u, Hold{Restore: restoreName, Since: restoredAt})
		if err == nil || !strings.Contains(err.Error(), "cannot put a hold on XOrder x: its ") || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if _, err := Put(xptest.XR("x", xptest.Refs(composed[:10_000]...)), Hold{Restore: restoreName, Since: restoredAt}); err != nil {
		t.Errorf("a mark must fit 10,000 references: %v", err)
	}
}

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
			xptest.Must(t, json.Unmarshal([]byte(tc.want), &want))
			got := unpackManagers(packManagers(xptest.XR("x", xptest.JSON(`{"metadata":{"managedFields":`+tc.entries+`}}`))))
			xptest.Same(t, want, got, tc.reason)
		})
	}
	for _, packed := range []string{"", "x", "H4sIAAAAAAAA", "%%%"} {
		if got := unpackManagers(packed); got != nil {
			t.Errorf("%q is %v", packed, got)
		}
	}
}

// What another writer has packed does not count, and takes little memory.
func TestPackedRefsOfOthers(t *testing.T) {
	bomb, none := packedText(t, strings.Repeat(" ", 64<<20)), packedText(t, `{"resourceRefs":[]}`)
	for name, packed := range map[string]string{"Bomb": bomb, "NoRefs": none, "NoBase64": "%%%", "NoGzip": "eA", "CutOff": bomb[:100]} {
		u := xptest.XR("x", xptest.Annotated(Annotation, `{"restore":"`+restoreName+`","composed":"`+packed+`"}`))
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
	known, unknown, live := heldFor(xptest.XR("x", theirs), Hold{}, veleros), heldFor(xptest.XR("x"), Hold{}, veleros), heldFor(xptest.XR("x", theirs), Hold{})
	got := []bool{ForgetsManagers(known), ForgetsManagers(unknown), ForgetsManagers(live)}
	xptest.Same(t, []bool{false, true, false}, got, "the mark has the managers; it lacks them; the cluster has them")
}
