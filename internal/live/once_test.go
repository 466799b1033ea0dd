package live

import (
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A user who may write an object can put a genuine mark back each time it is removed. Each try
// would delay the others and write an Event.
func TestAdoptTakesAStepOnce(t *testing.T) {
	key := adoption.Key(strings.Repeat("k", adoption.KeySize))
	bucket := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Reconciled())
	xr := restored(xptest.XR("x", xptest.Refs(bucket)))
	if err := key.Sign(xr, ""); err != nil {
		t.Fatal(err)
	}
	kept := xr.GetAnnotations()[adoption.AnnotationHold]
	cases := map[string]struct {
		reason string
		// back is how a user changes the XR back.
		back func(u *unstructured.Unstructured) *unstructured.Unstructured
		want string
	}{
		"Released": {
			reason: "A hold that returns after its release must be reported.",
			back: func(u *unstructured.Unstructured) *unstructured.Unstructured {
				if !xp.HasAnnotation(u, adoption.AnnotationHold) {
					return xptest.With(u, xptest.Annotated(adoption.AnnotationHold, kept))
				}

				return u
			},
			want: "XOrder x: it was released, and another writer has put its hold on again",
		},
		"ReleasedAndPaused": {
			reason: "A second unpause would let Crossplane reconcile the XR again.",
			back: func(u *unstructured.Unstructured) *unstructured.Unstructured {
				if !xp.HasAnnotation(u, adoption.AnnotationHold) {
					return xptest.With(u, xptest.Annotated(adoption.AnnotationHold, kept), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.SeenPaused())
				}

				return u
			},
			want: "XOrder x: it was released, and another writer has put its hold on again",
		},
		"Unpaused": {
			reason: "The plan names what stops the adoption.",
			back: func(u *unstructured.Unstructured) *unstructured.Unstructured {
				return xptest.With(u, xptest.Annotated(adoption.AnnotationHold, kept), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.SeenPaused())
			},
			want: "XOrder x: another writer has undone a change (let Crossplane reconcile it under the backed-up revision)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(xr, restored(bucket), restored(xptest.Revision(xptest.RevisionName, xr)))
			simulateCrossplane(s)
			s.PrependReactor("list", "xorders", func(clienttesting.Action) (bool, runtime.Object, error) {
				u := s.get(t, xorders, "", "x")
				if back := tc.back(u); xp.Annotation(u, adoption.AnnotationHold) != kept && back != u {
					s.put(xorders, back)
				}

				return false, nil, nil
			})
			plans, err := newFastAdopter(s).Adopt(t.Context(), key, monday, selector, xp.RefTo(xr))
			if err != nil {
				t.Fatal(err)
			}
			p := plans[xp.RefTo(xr).ID()]
			if said := p.Failed.String() + strings.Join(reason.Strings(p.Waiting), "; "); !strings.Contains(said, tc.want) || p.Done {
				t.Errorf("%s\ngot %+v", tc.reason, p)
			}
			if steps := s.steps(); len(steps) > 3 {
				t.Errorf("%s\n%d steps: %v", tc.reason, len(steps), steps)
			}
			if told := s.writtenEvents(); len(told) > 3 {
				t.Errorf("%s\n%d Events: %v", tc.reason, len(told), told)
			}
		})
	}
}

// A mark that the plugin did not write is logged once and ignored.
func TestAdoptNamesForgedMarks(t *testing.T) {
	key := adoption.Key(strings.Repeat("k", adoption.KeySize))
	forged := restored(xptest.XR("forged", xptest.Annotated(xp.AnnotationPaused, "true")))
	genuine := restored(xptest.XR("x", xptest.NeverComposed()))
	if err := key.Sign(genuine, ""); err != nil {
		t.Fatal(err)
	}
	s := newServer(forged, genuine)
	simulateCrossplane(s)
	a := newFastAdopter(s)
	log, hook := logtest.NewNullLogger()
	a.log = log
	plans, err := a.Adopt(t.Context(), key, monday, selector, xp.RefTo(genuine))
	if err != nil || !plans[xp.RefTo(genuine).ID()].Done {
		t.Errorf("the other XR must be adopted: %+v, %v", plans, err)
	}
	if p := plans[xp.RefTo(forged).ID()]; !strings.Contains(p.Failed.String(), "this plugin did not write it") {
		t.Errorf("got %+v", p)
	}
	for _, step := range s.requests("patch") {
		if strings.Contains(step, "forged") {
			t.Errorf("the forged mark was changed: %s", step)
		}
	}
	named := 0
	for _, e := range hook.AllEntries() {
		if strings.Contains(e.Message, "this plugin did not write it") && e.Data["reason"] == reason.MarkForged {
			named++
		}
	}
	if named != 1 {
		t.Errorf("the log must name it once, not %d times", named)
	}
}
