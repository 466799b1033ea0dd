package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A tenant can write 1.5 MiB into each of any number of XRs.
func TestAdoptRemembersXRsWithinALimit(t *testing.T) {
	const most = 64 << 10
	large := strings.Repeat("x", 1<<20)
	log, _ := logtest.NewNullLogger()
	a := NewAdopt(Crossplane(), live(), nil, log, Shared{})
	for _, name := range []string{"a", "b", "c", "d"} {
		x := xptest.XR(name, xptest.Refs(xptest.MR("b")), xptest.Field(large, "spec", "parameters"), xptest.Annotated("example.org/large", large[:100<<10]))
		if _, err := a.Execute(inputFor(x, restoreOf(nil))); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.remembered.encoded) != 4 || a.remembered.size > most {
		t.Errorf("%d XRs take %d bytes, although only Crossplane's part of them is needed", len(a.remembered.encoded), a.remembered.size)
	}
}

func TestRememberedXRs(t *testing.T) {
	var r rememberedXRs
	half := make([]byte, rememberedLimit/2)
	a, b, c := xp.ID{Name: "a"}, xp.ID{Name: "b"}, xp.ID{Name: "c"}
	if !r.add(a, half) || !r.add(b, half) || !r.add(b, half) {
		t.Error("there must be room for two halves, and for one again")
	}
	if r.add(c, []byte{1}) {
		t.Error("there must be no room for more than the limit")
	}
	if _, ok := r.take(c); ok {
		t.Error("what is left out must not be there")
	}
	if _, ok := r.take(a); !ok || !r.add(c, half) {
		t.Error("what is taken must make room")
	}
}

// What is remembered must be all that a take-over reads.
func TestAdoptTakesOverWithWhatItRemembers(t *testing.T) {
	for name, build := range map[string]func(string, ...xptest.Option) *unstructured.Unstructured{"v1": xptest.XR, "v2": xptest.XRV2} {
		t.Run(name, func(t *testing.T) {
			backup := build("x", xptest.Refs(xptest.MR("b")), xptest.UID("old"), xptest.PublishesTo("infra", "s"), xptest.Published(), xptest.Annotated(xp.AnnotationExternalName, "e"),
				xptest.Labelled(xp.LabelComposite, "x"))
			whole, part := build("x", xptest.Without("spec", "resourceRefs"), xptest.Without("spec", "crossplane")), build("x", xptest.Without("spec", "resourceRefs"), xptest.Without("spec", "crossplane"))
			kept := xp.Inheritance(backup)
			if err := xp.Inherit(whole, backup); err != nil {
				t.Fatal(err)
			}
			if err := xp.Inherit(part, kept); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole, part); diff != "" {
				t.Errorf("-from the whole XR, +from what is remembered:\n%s", diff)
			}
			paths := cmpopts.SortSlices(func(a, b []string) bool { return strings.Join(a, "/") < strings.Join(b, "/") })
			if diff := cmp.Diff(xp.InheritedPaths(backup), xp.InheritedPaths(kept), paths); diff != "" {
				t.Errorf("-paths of the whole XR, +of what is remembered:\n%s", diff)
			}
			if r, ok := xp.SecretRef(kept); name == "v1" && (!ok || !xp.HasFlag(kept, xp.FieldPublished) || r.Name != "s") {
				t.Errorf("its Secret is lost: %v", r)
			}
			if !xp.IsComposite(kept) {
				t.Error("it must still be an XR")
			}
		})
	}
}
