package hooks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

var errAway = errors.New("the API server is away\x1b[2J")

// reportWith is a report of an XR with two composed resources.
func reportWith(adopted int, waiting string) *report.Report {
	ref := xp.Ref{APIVersion: "example.org/v1", Kind: "Order", Namespace: "team-a", Name: "orders"}
	xr := &report.Node{Ref: ref, Role: report.RoleComposite, State: report.Adopted}
	var problems []report.Problem
	if waiting != "" {
		xr.State = report.Held
		problems = append(problems, report.Problem{Code: reason.Held, Severity: report.Error, Object: ref, Reason: waiting, Next: "wait"})
	}
	for n := range 2 {
		b := &report.Node{Ref: xp.Ref{APIVersion: "example.org/v1", Kind: "Bucket", Namespace: "team-a", Name: string(rune('a' + n))}, Role: report.RoleManaged, State: report.Held}
		if n < adopted {
			b.State = report.Adopted
		}
		xr.Children = append(xr.Children, b)
	}
	r := &report.Report{Kind: report.KindValidation, Source: "test"}
	r.Assemble([]*report.Node{xr}, problems)

	return r
}

// looks returns a function that returns the results in order: a report or an error. The last
// repeats.
func looks(results ...any) func(context.Context) (*report.Report, error) {
	return func(ctx context.Context) (*report.Report, error) {
		next := results[0]
		if len(results) > 1 {
			results = results[1:]
		}
		if err, ok := next.(error); ok {
			return nil, err
		}

		r, _ := next.(*report.Report)

		return r, ctx.Err()
	}
}

// underWay returns a report with a Restore under way.
func underWay(r *report.Report) *report.Report {
	r.Restores = []report.Restore{{Name: "velero/r", Phase: "InProgress"}}

	return r
}

var stamps = regexp.MustCompile(`(?m)^\d{4}-\S+Z `)

func TestWatch(t *testing.T) {
	long := time.Hour
	cases := map[string]struct {
		reason  string
		looks   []any
		timeout time.Duration
		strict  bool
		code    int
		last    string
		want    []string
	}{
		"AtOnce": {
			reason: "A cluster without problems needs no second look.", looks: []any{reportWith(2, "")}, timeout: long, code: ExitFine, last: "No problems in test.",
			want: []string{"2 of 2 composed resources adopted, 0 held; 0 problems, 0 warnings"},
		},
		"Changes": {
			reason: "A log must have one line for each change.", timeout: long, code: ExitFine, last: "No problems in test.",
			looks: []any{reportWith(0, "waits for a"), reportWith(0, "waits for a"), reportWith(1, "waits for b"), errAway, errAway, reportWith(1, "waits for b"), reportWith(2, "")},
			want: []string{
				"0 of 2 composed resources adopted, 3 held; 1 problems, 0 warnings",
				"Held: Order team-a/orders: waits for a",
				"1 of 2 composed resources adopted, 2 held; 1 problems, 0 warnings",
				"Held: Order team-a/orders: waits for b",
				"trying again: the API server is away\ufffd[2J",
				"1 of 2 composed resources adopted, 2 held; 1 problems, 0 warnings",
				"2 of 2 composed resources adopted, 0 held; 0 problems, 0 warnings",
				"no longer Held: Order team-a/orders",
			},
		},
		"UnderWay": {
			reason: "A running Restore that has restored nothing yet is not over.", looks: []any{underWay(reportWith(2, "")), reportWith(1, "waits for b"), reportWith(2, "")}, timeout: long, code: ExitFine,
			last: "No problems in test.",
			want: []string{
				"2 of 2 composed resources adopted, 0 held; 0 problems, 0 warnings",
				"1 of 2 composed resources adopted, 2 held; 1 problems, 0 warnings",
				"Held: Order team-a/orders: waits for b",
				"2 of 2 composed resources adopted, 0 held; 0 problems, 0 warnings",
				"no longer Held: Order team-a/orders",
			},
		},
		"TimedOut": {
			reason: "After the timeout the command must print the problems that are left.", looks: []any{reportWith(1, "waits for b")}, timeout: time.Second, code: ExitTimeout, last: "1 problem in test.",
			want: []string{"1 of 2 composed resources adopted, 2 held; 1 problems, 0 warnings", "Held: Order team-a/orders: waits for b"},
		},
		"NeverSeen": {reason: "Waiting does not fix a wrong kubeconfig.", looks: []any{errAway}, timeout: long, code: ExitFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			w := &watch{options: &options{Streams: Streams{Out: &stdout, Err: &stderr}}, on: true, timeout: tc.timeout, pause: time.Millisecond}
			err := failed(w.run(t.Context(), output{format: printer.Table}, tc.strict, looks(tc.looks...)))
			if codeOf(err) != tc.code {
				t.Errorf("%s want exit code %d, got %v", tc.reason, tc.code, err)
			}
			var got []string
			for line := range strings.Lines(stamps.ReplaceAllString(stderr.String(), "")) {
				got = append(got, strings.TrimSuffix(line, "\n"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s stderr: -want, +got:\n%s", tc.reason, diff)
			}
			if !strings.Contains(stdout.String(), tc.last) || tc.last == "" && stdout.Len() > 0 {
				t.Errorf("%s stdout must end with %q; got:\n%s", tc.reason, tc.last, stdout.String())
			}
		})
	}
}

// A view shows what a held object waits for, and not its whole reason, which can change for
// nothing.
func TestReportableHold(t *testing.T) {
	r := reportWith(0, "held by the Restore velero/r since noon; waiting for a")
	r.Trees[0].Hold = &report.Hold{Waiting: []string{"a", "b"}}
	_, lines := reportable(r)
	want := map[reportedProblem]string{{code: reason.Held, object: "Order team-a/orders"}: "a (and 1 more)"}
	if diff := cmp.Diff(want, lines, cmp.AllowUnexported(reportedProblem{})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestWatchInterrupted(t *testing.T) {
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	w := &watch{options: &options{Streams: Streams{Out: &stdout, Err: &stderr}}, on: true, pause: time.Hour}
	look := func(context.Context) (*report.Report, error) {
		time.AfterFunc(time.Millisecond, cancel)

		return reportWith(1, "waits for b"), nil
	}
	err := failed(w.run(ctx, output{format: printer.Table}, false, look))
	if codeOf(err) != ExitFailed || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("An interrupted watch has not seen success: want exit code %d, got %v", ExitFailed, err)
	}
	if !strings.Contains(stdout.String(), "1 problem in test.") {
		t.Errorf("An interrupted watch must print its last report; got:\n%s", stdout.String())
	}
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

func TestWatchOnTerminal(t *testing.T) {
	for columns, width := range map[uint16]int{80: 80, 200: 200} {
		s := newScreen(t, columns)
		w := &watch{options: &options{Streams: Streams{Out: s.tty, Err: s.tty}}, on: true, timeout: time.Minute, pause: time.Millisecond}
		look := looks(reportWith(0, strings.Repeat("a-very-long-reason-", 20)), errAway, reportWith(1, "waits for b"), reportWith(2, ""))
		before := []string{"", "Held: Order team-a/orders: a-very-long", "Trying again: the API server is away", "waits for b"}
		// A busy machine draws late. So each look waits until the previous result is drawn.
		drawn := func(ctx context.Context) (*report.Report, error) {
			s.await(ctx, before[0])
			before = before[1:]

			return look(ctx)
		}
		if err := w.run(t.Context(), output{format: printer.Table}, false, drawn); err != nil {
			t.Errorf("%d columns: %v", columns, err)
		}
		got := s.shown()
		for _, want := range []string{"Held: Order team-a/orders: a-very-long", "Trying again: the API server is away", "waits for b", "1 of 2 composed resources adopted", "2 of 2 composed resources adopted", "No problems in test."} {
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
		if _, result, _ := strings.Cut(got, "NAME"); strings.Contains(result, "\x1b[1A") {
			t.Errorf("%d columns: the live view must end before the result:\n%q", columns, result)
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
			o := &options{Streams: Streams{Out: s.tty}}
			if err := o.print(reportWith(1, "waits for b"), output{format: printer.Table}); err != nil {
				t.Fatal(err)
			}
			if got := s.shown(); strings.Contains(got, "\x1b[") != tc.want {
				t.Errorf("%s got:\n%q", tc.reason, got)
			}
		})
	}
}
