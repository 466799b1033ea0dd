package live

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestTakeOver(t *testing.T) {
	mr := xptest.MR("b")
	backup := xptest.XR("x", xptest.Refs(mr))
	fresh := xptest.XR("x", xptest.Without("spec", "resourceRefs"))
	type want struct{ Taken, Held, Paused bool }
	cases := map[string]struct {
		reason string
		live   []*unstructured.Unstructured
		// meanwhile are Crossplane's changes until the object is read again.
		meanwhile []xptest.Option
		// waited is for how long other XRs of the kind did not answer.
		waited time.Duration
		want   want
	}{
		"Seen": {
			reason: "Crossplane has seen the pause and writes nothing more.", live: []*unstructured.Unstructured{fresh},
			meanwhile: []xptest.Option{xptest.SeenPaused()}, want: want{Taken: true, Held: true, Paused: true},
		},
		"Overtaken": {
			reason: "Crossplane was in the middle of composing and keeps the XR.", live: []*unstructured.Unstructured{fresh},
			meanwhile: []xptest.Option{xptest.SeenPaused(), xptest.Refs(xptest.MR("anew"))},
		},
		"OvertakenAfterSlow": {
			reason: "That Crossplane was slow with another XR does not matter.", live: []*unstructured.Unstructured{fresh}, waited: 2 * pauseTimeout,
			meanwhile: []xptest.Option{xptest.SeenPaused(), xptest.Refs(xptest.MR("anew"))},
		},
		"OvertakenAfterSilence": {
			reason: "Crossplane is up again.", live: []*unstructured.Unstructured{fresh}, waited: silenceLimit,
			meanwhile: []xptest.Option{xptest.SeenPaused(), xptest.Refs(xptest.MR("anew"))},
		},
		"Silent": {
			reason: "Crossplane is not running, so the polls check whether it has seen the pause.", live: []*unstructured.Unstructured{fresh}, waited: silenceLimit,
			want: want{Taken: true, Held: true, Paused: true},
		},
		"Composed": {reason: "The XR lists its composed resources.", live: []*unstructured.Unstructured{xptest.XR("x", xptest.Refs(mr))}},
		"Gone":     {reason: "There is no XR to take over."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(tc.live...)
			s.PrependReactor("get", "xorders", s.changeAfterFirstGet(tc.meanwhile))
			c := s.cluster()
			kind := backup.GroupVersionKind().GroupKind()
			c.silence[kind] = tc.waited
			u, err := c.TakeOver(t.Context(), adoption.Unverified, backup, xp.RefTo(backup), adoption.Hold{Restore: "velero/monday"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := want{Taken: u != nil}
			if tc.live != nil {
				now := s.get(t, xorders, "", "x")
				got.Held, got.Paused = xp.HasAnnotation(now, adoption.AnnotationHold), xp.IsPaused(now)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// While Crossplane is not running, the waits for a kind end at the limit.
func TestTakeOverSilent(t *testing.T) {
	s := newServer(xptest.XR("a", xptest.Without("spec", "resourceRefs")), xptest.XR("b", xptest.Without("spec", "resourceRefs")))
	c := s.cluster()
	other := schema.GroupKind{Group: "example.org", Kind: "XOther"}
	kind := xptest.XR("a").GroupVersionKind().GroupKind()
	c.silence[kind], c.silence[other] = silenceLimit-pauseInterval, pauseTimeout
	for _, name := range []string{"a", "b"} {
		backup := xptest.XR(name, xptest.Refs(xptest.MR("b")))
		began := time.Now()
		u, err := c.TakeOver(t.Context(), adoption.Unverified, backup, xp.RefTo(backup), adoption.Hold{Restore: "velero/monday"}, nil)
		if err != nil || u == nil || time.Since(began) > pauseTimeout/2 {
			t.Errorf("%s must be taken over after one look; got %v, %v after %s", name, u, err, time.Since(began))
		}
	}
	if c.silence[kind] < silenceLimit || c.silence[other] != pauseTimeout {
		t.Errorf("each kind has its own limit; got %v", c.silence)
	}
}

// changeAfterFirstGet changes the object after it was read once.
func (s *server) changeAfterFirstGet(change []xptest.Option) clienttesting.ReactionFunc {
	reads := 0

	return func(a clienttesting.Action) (bool, runtime.Object, error) {
		reads++
		if reads != 2 || change == nil {
			return false, nil, nil
		}
		get := a.(clienttesting.GetAction) //nolint:forcetypeassert // It reacts only to get.
		o, err := s.Tracker().Get(a.GetResource(), a.GetNamespace(), get.GetName())
		if err != nil {
			return true, nil, err
		}
		u := xptest.With(o.(*unstructured.Unstructured), change...) //nolint:forcetypeassert // The tracker returns only such objects.

		return false, nil, s.Tracker().Update(a.GetResource(), u, a.GetNamespace())
	}
}
