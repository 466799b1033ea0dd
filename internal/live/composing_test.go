package live

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestComposing(t *testing.T) {
	x, of := xptest.XR("x", xptest.Refs(xptest.MR("b"))), xptest.Field("other", "spec", "compositionRef", "name")
	s := newServer(x, xptest.XR("waits"), xptest.XR("others", xptest.Refs(xptest.MR("b")), of))
	got, err := s.cluster().Composing(t.Context(), adoption.Unverified, x.GroupVersionKind(), xptest.CompositionName)
	if diff := cmp.Diff([]xp.Ref{xp.RefTo(x)}, got); diff != "" || err != nil {
		t.Errorf("only an XR that has composed something can lose it: error %v, -want, +got:\n%s", err, diff)
	}
	unserved := x.GroupVersionKind()
	unserved.Kind = "XUnserved"
	if got, err := s.cluster().Composing(t.Context(), adoption.Unverified, unserved, xptest.CompositionName); len(got) > 0 || err != nil {
		t.Errorf("a kind that is not served has no XRs: %v, error %v", got, err)
	}
	s.failOn("list", "xorders", 1, errDown)
	if _, err := s.cluster().Composing(t.Context(), adoption.Unverified, x.GroupVersionKind(), xptest.CompositionName); !errors.Is(err, errDown) {
		t.Errorf("without an answer it is unknown which XRs there are: %v", err)
	}
}
