package live

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestRaiseRevision(t *testing.T) {
	x := xptest.XR("x")
	composition := xptest.Composition(xptest.CompositionName, x)
	revision := func(name string, number int64, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Revision(name, x, append([]xptest.Option{xptest.Field(number, "spec", "revision")}, o...)...)
	}
	own := xptest.ControlledBy(composition)
	other := xptest.Labelled(xp.LabelCompositionName, "other")
	cases := map[string]struct {
		reason   string
		live     []*unstructured.Unstructured
		restored *unstructured.Unstructured
		want     map[string]int64
		patches  int
	}{
		"Newest": {
			reason: "The live revision is newer already.",
			live:   []*unstructured.Unstructured{revision("l", 5, own)}, restored: revision("r", 4), want: map[string]int64{"l": 5},
		},
		"Tie": {
			reason: "Crossplane keeps its revision in a tie.",
			live:   []*unstructured.Unstructured{revision("l", 5, own)}, restored: revision("r", 5), want: map[string]int64{"l": 6}, patches: 1,
		},
		"Older": {
			reason:   "The restored revision would be the newest.",
			live:     []*unstructured.Unstructured{revision("k", 2, own), revision("l", 3, own)},
			restored: revision("r", 9),
			want:     map[string]int64{"k": 2, "l": 10},
			patches:  1,
		},
		"Live": {
			reason: "The live revision of the same name stays as it is.",
			live:   []*unstructured.Unstructured{revision("l", 3, own), revision("r", 4, own)}, restored: revision("r", 9), want: map[string]int64{"l": 3, "r": 4},
		},
		"None": {reason: "There is no live revision to raise.", restored: revision("r", 9)},
		"Ownerless": {
			reason: "No XR follows a revision without an owner.",
			live:   []*unstructured.Unstructured{revision("l", 3)}, restored: revision("r", 9), want: map[string]int64{"l": 3},
		},
		"Another": {
			reason: "A revision of another Composition has no effect.",
			live:   []*unstructured.Unstructured{revision("l", 3, own, other)}, restored: revision("r", 9), want: map[string]int64{"l": 3},
		},
		"NoNumber": {
			reason: "A revision without a number is the oldest.",
			live:   []*unstructured.Unstructured{revision("l", 1, own)}, restored: xptest.Revision("r", x), want: map[string]int64{"l": 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(tc.live...)
			if err := s.cluster().RaiseRevision(context.Background(), tc.restored); err != nil {
				t.Fatal(err)
			}
			for name, want := range tc.want {
				if got, _, _ := unstructured.NestedInt64(s.get(t, revisions, "", name).Object, "spec", "revision"); got != want {
					t.Errorf("%s\n%s: got %d, want %d", tc.reason, name, got, want)
				}
			}
			if got := s.requests("patch"); len(got) != tc.patches {
				t.Errorf("%s\npatches: %v", tc.reason, got)
			}
		})
	}
}

// Crossplane numbers revisions too. A number lower than the one that it has just set would make
// another revision the newest.
func TestRaiseRevisionConflict(t *testing.T) {
	x := xptest.XR("x")
	live := xptest.Revision("l", x, xptest.ControlledBy(xptest.Composition(xptest.CompositionName, x)), xptest.Field(int64(5), "spec", "revision"))
	s := newServer(live)
	s.meanwhile("patch", func() {
		s.put(revisions, xptest.With(s.get(t, revisions, "", "l"), xptest.Field(int64(9), "spec", "revision")))
	})
	if err := s.cluster().RaiseRevision(t.Context(), xptest.Revision("r", x, xptest.Field(int64(5), "spec", "revision"))); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedInt64(s.get(t, revisions, "", "l").Object, "spec", "revision"); got != 9 {
		t.Errorf("got %d, want 9", got)
	}
}

func TestRaiseRevisionErrors(t *testing.T) {
	x := xptest.XR("x")
	revision := xptest.Revision("r", x, xptest.Field(int64(9), "spec", "revision"))
	live := xptest.Revision("l", x, xptest.ControlledBy(xptest.Composition(xptest.CompositionName, x)))
	if err := newServer().cluster().RaiseRevision(context.Background(), xptest.With(revision, xptest.Field("9", "spec", "revision"))); err == nil {
		t.Error("a malformed number must be an error")
	}
	s := newServer(live)
	s.discoveryErr = errDown
	if err := s.cluster().RaiseRevision(context.Background(), revision); !errors.Is(err, errDown) {
		t.Errorf("got error %v", err)
	}
	s = newServer(live)
	s.failOn("list", "*", 1, errDown)
	if err := s.cluster().RaiseRevision(context.Background(), revision); !errors.Is(err, errDown) {
		t.Errorf("got error %v", err)
	}
	s = newServer(live)
	s.failOn("patch", "*", 1, apierrors.NewConflict(revisions.GroupResource(), "l", errDown))
	if err := s.cluster().RaiseRevision(context.Background(), revision); err != nil {
		t.Errorf("a conflict must make it read the revision again: %v", err)
	}
}
