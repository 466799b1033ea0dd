package restoreitem

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// fakeStandby is a StandbyCluster that has one object in quarantine, or none.
type fakeStandby struct {
	found *adoption.Standby
	// left is true if the object leaves the quarantine during the restore.
	left bool
	err  error
	// removed and notRemoved are the results of RemoveStandbys.
	removed    []xp.Ref
	notRemoved []reason.Message

	refreshed []adoption.Refresh
	ended     []string
	removals  int
}

func (f *fakeStandby) Standby(context.Context, adoption.Key, xp.Ref) (*adoption.Standby, error) {
	return f.found, f.err
}

func (f *fakeStandby) Refresh(_ context.Context, _ adoption.Key, _ adoption.Standby, of adoption.Refresh) (bool, error) {
	f.refreshed = append(f.refreshed, of)

	return !f.left, f.err
}

func (f *fakeStandby) EndHandover(_ context.Context, _ string, u *unstructured.Unstructured) error {
	f.ended = append(f.ended, u.GetName())

	return nil
}

func (f *fakeStandby) Schedule(context.Context, string, string) (string, error) {
	return "nightly", nil
}

func (f *fakeStandby) RemoveStandbys(context.Context, adoption.Key, string, string) ([]xp.Ref, []reason.Message, error) {
	f.removals++

	return f.removed, f.notRemoved, f.err
}

func TestRefresh(t *testing.T) {
	mr := xptest.MR("b", xptest.Reconciled())
	quarantined := &adoption.Standby{UID: "1", Version: "2", Restore: "velero/sunday", Schedule: "nightly"}
	with := func(change func(s *adoption.Standby)) *adoption.Standby {
		s := *quarantined
		change(&s)

		return &s
	}
	type want struct {
		Skipped, Refreshed bool
		Ended              []string
		Notes              string
		Err                string
	}
	cases := map[string]struct {
		reason   string
		item     *unstructured.Unstructured
		setting  string
		modifier bool
		standby  fakeStandby
		want     want
	}{
		"Refreshed":  {reason: "Velero leaves a live object as it is.", item: mr, standby: fakeStandby{found: quarantined}, want: want{Skipped: true, Refreshed: true}},
		"XR":         {reason: "An XR is refreshed too.", item: xptest.XR("x"), standby: fakeStandby{found: quarantined}, want: want{Skipped: true, Refreshed: true}},
		"New":        {reason: "Velero creates what is new.", item: mr},
		"NotAsked":   {reason: "Without the setting a live object stays.", item: mr, setting: "false", standby: fakeStandby{found: quarantined}},
		"Handover":   {reason: "The cluster that handed over becomes the standby.", item: mr, standby: fakeStandby{found: with(func(s *adoption.Standby) { s.Handover = true })}, want: want{Skipped: true, Refreshed: true, Ended: []string{"b"}}},
		"Changed":    {reason: "A user must know that the change is gone.", item: mr, standby: fakeStandby{found: with(func(s *adoption.Standby) { s.ChangedBy = "kubectl" })}, want: want{Skipped: true, Refreshed: true, Notes: "[StandbyChanged]"}},
		"Left":       {reason: "A released object is not overwritten.", item: mr, standby: fakeStandby{found: quarantined, left: true}, want: want{Skipped: true, Refreshed: true, Notes: "[StandbyNotRefreshed]"}},
		"Modifiers":  {reason: "Velero applies them only to what it creates.", item: mr, modifier: true, standby: fakeStandby{found: quarantined}, want: want{Err: "[StandbyNotRefreshed]"}},
		"Unreadable": {reason: "What can't be read can't be refreshed.", item: mr, standby: fakeStandby{err: errors.New("boom")}, want: want{Err: "boom [APIServerFailed]"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := live()
			c.config = map[string]string{"standby": "true"}
			if tc.setting != "" {
				c.config["standby"] = tc.setting
			}
			log, _ := logtest.NewNullLogger()
			a := NewAdopt(Crossplane(), c, &fakeAdopter{}, log, WithStandby(&tc.standby))
			restore := restoreOf(nil)
			if tc.modifier {
				c.configMap = map[string]string{"rules": "version: v1"}
				restore.Spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "rules"}
			}
			out, err := a.Execute(inputFor(tc.item, restore))
			got := want{Refreshed: len(tc.standby.refreshed) > 0, Ended: tc.standby.ended}
			if err != nil {
				got.Err = err.Error()
			} else {
				got.Skipped, got.Notes = out.SkipRestore, out.OperationID
			}
			for _, of := range tc.standby.refreshed {
				h, err := adoption.HoldOf(of.Object)
				if err != nil || h == nil || h.Schedule != "nightly" || h.Content == "" || h.Content != of.Content || !h.Quarantine {
					t.Errorf("the hold is %+v, %v", h, err)
				}
			}
			if !strings.HasSuffix(got.Notes, tc.want.Notes) || !strings.HasSuffix(got.Err, tc.want.Err) || tc.want.Err == "" && got.Err != "" {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			got.Notes, got.Err, tc.want.Notes, tc.want.Err = "", "", "", ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The content is the same for the same backup, whatever the Restore is.
func TestRefreshContent(t *testing.T) {
	content := func(u *unstructured.Unstructured, restore string) string {
		t.Helper()
		c, s := live(), &fakeStandby{found: &adoption.Standby{UID: "1"}}
		c.config = map[string]string{"standby": "true"}
		log, _ := logtest.NewNullLogger()
		of := restoreOf(nil)
		of.Name = restore
		if _, err := NewAdopt(Crossplane(), c, &fakeAdopter{}, log, WithStandby(s)).Execute(inputFor(u, of)); err != nil {
			t.Fatal(err)
		}

		return s.refreshed[0].Content
	}
	mr := xptest.MR("b", xptest.Reconciled())
	first := content(mr, "monday")
	if got := content(mr, "tuesday"); got != first {
		t.Error("another Restore of the same content differs")
	}
	if got := content(xptest.With(mr, xptest.Field("us", "spec", "forProvider", "region")), "tuesday"); got == first {
		t.Error("another content does not differ")
	}
}

// What the backup does not have is removed once, and an operation names it.
func TestRemoveStandbys(t *testing.T) {
	s := &fakeStandby{removed: []xp.Ref{xp.RefTo(xptest.MR("gone"))}, notRemoved: []reason.Message{reason.StandbyNotRemoved.Messagef("Bucket changed stays")}}
	c := live()
	c.config = map[string]string{"standby": "true"}
	log, _ := logtest.NewNullLogger()
	a := NewAdopt(Crossplane(), c, &fakeAdopter{plans: planFor(adoption.Plan{Quarantine: reason.Quarantined.Messagef("it is in quarantine")})}, log, WithStandby(s))
	a.now = at(30)
	restore := &velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "again"}}
	first, err := a.Progress(operation, restore)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[StandbyRemoved]", "[StandbyNotRemoved]", "gone", "Bucket changed stays"} {
		if !strings.Contains(first.Description, want) {
			t.Errorf("the description lacks %s: %s", want, first.Description)
		}
	}
	second, err := a.Progress(operation, restore)
	if err != nil || strings.Contains(second.Description, "StandbyRemoved") || s.removals != 1 {
		t.Errorf("it is removed %d times: %+v, %v", s.removals, second, err)
	}
	s.err, a.standbys.removed, a.results.plans = errors.New("boom"), false, nil
	if got, err := a.Progress(operation, restore); err != nil || got.Completed || !strings.Contains(got.Description, "boom") {
		t.Errorf("an error is worth a retry; got %+v, %v", got, err)
	}
}
