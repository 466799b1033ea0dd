package adoption

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestWithoutNext(t *testing.T) {
	run := "run: " + xp.Program + " release --restore monday"
	cases := map[string]struct{ reason, why, next, want string }{
		"None":    {reason: "Without a next step the reason stays.", why: "it waits; " + run, want: "it waits; " + run},
		"Whole":   {reason: "The step at the end goes, and the code stays.", why: "it is in quarantine; make sure, then " + run + " [Quarantined]", next: "make sure, then " + run, want: "it is in quarantine [Quarantined]"},
		"Command": {reason: "The same command goes, whatever words are before it.", why: "it waits for a user; " + run + " [AwaitingUser]", next: "when it is ready, " + run, want: "it waits for a user [AwaitingUser]"},
		"Clause":  {reason: "The condition of the command goes with it.", why: "it starts Operations. When they may start, " + run, next: "to let it, " + run, want: "it starts Operations"},
		"Another": {reason: "Another step stays.", why: "it is missing; restore it", next: "repair that, then " + run, want: "it is missing; restore it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := WithoutNext(tc.why, tc.next); got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// The reason of each hold that a user lifts has the next step, for who reads the mark alone.
func TestWhyLeavesTheNextStepOut(t *testing.T) {
	for name, of := range map[string]Hold{"Quarantine": {Quarantine: true}, "ByHand": {ByHand: true}} {
		u := xptest.XR("x")
		of.Restore, of.Since = restoreName, restoredAt
		h, err := Put(u, of)
		if err != nil {
			t.Fatal(err)
		}
		wantOnce(t, name, u, h)
	}
	u := heldLive(t, xptest.XR("x", xptest.Reconciled()))
	h, err := HoldOf(u)
	if err != nil {
		t.Fatal(err)
	}
	wantOnce(t, "ByCommand", u, h)
}

func wantOnce(t *testing.T, name string, u *unstructured.Unstructured, h *Hold) {
	t.Helper()
	next := HowToRelease(u, h)
	if why := Why(u, h); next == "" || !strings.Contains(h.Reason, next) || strings.Contains(why, "run:") || !strings.HasSuffix(why, "]") {
		t.Errorf("%s: the reason %q must be without the next step %q, and keep its code; got %q", name, h.Reason, next, why)
	}
}
