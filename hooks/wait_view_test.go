package hooks

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/jedib0t/go-pretty/v6/text"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// heldReport is a report of a held XR.
func heldReport() *report.Report {
	ref := xp.Ref{APIVersion: "example.org/v1", Kind: "Order", Namespace: "team-a", Name: "orders"}
	r := &report.Report{Kind: report.KindValidation, Source: "test"}
	r.Assemble([]*report.Node{{Ref: ref, Role: report.RoleComposite, State: report.Held}},
		[]report.Problem{{Code: reason.Held, Severity: report.Error, Object: ref, Reason: "waits for b", Next: "wait"}})

	return r
}

// A screen is a terminal and what it shows.
type screen struct {
	tty  *os.File
	done chan struct{}

	mu      sync.Mutex
	written strings.Builder
}

func newScreen(t *testing.T, columns uint16) *screen {
	t.Helper()
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	user, tty, err := pty.Open()
	if err != nil {
		t.Fatalf("cannot open a terminal: %v", err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	s := &screen{tty: tty, done: make(chan struct{})}
	go func() {
		_, _ = io.Copy(s, user) // It ends with an error when the terminal is closed.
		_ = user.Close()
		close(s.done)
	}()

	return s
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.written.Write(b)
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.written.String()
}

// await waits until the terminal has shown a text, or ctx is done.
func (s *screen) await(ctx context.Context, text string) {
	for ctx.Err() == nil && !strings.Contains(s.text(), text) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}

// shown closes the terminal and returns its output.
func (s *screen) shown() string {
	_ = s.tty.Close()
	<-s.done

	return s.text()
}

func TestWaitOnTerminal(t *testing.T) {
	of := func(reason string) *unstructured.Unstructured {
		return xptest.XRV2("o", xptest.Synced("False", "ReconcileError", reason))
	}
	for columns, width := range map[uint16]int{80: 80, 200: 200} {
		s := newScreen(t, columns)
		looks := []cluster.Roots{{Kinds: 1, Objects: []*unstructured.Unstructured{of(strings.Repeat("a-very-long-reason-", 20))}}, {}, {Kinds: 1, Objects: []*unstructured.Unstructured{of("no function")}}}
		looks = append(looks, cluster.Roots{Kinds: 1, Objects: []*unstructured.Unstructured{xptest.XRV2("o", xptest.Reconciled())}})
		before := []string{"", "waiting for Order team-a/o: Crossplane can't", "the API server is away", "no function"}
		w := &wait{options: &options{Program: Program{Out: s.tty, Err: s.tty}}, timeout: time.Minute, pause: time.Millisecond}
		// A busy machine draws late. So each look waits until the previous result is drawn.
		w.look = func(ctx context.Context) (cluster.Roots, error) {
			s.await(ctx, before[0])
			now, isAway := looks[0], looks[0].Kinds == 0
			before, looks = before[1:], looks[1:]
			if isAway {
				return now, errors.New("the API server is away\x1b[2J")
			}

			return now, nil
		}
		if err := w.run(t.Context()); err != nil {
			t.Errorf("%d columns: %v", columns, err)
		}
		got := s.shown()
		for _, want := range []string{"waiting for Order team-a/o: Crossplane can't", "the API server is away", "no function", "0 of 1 claims and XRs adopted", "1 of 1 claims and XRs adopted", "Order team-a/o is adopted"} {
			if !strings.Contains(got, want) {
				t.Errorf("%d columns: the terminal never showed %q:\n%q", columns, want, got)
			}
		}
		for line := range strings.SplitSeq(got, "\n") {
			if got := text.StringWidthWithoutEscSequences(strings.TrimRight(line, "\r")); got > width {
				t.Errorf("%d columns: a line has %d, so the view can't redraw it: %q", columns, got, line)
			}
		}
		if strings.Contains(got, "\x1b[?25l") && !strings.Contains(got, "\x1b[?25h") {
			t.Errorf("%d columns: the cursor must come back", columns)
		}
		if _, result, _ := strings.Cut(got, "Order team-a/o is adopted"); strings.Contains(result, "\x1b[1A") || strings.Contains(got, "\x1b[2J") {
			t.Errorf("%d columns: the live view must end before the result, and has no text of the cluster that moves the cursor:\n%q", columns, result)
		}
	}
}

func TestOutputOnTerminal(t *testing.T) {
	cases := map[string]struct {
		reason   string
		env, val string
		want     bool
	}{
		"Terminal": {reason: "A terminal must show colours.", env: "TERM", val: "xterm-256color", want: true},
		"NoColor":  {reason: "NO_COLOR must turn the colours off.", env: "NO_COLOR", val: "1"},
		"Dumb":     {reason: "A dumb terminal must show only text.", env: "TERM", val: "dumb"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text.EnableColors()
			s := newScreen(t, 80)
			t.Setenv(tc.env, tc.val)
			o := &options{Program: Program{Out: s.tty}}
			if err := o.print(heldReport(), output{format: printer.Table}); err != nil {
				t.Fatal(err)
			}
			if got := s.shown(); strings.Contains(got, "\x1b[") != tc.want {
				t.Errorf("%s got:\n%q", tc.reason, got)
			}
		})
	}
}
