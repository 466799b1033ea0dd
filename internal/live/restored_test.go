package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestMoved(t *testing.T) {
	restored := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{xp.LabelRestore: "monday"}) }
	external := xptest.Annotated(xp.AnnotationExternalName, "external")
	mr := xptest.NamespacedMR("b", external)
	s := newServer(xptest.With(mr, restored), xptest.NamespacedMR("made", external), xptest.NamespacedMR("other", restored))
	c := s.cluster()
	for range 2 {
		got, err := c.Moved(t.Context(), mr.GroupVersionKind(), "external")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]xp.Managing{xp.ManagingOf(mr)}, got); diff != "" {
			t.Errorf("the result must have the restored MR: -want, +got:\n%s", diff)
		}
	}
	if lists := s.requests("list"); len(lists) != 1 {
		t.Errorf("a kind must be listed once; got %v", lists)
	}
	s.failOn("list", "*", 1<<30, errDown)
	if _, err := withoutPauses(s.cluster()).Moved(t.Context(), mr.GroupVersionKind(), "external"); err == nil {
		t.Error("a failed list must be an error")
	}
}
