package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A releasing is what release was asked for, and what it said.
type releasing struct {
	restore, namespace, typed string
	names                     []string
	dryRun, force, yes        bool
	timeout                   time.Duration
}

// results are what release said of each object, its messages, and its exit code.
type results struct {
	Results  map[string]report.Result
	releases []report.Release
	err      string
	Code     int
}

func (s *server) release(t *testing.T, of releasing) results {
	t.Helper()
	var out, problems bytes.Buffer
	o := &options{Streams: Streams{In: strings.NewReader(of.typed), Out: &out, Err: &problems}, velero: "velero", namespace: of.namespace}
	r := &release{
		options: o, out: output{format: printer.JSON}, restore: of.restore, dryRun: of.dryRun, force: of.force, yes: of.yes, timeout: of.timeout,
		pause: time.Millisecond, settle: 10 * time.Millisecond, cluster: live.NewCluster(s, s),
	}
	if of.timeout == 0 {
		r.timeout = time.Minute
	}
	var err error
	if err = r.prepare(of.names); err != nil {
		err = &exit{code: ExitUsage, err: err}
	} else {
		err = failed(r.run(t.Context()))
	}
	got := results{err: problems.String(), Code: codeOf(err)}
	var e *exit
	if err != nil && (!errors.As(err, &e) || e.err != nil) {
		got.err += err.Error()
	}
	if out.Len() == 0 {
		return got
	}
	rep := &report.Report{}
	if err := json.Unmarshal(out.Bytes(), rep); err != nil {
		t.Fatal(err)
	}
	got.releases = rep.Releases
	got.Results = map[string]report.Result{}
	for _, release := range rep.Releases {
		got.Results[release.Object.String()] = release.Result
	}

	return got
}

// A leftTree is a claim, its XR and its MR, held by a Restore.
type leftTree struct{ claim, xr, mr, revision *unstructured.Unstructured }

func newLeftTree(by string, n string) leftTree {
	x := xptest.XR("x" + n)
	l := leftTree{mr: xptest.MR("b"+n, xptest.ControlledBy(x), xptest.Reconciled()), claim: xptest.Claim("o"+n, xptest.OfXR(x))}
	l.xr = xptest.XR("x"+n, xptest.ClaimedBy(l.claim), xptest.Refs(l.mr), xptest.Policy("Automatic"))
	l.revision = xptest.Revision(xptest.RevisionName, x, xptest.ControlledBy(xptest.Composition(xptest.CompositionName, x)))
	l.claim = restoredBy(by, l.claim, adoption.Hold{}, xptest.SeenPaused())
	l.xr = restoredBy(by, l.xr, adoption.Hold{}, xptest.SeenPaused())
	l.mr = xptest.With(l.mr, xptest.Labelled("velero.io/restore-name", by))

	return l
}

func (l leftTree) all() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{l.claim, l.xr, l.mr, l.revision}
}

func cron() *unstructured.Unstructured {
	return restoredBy("gone", xptest.Object(xp.GroupOperations+"/v1alpha1", "CronOperation", "", "nightly"), adoption.Hold{Reason: "it starts Operations by itself"})
}

func TestRelease(t *testing.T) {
	gone := newLeftTree("gone", "1")
	missing := []*unstructured.Unstructured{gone.claim, gone.xr, gone.revision}
	copied := restoredBy("gone", xptest.MR("copy"), adoption.Hold{Clone: "Bucket b", Reason: "it is a copy"})
	nameless := restoredBy("gone", xptest.MR("n", xptest.Without("metadata", "annotations", xp.AnnotationExternalName)), adoption.Hold{Identity: xp.Unknown})
	released := map[string]report.Result{"XOrder x1": report.Released, "OrderClaim team-a/o1": report.Released}
	all := func(r report.Result) map[string]report.Result {
		return map[string]report.Result{"XOrder x1": r, "OrderClaim team-a/o1": r}
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		of      releasing
		want    results
		wrote   []string
		said    string
	}{
		"Gone": {
			reason: "Nothing works on it any more.", objects: gone.all(), want: results{Results: released},
			wrote: []string{"xorders x1", "orderclaims o1", "xorders x1"},
		},
		"Ended": {
			reason: "Its Restore has given up.", objects: append(gone.all(), restore("gone", "PartiallyFailed")), want: results{Results: released},
			wrote: []string{"xorders x1", "orderclaims o1", "xorders x1"},
		},
		"UnderWay": {
			reason: "Its Restore lifts it.", objects: append(gone.all(), restore("gone", "WaitingForPluginOperations")), want: results{Results: all(report.LeftAlone)},
		},
		"UnderWayNamed": {
			reason: "Who asks for it must know that it is still held.", objects: append(gone.all(), restore("gone", "WaitingForPluginOperations")),
			of: releasing{names: []string{"x1"}}, want: results{Results: all(report.StillHeld), Code: ExitProblems},
		},
		"UnderWayForSure": {
			reason: "Nothing may work on that Restore, whatever it says.", objects: append(gone.all(), restore("gone", "InProgress")),
			of: releasing{restore: "gone"}, want: results{Results: released}, wrote: []string{"xorders x1", "orderclaims o1", "xorders x1"},
		},
		"AnotherRestore": {reason: "Only what that one holds.", objects: gone.all(), of: releasing{restore: "other"}, want: results{Results: map[string]report.Result{}}},
		"Named": {
			reason: "Nothing else is touched.", objects: append(gone.all(), newLeftTree("gone", "2").all()[:3]...), of: releasing{names: []string{"team-a/o1"}},
			want: results{Results: released}, wrote: []string{"xorders x1", "orderclaims o1", "xorders x1"},
		},
		"NotThere": {
			reason: "A typing error is none.", objects: gone.all(), of: releasing{names: []string{"team-a/o2"}}, want: results{Code: ExitFailed}, said: "cannot find team-a/o2",
		},
		"NotHeld": {
			reason: "It is as it was asked for.", objects: append(gone.all(), xptest.XR("free")), of: releasing{names: []string{"free"}},
			want: results{Results: map[string]report.Result{}},
		},
		"DryRun": {reason: "Nothing is changed.", objects: gone.all(), of: releasing{dryRun: true}, want: results{Results: all(report.WouldRelease)}},
		"DryRunMissing": {
			reason: "It would not be lifted.", objects: missing, of: releasing{dryRun: true}, want: results{Results: all(report.WouldWait), Code: ExitProblems},
		},
		"DryRunForce": {
			reason: "What it would cost is said, and not done.", objects: missing, of: releasing{dryRun: true, force: true},
			want: results{Results: map[string]report.Result{"XOrder x1": report.WouldForce, "OrderClaim team-a/o1": report.WouldRelease}},
		},
		"Missing": {
			reason: "It stays held, with the reason.", objects: missing, want: results{Results: all(report.StillHeld), Code: ExitProblems},
			wrote: []string{"orderclaims o1", "xorders x1"}, said: "XOrder x1: waiting for Bucket b1: it was not restored",
		},
		"TimedOut": {
			reason: "What comes by itself may still come.", objects: []*unstructured.Unstructured{gone.claim, gone.xr, gone.revision, xptest.With(gone.mr, xptest.Without("status"))},
			of: releasing{timeout: time.Millisecond}, want: results{Results: all(report.StillHeld), Code: ExitTimeout}, wrote: []string{"orderclaims o1", "xorders x1"},
		},
		"ForceUnasked": {
			reason: "Nobody is there to be asked.", objects: missing, of: releasing{force: true}, want: results{Code: ExitUsage}, said: "--yes",
		},
		"Forced": {
			reason: "It was said what that costs; the claim goes with its XR.", objects: missing, of: releasing{force: true, yes: true},
			want:  results{Results: map[string]report.Result{"XOrder x1": report.Forced, "OrderClaim team-a/o1": report.Released}},
			wrote: []string{"orderclaims o1", "xorders x1", "xorders x1", "orderclaims o1"}, said: "Bucket b1 is missing: Crossplane makes it anew",
		},
		"Schedule": {
			reason: "Nobody has asked for it.", objects: []*unstructured.Unstructured{cron()}, want: results{Results: map[string]report.Result{"CronOperation nightly": report.LeftAlone}},
		},
		"ScheduleNamed": {
			reason: "Its name is enough.", objects: []*unstructured.Unstructured{cron()}, of: releasing{names: []string{"nightly"}},
			want: results{Results: map[string]report.Result{"CronOperation nightly": report.Released}}, wrote: []string{"cronoperations nightly"},
		},
		"Copy": {
			reason: "Two must never manage one external resource.", objects: []*unstructured.Unstructured{copied}, of: releasing{names: []string{"copy"}, force: true, yes: true},
			want: results{Results: map[string]report.Result{"Bucket copy": report.StillHeld}, Code: ExitProblems},
		},
		"CopyUnasked": {
			reason: "It is as somebody wanted it.", objects: []*unstructured.Unstructured{copied}, want: results{Results: map[string]report.Result{"Bucket copy": report.LeftAlone}},
		},
		"Nameless": {
			reason: "Its provider would make a second one.", objects: []*unstructured.Unstructured{nameless},
			want: results{Results: map[string]report.Result{"Bucket n": report.StillHeld}, Code: ExitProblems},
		},
		"NamelessForced": {
			reason: "Somebody wants just that.", objects: []*unstructured.Unstructured{nameless}, of: releasing{force: true, yes: true},
			want: results{Results: map[string]report.Result{"Bucket n": report.Forced}}, wrote: []string{"buckets n"}, said: "its provider makes another external resource",
		},
		"Unreadable": {
			reason: "It must not be taken for released.", objects: []*unstructured.Unstructured{xptest.XR("x", xptest.Annotated(adoption.AnnotationHold, "?"))},
			want: results{Results: map[string]report.Result{"XOrder x": report.StillHeld}, Code: ExitProblems},
		},
		"None": {reason: "There is nothing to do.", objects: []*unstructured.Unstructured{xptest.XR("x")}, want: results{Results: map[string]report.Result{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(tc.objects...)
			got := s.release(t, tc.of)
			if diff := cmp.Diff(tc.want, results{Results: got.Results, Code: got.Code}, cmpopts.IgnoreUnexported(results{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, got.err)
			}
			if diff := cmp.Diff(tc.wrote, s.wrote()); diff != "" {
				t.Errorf("%s\nwritten: -want, +got:\n%s", tc.reason, diff)
			}
			if !strings.Contains(got.err, tc.said) {
				t.Errorf("%s\nsaid: %s", tc.reason, got.err)
			}
			for _, r := range got.releases {
				if r.Result != report.Released && r.Reason == "" && len(r.Steps) == 0 {
					t.Errorf("%s has no reason", r.Object)
				}
			}
		})
	}
}
