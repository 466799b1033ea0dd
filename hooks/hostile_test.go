package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/creack/pty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// forged is what somebody writes wherever they can, to be obeyed by a terminal or a shell, or to
// say something in our name.
const forged = "x\x1b]0;pwned\x07\x1b[2J\r\nreleased: all is well\u202e\u0085\x00; $(touch pwned) '; rm -rf ~'"

// obeyed fails if anything but colours, ends of lines and tabs would do something to a terminal, or
// if there is a line that somebody else has made up.
func obeyed(t *testing.T, of, said string) {
	t.Helper()
	for _, c := range said {
		if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
			t.Errorf("%s: there is %U in %q", of, c, said)

			break
		}
	}
	for line := range strings.Lines(said) {
		if strings.HasPrefix(strings.TrimSpace(line), "released: all is well") {
			t.Errorf("%s: somebody else says %q", of, line)
		}
	}
}

// markOf is a mark in which all is whatever somebody wrote, but for the Restore.
func markOf(t *testing.T, restore string) string {
	t.Helper()
	b, err := json.Marshal(adoption.Hold{
		Restore: restore, Since: forged, Reason: forged, LastReported: forged, Paused: new(forged), Pinned: true, UpdatePolicy: new(forged),
		Refs: []xp.Ref{{APIVersion: xptest.ManagedVersion, Kind: xptest.ManagedKind, Name: forged}, {APIVersion: xptest.ManagedVersion, Kind: xptest.ManagedKind, Name: "--all"}},
	})
	if err != nil {
		t.Fatal(err)
	}

	return string(b)
}

func hostileTree(t *testing.T, restore string) []*unstructured.Unstructured {
	t.Helper()
	x := xptest.XR("x1")
	claim := xptest.Claim("o1", xptest.OfXR(x), xptest.Annotated(adoption.AnnotationHold, markOf(t, restore)), xptest.Annotated(xp.AnnotationPaused, "true"),
		xptest.SeenPaused())
	xr := xptest.XR("x1", xptest.ClaimedBy(claim), xptest.Refs(xptest.MR(forged)), xptest.Annotated(adoption.AnnotationHold, markOf(t, restore)), xptest.Annotated(xp.AnnotationPaused, "true"),
		xptest.Synced("False", xp.ReasonReconcilePaused, forged))

	return []*unstructured.Unstructured{claim, xr, xptest.Revision(xptest.RevisionName, x, xptest.ControlledBy(xptest.Composition(xptest.CompositionName, x)))}
}

func TestWaitSaysNothingForOthers(t *testing.T) {
	marked := func(restore string) *unstructured.Unstructured {
		return xptest.ModernXR(forged, xptest.Annotated(adoption.AnnotationHold, markOf(t, restore)))
	}
	for of, u := range map[string]*unstructured.Unstructured{
		"a mark": marked("velero/r"), "a forged mark": marked(forged), "a condition": xptest.ModernXR("o", xptest.Synced("False", forged, forged)),
		"an unreadable mark": xptest.ModernXR(forged, xptest.Annotated(adoption.AnnotationHold, forged)), "a name": xptest.ModernXR(forged, xptest.Reconciled()),
		"an option": xptest.ModernXR("-rf", xptest.In("--all"), xptest.Annotated(adoption.AnnotationHold, markOf(t, "velero/r"))),
	} {
		var out, stderr bytes.Buffer
		w := &wait{options: newOptions(Streams{Out: &out, Err: &stderr}), timeout: time.Millisecond, pause: time.Millisecond, reported: map[string]string{}}
		w.look = func(context.Context) (live.Roots, error) {
			return live.Roots{
				Kinds: 1, Objects: []*unstructured.Unstructured{u}, Unasked: map[string]string{forged: forged},
				Unread: map[schema.GroupVersionKind]error{{Group: "example.org", Version: "v1", Kind: forged}: errors.New(forged)},
			}, nil
		}
		w.printError(failed(w.run(t.Context())))
		obeyed(t, of, out.String())
		obeyed(t, of, stderr.String())
		if of == "an option" && !strings.Contains(stderr.String(), "validate -- --all/-rf") {
			t.Errorf("a name is no option: %s", stderr.String())
		}
		if !strings.Contains(stderr.String(), "\n  Order ") && u.GetName() == "o" {
			t.Errorf("%s: each that is waited for has a line: %s", of, stderr.String())
		}
	}
}

func TestReleaseSaysNothingForOthers(t *testing.T) {
	for of, restore := range map[string]string{"a mark": "velero/gone", "a forged mark": "velero/" + forged, "an option": "velero/--all"} {
		for _, r := range []releasing{{timeout: time.Millisecond}, {dryRun: true}, {dryRun: true, force: true}, {force: true, yes: true}} {
			s := newServer(hostileTree(t, restore)...)
			for _, format := range []printer.Format{printer.Table, printer.Wide, printer.JSON, printer.YAML} {
				r.format = format
				got := s.release(t, r)
				obeyed(t, of, got.err)
				obeyed(t, of, got.out)
				for _, said := range []string{got.err, got.out} {
					if strings.Contains(said, "--restore --all") || restore != "velero/gone" && strings.Contains(said, "--restore velero/") {
						t.Errorf("%s: a command has a Restore that there can't be: %s", of, said)
					}
				}
			}
		}
	}
}

// The question is asked below what it can cost, and nobody else answers or asks another.
func TestReleaseAsksInItsOwnWords(t *testing.T) {
	keyboard, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyboard.WriteString("n\n"); err != nil {
		t.Fatal(err)
	}
	s := newServer(hostileTree(t, "velero/gone")...)
	got := s.release(t, releasing{force: true, in: terminal})
	obeyed(t, "the question", got.err)
	if !strings.Contains(got.err, "Lift 1 hold all the same? [y/N]") {
		t.Errorf("nobody was asked: %s", got.err)
	}
	if err := errors.Join(keyboard.Close(), terminal.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestValidateSaysNothingForOthers(t *testing.T) {
	for _, restore := range []string{"velero/gone", "velero/" + forged, "velero/--all"} {
		s := newServer(append(hostileTree(t, restore), xptest.MR("-rf", xptest.Synced("False", forged, forged), xptest.Annotated(xp.AnnotationExternalName, forged)))...)
		for _, format := range printer.Formats() {
			var out, stderr bytes.Buffer
			o := newOptions(Streams{Out: &out, Err: &stderr})
			o.velero = "velero"
			v := &validation{options: o, cluster: live.NewCluster(s, s)}
			r, err := v.validateStable(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := o.print(r, output{format: printer.Format(format)}); err != nil {
				t.Fatal(err)
			}
			w := &watch{options: o, pause: time.Millisecond}
			w.view().show(r)
			w.view().failed(errors.New(forged))
			obeyed(t, format, out.String())
			obeyed(t, format, stderr.String())
			if strings.Contains(out.String(), "details -- --all") || strings.Contains(out.String(), "details --all") {
				t.Errorf("%s: a command has a Restore that there can't be: %s", format, out.String())
			}
		}
	}
}

func TestInspectSaysNothingForOthers(t *testing.T) {
	x := xptest.XR("-rf")
	mr := xptest.MR(forgedFile, xptest.ControlledBy(x), xptest.Annotated(xp.AnnotationExternalName, forged), xptest.Synced("False", forged, forged))
	objects := []*unstructured.Unstructured{
		xptest.With(x, xptest.Refs(mr, xptest.MR(forged)), xptest.Annotated(adoption.AnnotationHold, markOf(t, "velero/r"))), mr,
		xptest.XR("o", xptest.Annotated(adoption.AnnotationHold, markOf(t, forged))),
	}
	for _, format := range printer.Formats() {
		var out, stderr bytes.Buffer
		code := Run(t.Context(), []string{"inspect", "-", "-o", format}, Streams{In: bytes.NewReader(xptest.Backup(objects...)), Out: &out, Err: &stderr})
		if code != ExitProblems {
			t.Errorf("%s: exit code %d: %s", format, code, stderr.String())
		}
		obeyed(t, format, out.String())
		obeyed(t, format, stderr.String())
		if strings.Contains(out.String(), "validate -rf") {
			t.Errorf("%s: a name is an option: %s", format, out.String())
		}
	}
	var stderr bytes.Buffer
	if code := Run(t.Context(), []string{"inspect", forged + "/x"}, Streams{Out: &bytes.Buffer{}, Err: &stderr}); code != ExitFailed {
		t.Errorf("exit code %d", code)
	}
	obeyed(t, "a file that is not there", stderr.String())
}

// forgedFile is a name that is one of a file, too.
var forgedFile = strings.NewReplacer("\x00", "", "/", "").Replace(forged)

func TestReleasedIsOneLine(t *testing.T) {
	var b bytes.Buffer
	o := newOptions(Streams{Out: &b, Err: &b})
	(&release{options: o}).logf("%s: %s", forged, report.Released)
	if got := strings.Count(b.String(), "\n"); got != 1 {
		t.Errorf("%d lines: %q", got, b.String())
	}
}
