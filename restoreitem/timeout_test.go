package restoreitem

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

var errOdd = errors.New("there are two")

func TestProgressTimesOut(t *testing.T) {
	waiting := adoption.Plan{Adopted: 1, Total: 2, Waiting: []reason.Message{{Text: "Bucket b: it was not restored"}}, RestoredAt: at(0)()}
	with := func(change func(p *adoption.Plan)) adoption.Plan {
		p := waiting
		change(&p)

		return p
	}
	const described = "1 of 2 composed resources adopted; waiting for Bucket b: it was not restored"
	const why = "not adopted within 20s, the setting adoption-timeout of the Restore velero/monday: " + described
	type want struct {
		Completed        bool
		Err, Description string
		GaveUp           []string
	}
	over := want{
		Completed: true, Description: described, GaveUp: []string{"XOrder x: " + why},
		Err: "XOrder x is " + why + ". Its hold stays on, so nothing is lost. Correct that, then run: velero-plugin-for-crossplane release x [RestoreStopped]",
	}
	waits := want{Description: described}
	cases := map[string]struct {
		reason string
		plan   adoption.Plan
		// began is the second in which the restore began, -1 if it has not.
		began             int
		timeout           string
		configErr, giveUp error
		want              want
	}{
		"Over":   {reason: "The timeout has passed since the last object arrived.", plan: waiting, timeout: "20s", want: over},
		"Before": {reason: "The timeout has not passed yet.", plan: waiting, timeout: "31s", want: waits},
		"None":   {reason: "Without the setting only Velero's own timeout applies.", plan: waiting, want: waits},
		"LateObject": {
			reason: "A long restore can bring objects late, so the time starts at the last one.", plan: with(func(p *adoption.Plan) { p.RestoredAt = at(15)() }), timeout: "20s", want: waits,
		},
		"SecondRestore": {
			reason: "Objects of an earlier restore get the full time of this one.", plan: with(func(p *adoption.Plan) { p.RestoredAt = at(0)().Add(-time.Hour) }), began: 15,
			timeout: "20s", want: waits,
		},
		"Unknown": {
			reason: "Without a start time the timeout cannot pass.", plan: with(func(p *adoption.Plan) { p.RestoredAt = time.Time{} }), began: -1, timeout: "20s", want: waits,
		},
		"Done": {
			reason: "A completed adoption counts even after the timeout.", plan: with(func(p *adoption.Plan) { p.Done = true }), timeout: "20s",
			want: want{Completed: true, Description: "1 of 2 composed resources adopted"},
		},
		"Ready": {
			reason: "The timeout does not apply to a user's release.", plan: with(func(p *adoption.Plan) { p.Ready = true }), timeout: "20s", want: want{Completed: true, Description: described},
		},
		"Quarantine": {
			reason: "The timeout does not apply to a quarantine.", plan: with(func(p *adoption.Plan) { p.Quarantine = reason.Message{Text: "away"} }), timeout: "20s", want: want{Completed: true, Description: described},
		},
		"GiveUpFails": {
			reason: "The plugin gives up only if it can record the reason.", plan: waiting, timeout: "20s", giveUp: errAPI,
			want: want{Description: described + "; trying again to write that the time is over: " + errAPI.Error(), GaveUp: over.GaveUp},
		},
		"Unread": {
			reason: "Adoption continues without the setting.", plan: waiting, configErr: errOdd,
			want: want{Description: described + "; cannot find out whether the time of the setting adoption-timeout is over: " + errOdd.Error()},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &fakeAdopter{plans: planFor(tc.plan), giveUpErr: tc.giveUp}
			a := pollIn(&cluster{config: map[string]string{"adoption-timeout": tc.timeout}, configErr: tc.configErr}, w)
			restore := restoreOf(nil)
			if tc.began >= 0 {
				began := metav1.NewTime(at(tc.began)())
				restore.Status.StartTimestamp = &began
			}
			p, err := a.Progress(operation, restore)
			if err != nil {
				t.Fatal(err)
			}
			got := want{Completed: p.Completed, Err: p.Err, Description: p.Description, GaveUp: w.gaveUp}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// An annotation of the Restore takes precedence.
func TestProgressTimesOutAsTheRestoreSays(t *testing.T) {
	w := &fakeAdopter{plans: planFor(adoption.Plan{Total: 1, RestoredAt: at(0)()})}
	restore := restoreOf(nil)
	restore.Annotations = map[string]string{"velero.crossplane.io/adoption-timeout": "20s"}
	if p, err := pollIn(live(), w).Progress(operation, restore); err != nil || !p.Completed || !strings.Contains(p.Err, "not adopted within 20s") {
		t.Errorf("got %+v, %v", p, err)
	}
}
