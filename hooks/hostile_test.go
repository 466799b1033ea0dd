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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// hostile is text that tries to control a terminal or a shell, or to fake a line of output.
const hostile = "x\x1b]0;pwned\x07\x1b[2J\r\nreleased: all is well\u202e\u0085\x00; $(touch pwned) '; rm -rf ~'"

// checkOutput fails on control characters other than colours, line ends and tabs, and on a faked
// line.
func checkOutput(t *testing.T, of, said string) {
	t.Helper()
	for _, c := range said {
		if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
			t.Errorf("%s: unprintable character %U in %q", of, c, said)

			break
		}
	}
	for line := range strings.Lines(said) {
		if strings.HasPrefix(strings.TrimSpace(line), "released: all is well") {
			t.Errorf("%s: a hostile name prints the result line %q", of, line)
		}
	}
}

// markOf is a mark with hostile text everywhere but in the Restore.
func markOf(t *testing.T, restore string) string {
	t.Helper()
	b, err := json.Marshal(hold.Hold{
		Restore: restore, Since: hostile, Reason: hostile, LastReported: hostile, Paused: new(hostile), Pinned: true, UpdatePolicy: new(hostile),
		Refs: []xp.Ref{{APIVersion: xptest.ManagedVersion, Kind: xptest.ManagedKind, Name: hostile}, {APIVersion: xptest.ManagedVersion, Kind: xptest.ManagedKind, Name: "--all"}},
	})
	if err != nil {
		t.Fatal(err)
	}

	return string(b)
}

func hostileTree(t *testing.T, restore string) []*unstructured.Unstructured {
	t.Helper()
	x := xptest.XR("x1")
	claim := xptest.Claim("o1", xptest.OfXR(x), xptest.Annotated(hold.Annotation, markOf(t, restore)), xptest.Annotated(xp.AnnotationPaused, "true"),
		xptest.SeenPaused())
	xr := xptest.XR("x1", xptest.ClaimedBy(claim), xptest.Refs(xptest.MR(hostile)), xptest.Annotated(hold.Annotation, markOf(t, restore)), xptest.Annotated(xp.AnnotationPaused, "true"),
		xptest.Synced("False", xp.ReasonReconcilePaused, hostile))

	return []*unstructured.Unstructured{claim, xr, xptest.Revision(xptest.RevisionName, x, xptest.ControlledBy(xptest.Composition(xptest.CompositionName, x)))}
}

func TestWaitWithHostileText(t *testing.T) {
	marked := func(restore string) *unstructured.Unstructured {
		return xptest.XRV2(hostile, xptest.Annotated(hold.Annotation, markOf(t, restore)))
	}
	for of, u := range map[string]*unstructured.Unstructured{
		"a mark": marked("velero/r"), "a forged mark": marked(hostile), "a condition": xptest.XRV2("o", xptest.Synced("False", hostile, hostile)),
		"an unreadable mark": xptest.XRV2(hostile, xptest.Annotated(hold.Annotation, hostile)), "a name": xptest.XRV2(hostile, xptest.Reconciled()),
		"an option": xptest.XRV2("-rf", xptest.In("--all"), xptest.Annotated(hold.Annotation, markOf(t, "velero/r"))),
	} {
		var out, stderr bytes.Buffer
		w := &wait{options: newOptions(Program{Out: &out, Err: &stderr}), timeout: time.Millisecond, pause: time.Millisecond}
		w.look = func(context.Context) (cluster.Roots, error) {
			return cluster.Roots{
				Kinds: 1, Objects: []*unstructured.Unstructured{u}, Unasked: map[string]string{hostile: hostile},
				Unread: map[schema.GroupVersionKind]error{{Group: "example.org", Version: "v1", Kind: hostile}: errors.New(hostile)},
			}, nil
		}
		w.printError(failed(w.run(t.Context())))
		checkOutput(t, of, out.String())
		checkOutput(t, of, stderr.String())
		if of == "an option" && !strings.Contains(stderr.String(), "validate -- --all/-rf") {
			t.Errorf("the command must not read a name as an option: %s", stderr.String())
		}
		if !strings.Contains(stderr.String(), "\n  Order ") && u.GetName() == "o" {
			t.Errorf("%s: each object that the command waits for needs a line: %s", of, stderr.String())
		}
	}
}

func TestReleaseWithHostileText(t *testing.T) {
	for of, restore := range map[string]string{"a mark": "velero/gone", "a forged mark": "velero/" + hostile, "an option": "velero/--all"} {
		for _, r := range []releaseArgs{{timeout: time.Millisecond}, {dryRun: true}, {dryRun: true, force: true}, {force: true, yes: true}} {
			s := newServer(hostileTree(t, restore)...)
			for _, format := range []printer.Format{printer.Table, printer.Wide, printer.JSON, printer.YAML} {
				r.format = format
				got := s.release(t, r)
				checkOutput(t, of, got.err)
				checkOutput(t, of, got.out)
				for _, said := range []string{got.err, got.out} {
					if strings.Contains(said, "--restore --all") || restore != "velero/gone" && strings.Contains(said, "--restore velero/") {
						t.Errorf("%s: a suggested command has an impossible Restore name: %s", of, said)
					}
				}
			}
		}
	}
}

// The question comes after the risks. Text from objects neither answers it nor fakes another one.
func TestReleaseQuestionWithHostileText(t *testing.T) {
	_, terminal := newKeyboard(t, "n\n")
	s := newServer(hostileTree(t, "velero/gone")...)
	got := s.release(t, releaseArgs{force: true, in: terminal})
	checkOutput(t, "the question", got.err)
	if !strings.Contains(got.err, "Lift 1 hold all the same? [y/N]") {
		t.Errorf("the command must ask: %s", got.err)
	}
}

func TestValidateWithHostileText(t *testing.T) {
	for _, restore := range []string{"velero/gone", "velero/" + hostile, "velero/--all"} {
		s := newServer(append(hostileTree(t, restore), xptest.MR("-rf", xptest.Synced("False", hostile, hostile), xptest.Annotated(xp.AnnotationExternalName, hostile)))...)
		for _, format := range printer.Formats() {
			var out, stderr bytes.Buffer
			o := newOptions(Program{Out: &out, Err: &stderr})
			o.velero = "velero"
			v := &validation{options: o, cluster: cluster.New(s, s)}
			r, err := v.validateStable(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := o.print(r, output{format: printer.Format(format)}); err != nil {
				t.Fatal(err)
			}
			checkOutput(t, format, out.String())
			checkOutput(t, format, stderr.String())
			if strings.Contains(out.String(), "details -- --all") || strings.Contains(out.String(), "details --all") {
				t.Errorf("%s: a suggested command has an impossible Restore name: %s", format, out.String())
			}
		}
	}
}

func TestInspectWithHostileText(t *testing.T) {
	x := xptest.XR("-rf")
	mr := xptest.MR(hostileFile, xptest.ControlledBy(x), xptest.Annotated(xp.AnnotationExternalName, hostile), xptest.Synced("False", hostile, hostile))
	objects := []*unstructured.Unstructured{
		xptest.With(x, xptest.Refs(mr, xptest.MR(hostile)), xptest.Annotated(hold.Annotation, markOf(t, "velero/r"))), mr,
		xptest.XR("o", xptest.Annotated(hold.Annotation, markOf(t, hostile))),
	}
	for _, format := range printer.Formats() {
		var out, stderr bytes.Buffer
		code := Run(t.Context(), []string{"inspect", "-", "-o", format}, Program{In: bytes.NewReader(xptest.Backup(objects...)), Out: &out, Err: &stderr, DryRunner: dryRunNothing})
		if code != ExitProblems {
			t.Errorf("%s: exit code %d: %s", format, code, stderr.String())
		}
		checkOutput(t, format, out.String())
		checkOutput(t, format, stderr.String())
		if strings.Contains(out.String(), "validate -rf") {
			t.Errorf("%s: a suggested command has a name that is an option: %s", format, out.String())
		}
	}
	var stderr bytes.Buffer
	if code := Run(t.Context(), []string{"inspect", hostile + "/x"}, Program{Out: &bytes.Buffer{}, Err: &stderr}); code != ExitFailed {
		t.Errorf("exit code %d", code)
	}
	checkOutput(t, "a file that is not there", stderr.String())
}

// hostileFile is hostile text that is a valid file name.
var hostileFile = strings.NewReplacer("\x00", "", "/", "").Replace(hostile)

func TestReleasedIsOneLine(t *testing.T) {
	var b bytes.Buffer
	o := newOptions(Program{Out: &b, Err: &b})
	(&release{options: o}).logf("%s: %s", hostile, report.Released)
	if got := strings.Count(b.String(), "\n"); got != 1 {
		t.Errorf("want 1 line, got %d: %q", got, b.String())
	}
}
