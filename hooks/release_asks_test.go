package hooks

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// newKeyboard returns a terminal, and its keyboard, on which a user has typed something.
func newKeyboard(t *testing.T, typed string) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, terminal, err := pty.Open()
	if err == nil {
		_, err = keyboard.WriteString(typed)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = keyboard.Close(), terminal.Close() })

	return keyboard, terminal
}

// Only a yes on a terminal counts as agreement.
func TestReleaseAsks(t *testing.T) {
	left := newLeftTree("1")
	for typed, want := range map[string]report.Result{
		"y\n": report.Forced, "YES\n": report.Forced, "n\n": report.StillHeld, "\n": report.StillHeld, "yes, but\n": report.StillHeld, "\x04": report.StillHeld,
	} {
		_, terminal := newKeyboard(t, typed)
		s := newServer(left.claim, left.xr, left.revision)
		got := s.release(t, releaseArgs{force: true, in: terminal})
		if got.Results["XOrder x1"] != want || (got.Code == ExitFine) != (want == report.Forced) {
			t.Errorf("%q: got %v, exit code %d", typed, got.Results, got.Code)
		}
		if !strings.Contains(got.err, "Bucket b1 is missing") || !strings.Contains(got.err, "its own setting comes back: compositionUpdatePolicy: Automatic") ||
			!strings.Contains(got.err, "Lift 1 hold all the same? [y/N]") {
			t.Errorf("%q: the question must name the cost first: %s", typed, got.err)
		}
	}
}

// The user has not agreed to changes since the question.
func TestReleaseForcesOnlyConfirmed(t *testing.T) {
	left := newLeftTree("1")
	s := newServer(left.claim, left.xr, left.revision)
	keyboard, terminal := newKeyboard(t, "")
	asked := func(question string) {
		if !strings.Contains(question, "[y/N]") {
			return
		}
		newer := xptest.Revision("newer", left.xr, xptest.ControlledBy(xptest.Composition(xptest.CompositionName, left.xr)), xptest.Field(int64(7), "spec", "revision"))
		_, typeErr := keyboard.WriteString("y\n")
		if err := errors.Join(s.Tracker().Add(newer), typeErr); err != nil {
			t.Error(err)
		}
	}
	got := s.release(t, releaseArgs{force: true, in: terminal, asked: asked})
	if got.Code != ExitProblems || got.Results["XOrder x1"] != report.StillHeld {
		t.Errorf("got %v, exit code %d", got.Results, got.Code)
	}
	for _, r := range got.releases {
		if r.Object.Kind == xptest.LegacyKind && r.Code != reason.ChangedSinceConfirmed {
			t.Errorf("the reason must name the change; got %q", r.Reason)
		}
	}
}

// A recorder keeps what is written and passes it on.
type recorder struct {
	bytes.Buffer

	heard func(said string)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.heard != nil {
		w.heard(string(b))
	}

	return w.Buffer.Write(b)
}
