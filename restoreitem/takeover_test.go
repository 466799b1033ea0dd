package restoreitem

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A writer that applies XRs from Git can create an XR before the restore. If that has composed
// nothing yet, it gets what it composed in the backup before that is restored.
func TestAdoptTakesOver(t *testing.T) {
	x := xptest.XR("x", xptest.UID("old"))
	mr := xptest.MR("b", xptest.ControlledBy(x))
	x = xptest.With(x, xptest.Refs(mr))
	fresh := xptest.XR("x", xptest.UID("new"), xptest.Without("spec", "resourceRefs"))
	taken := xptest.With(fresh, xptest.Refs(mr))
	if _, err := adoption.Put(taken, adoption.Hold{Restore: "velero/monday"}); err != nil {
		t.Fatal(err)
	}
	type want struct {
		Asked, Skipped, Told bool
		Owner                string
	}
	cases := map[string]struct {
		reason string
		live   *cluster
		first  *unstructured.Unstructured
		config map[string]string
		want   want
	}{
		"Fresh": {
			reason: "The live XR has composed no resources yet, so the restore takes it over.", live: &cluster{objects: []*unstructured.Unstructured{fresh}, taken: taken}, first: x,
			want: want{Asked: true, Told: true, Owner: "new"},
		},
		"ReconciledFirst": {
			reason: "Crossplane reconciled the XR first, so the resources in the backup stay out.", first: x,
			live: &cluster{objects: []*unstructured.Unstructured{fresh}}, want: want{Asked: true, Skipped: true, Told: true},
		},
		"Reconciled": {
			reason: "The live XR has composed other resources.", first: x, want: want{Skipped: true, Told: true},
			live: &cluster{objects: []*unstructured.Unstructured{xptest.With(fresh, xptest.Refs(xptest.MR("anew")))}},
		},
		"NotInBackup": {
			reason: "The backup lacks the XR, so its composed resources are unknown.", live: &cluster{objects: []*unstructured.Unstructured{fresh}}, first: xptest.XR("y"),
			want: want{Skipped: true, Told: true},
		},
		"NoHold": {
			reason: "The setting turns holds off.", live: &cluster{objects: []*unstructured.Unstructured{fresh}, config: map[string]string{"hold": "none"}}, first: x,
			want: want{Skipped: true, Told: true},
		},
		"Restored": {reason: "The restore created the XR itself.", live: &cluster{objects: []*unstructured.Unstructured{taken}}, first: x, want: want{Owner: "new"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			a := NewAdopt(Crossplane(), tc.live, nil, log, Shared{})
			for _, item := range []*unstructured.Unstructured{tc.first, mr} {
				out, err := a.Execute(inputFor(item, restoreOf(nil)))
				if err != nil {
					t.Fatal(err)
				}
				if item != mr {
					continue
				}
				got := want{Asked: slices.Contains(tc.live.asked, "take over "+xp.RefTo(x).String()), Skipped: out.SkipRestore, Told: out.OperationID != ""}
				if out.UpdatedItem != nil {
					u := &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
					c, _ := xp.Controller(u)
					got.Owner = string(c.UID)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, out.OperationID)
				}
			}
		})
	}
}

// A claim without an XR gets the backup's XR.
func TestAdoptTakesClaimsOver(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	name := xp.RefTo(claim).String()
	type want struct{ Skipped, Operation bool }
	cases := map[string]struct {
		reason string
		live   *cluster
		update bool
		want   want
	}{
		"Meanwhile":       {reason: "The claim was created while the restore ran.", live: &cluster{taken: claim}, update: true, want: want{Skipped: true, Operation: true}},
		"Fresh":           {reason: "The live claim has no XR yet, so the restore takes it over.", live: &cluster{takeable: []string{name}, taken: claim}, want: want{Skipped: true, Operation: true}},
		"ReconciledFirst": {reason: "The live claim has got another XR since.", live: &cluster{takeable: []string{name}}, want: want{Operation: true}},
		"Other":           {reason: "The cluster has no such claim.", live: &cluster{}, want: want{Operation: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			restore := restoreOf(nil)
			if tc.update {
				restore = updating()
			}
			out, err := NewAdopt(Crossplane(), tc.live, nil, log, Shared{}).Execute(inputFor(claim, restore))
			if err != nil {
				t.Fatal(err)
			}
			got := want{Skipped: out.SkipRestore, Operation: strings.HasPrefix(out.OperationID, operationID(xp.RefTo(claim)))}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, out.OperationID)
			}
		})
	}
}

// An XR that was taken over waits for its connection secret as a restored one: it would publish
// another.
func TestAdoptTakesOverWithItsSecret(t *testing.T) {
	x := xptest.XR("x", xptest.UID("old"), xptest.PublishesTo("infra", "s"))
	mr := xptest.MR("b", xptest.ControlledBy(x))
	x = xptest.With(x, xptest.Refs(mr))
	xp.SetFlag(x, xp.FieldPublished, true)
	live := &cluster{objects: []*unstructured.Unstructured{xptest.XR("x", xptest.UID("new"), xptest.Without("spec", "resourceRefs"))}}
	log, _ := logtest.NewNullLogger()
	a := NewAdopt(Crossplane(), live, nil, log, Shared{})
	for _, item := range []*unstructured.Unstructured{x, mr} {
		if _, err := a.Execute(inputFor(item, restoreOf(nil))); err != nil {
			t.Fatal(err)
		}
	}
	if !live.takenWith.Secret {
		t.Errorf("the hold must wait for the Secret: %+v", live.takenWith)
	}
}
