package hooks

import (
	"bytes"
	gocmp "cmp"
	"encoding/json"
	"errors"
	"io"
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

type releaseArgs struct {
	restore, namespace string
	// format is JSON by default.
	format             printer.Format
	names              []string
	dryRun, force, yes bool
	trustMarks         bool
	timeout            time.Duration
	// in is the source of answers; nil for none.
	in io.Reader
	// asked is called with each message.
	asked func(said string)
}

// results are the results by object, the messages and the exit code.
type results struct {
	Results  map[string]report.Result
	releases []report.Release
	err, out string
	Code     int
}

func (s *server) release(t *testing.T, of releaseArgs) results {
	t.Helper()
	var out bytes.Buffer
	problems := &recorder{heard: of.asked}
	o := newOptions(Streams{In: of.in, Out: &out, Err: problems})
	o.velero, o.namespace = "velero", of.namespace
	r := &release{
		options: o, out: output{format: gocmp.Or(of.format, printer.JSON)}, restore: of.restore, dryRun: of.dryRun, force: of.force, yes: of.yes, timeout: of.timeout,
		trustMarks: of.trustMarks, pause: time.Millisecond, settle: 10 * time.Millisecond, cluster: live.NewCluster(s, s),
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
	o.printError(err)
	got := results{err: problems.String(), out: out.String(), Code: codeOf(err)}
	if out.Len() == 0 || gocmp.Or(of.format, printer.JSON) != printer.JSON {
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

func newLeftTree(n string) leftTree { return newLeftTreeAs(n, adoption.Hold{}) }

func newLeftTreeAs(n string, h adoption.Hold) leftTree {
	x := xptest.XR("x" + n)
	l := leftTree{mr: xptest.MR("b"+n, xptest.ControlledBy(x), xptest.Reconciled()), claim: xptest.Claim("o"+n, xptest.OfXR(x))}
	l.xr = xptest.XR("x"+n, xptest.ClaimedBy(l.claim), xptest.Refs(l.mr), xptest.Policy("Automatic"))
	l.revision = xptest.Revision(xptest.RevisionName, x, xptest.ControlledBy(xptest.Composition(xptest.CompositionName, x)))
	l.claim = restored(l.claim, h, xptest.SeenPaused())
	l.xr = restored(l.xr, h, xptest.SeenPaused())
	l.mr = xptest.With(l.mr, xptest.Labelled("velero.io/restore-name", "gone"))

	return l
}

func (l leftTree) all() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{l.claim, l.xr, l.mr, l.revision}
}

func cron() *unstructured.Unstructured {
	return restored(xptest.Object(xp.GroupOperations+"/v1alpha1", "CronOperation", "", "nightly"), adoption.Hold{Reason: "it starts Operations by itself"})
}

func TestRelease(t *testing.T) {
	left := newLeftTree("1")
	missing := []*unstructured.Unstructured{left.claim, left.xr, left.revision}
	away := newLeftTreeAs("3", adoption.Hold{Quarantine: true})
	away.mr = restored(away.mr, adoption.Hold{Quarantine: true})
	kept := newLeftTreeAs("3", adoption.Hold{ByHand: true})
	fresh := restored(xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "new"), adoption.Hold{Quarantine: true})
	inQuarantine := func(r report.Result) map[string]report.Result {
		return map[string]report.Result{"XOrder x3": r, "OrderClaim team-a/o3": r, "Bucket b3": r}
	}
	copied := restored(xptest.MR("copy"), adoption.Hold{Clone: "Bucket b", Reason: "it is a copy"})
	foreign := xptest.With(restored(xptest.XR("foreign", xptest.NeverComposed()), adoption.Hold{}), xptest.SeenPaused())
	if err := adoption.Key(bytes.Repeat([]byte("o"), adoption.KeySize)).Sign(foreign, ""); err != nil {
		t.Fatal(err)
	}
	nameless := restored(xptest.MR("n", xptest.Without("metadata", "annotations", xp.AnnotationExternalName)), adoption.Hold{Identity: xp.Unknown})
	released := map[string]report.Result{"XOrder x1": report.Released, "OrderClaim team-a/o1": report.Released}
	all := func(r report.Result) map[string]report.Result {
		return map[string]report.Result{"XOrder x1": r, "OrderClaim team-a/o1": r}
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		of      releaseArgs
		want    results
		wrote   []string
		said    string
	}{
		"Gone": {
			reason: "Nothing works on it any more.", objects: left.all(), want: results{Results: released},
			wrote: []string{"xorders x1", "orderclaims o1", "xorders x1"},
		},
		"Ended": {
			reason: "Its Restore has given up.", objects: append(left.all(), gone("PartiallyFailed")), want: results{Results: released},
			wrote: []string{"xorders x1", "orderclaims o1", "xorders x1"},
		},
		"UnderWay": {
			reason: "Its Restore lifts it.", objects: append(left.all(), gone("WaitingForPluginOperations")), want: results{Results: all(report.LeftAlone)},
		},
		"UnderWayNamed": {
			reason: "Who asks for it must know that it is still held.", objects: append(left.all(), gone("WaitingForPluginOperations")),
			of: releaseArgs{names: []string{"x1"}}, want: results{Results: all(report.StillHeld), Code: ExitProblems},
		},
		"UnderWayForSure": {
			reason: "Nothing may work on that Restore, whatever it says.", objects: append(left.all(), gone("InProgress")),
			of: releaseArgs{restore: "gone"}, want: results{Results: released}, wrote: []string{"xorders x1", "orderclaims o1", "xorders x1"},
		},
		"AnotherRestore": {reason: "Only what that one holds.", objects: left.all(), of: releaseArgs{restore: "other"}, want: results{Results: map[string]report.Result{}}},
		"Named": {
			reason: "Nothing else is touched.", objects: append(left.all(), newLeftTree("2").all()[:3]...), of: releaseArgs{names: []string{"team-a/o1"}},
			want: results{Results: released}, wrote: []string{"xorders x1", "orderclaims o1", "xorders x1"},
		},
		"NotThere": {
			reason: "A typing error is none.", objects: left.all(), of: releaseArgs{names: []string{"team-a/o2"}}, want: results{Code: ExitFailed}, said: "cannot find team-a/o2",
		},
		"NotHeld": {
			reason: "It is as it was asked for.", objects: append(left.all(), xptest.XR("free")), of: releaseArgs{names: []string{"free"}},
			want: results{Results: map[string]report.Result{}},
		},
		"DryRun": {reason: "Nothing is changed.", objects: left.all(), of: releaseArgs{dryRun: true}, want: results{Results: all(report.WouldRelease)}},
		"DryRunMissing": {
			reason: "It would not be lifted.", objects: missing, of: releaseArgs{dryRun: true}, want: results{Results: all(report.WouldWait), Code: ExitProblems},
		},
		"DryRunForce": {
			reason: "What it would cost is said, and not done.", objects: missing, of: releaseArgs{dryRun: true, force: true},
			want: results{Results: map[string]report.Result{"XOrder x1": report.WouldForce, "OrderClaim team-a/o1": report.WouldRelease}},
		},
		"Missing": {
			reason: "It stays held, with the reason.", objects: missing, want: results{Results: all(report.StillHeld), Code: ExitProblems},
			wrote: []string{"orderclaims o1", "xorders x1"}, said: "XOrder x1: waiting for Bucket b1: it was not restored",
		},
		"TimedOut": {
			reason: "What comes by itself may still come.", objects: []*unstructured.Unstructured{left.claim, left.xr, left.revision, xptest.With(left.mr, xptest.Without("status"))},
			of: releaseArgs{timeout: time.Millisecond}, want: results{Results: all(report.StillHeld), Code: ExitTimeout}, wrote: []string{"orderclaims o1", "xorders x1"},
		},
		"ForceUnasked": {
			reason: "Nobody is there to be asked.", objects: missing, of: releaseArgs{force: true}, want: results{Code: ExitUsage}, said: "--yes",
		},
		"Forced": {
			reason: "It was said what that costs; the claim goes with its XR.", objects: missing, of: releaseArgs{force: true, yes: true},
			want:  results{Results: map[string]report.Result{"XOrder x1": report.Forced, "OrderClaim team-a/o1": report.Released}},
			wrote: []string{"orderclaims o1", "xorders x1", "xorders x1", "orderclaims o1"}, said: "Bucket b1 is missing: Crossplane makes it anew",
		},
		"Schedule": {
			reason: "Nobody has asked for it.", objects: []*unstructured.Unstructured{cron()}, want: results{Results: map[string]report.Result{"CronOperation nightly": report.LeftAlone}},
		},
		"ScheduleNamed": {
			reason: "Its name is enough.", objects: []*unstructured.Unstructured{cron()}, of: releaseArgs{names: []string{"nightly"}},
			want: results{Results: map[string]report.Result{"CronOperation nightly": report.Released}}, wrote: []string{"cronoperations nightly"},
		},
		"Forged": {
			reason: "Anybody can write a mark.", objects: []*unstructured.Unstructured{foreign},
			want: results{Results: map[string]report.Result{"XOrder foreign": report.StillHeld}, Code: ExitProblems},
		},
		"ForgedDryRun": {
			reason: "What is said before is what is done.", objects: []*unstructured.Unstructured{foreign}, of: releaseArgs{dryRun: true},
			want: results{Results: map[string]report.Result{"XOrder foreign": report.WouldWait}, Code: ExitProblems},
		},
		"ForgedTrusted": {
			reason: "It may be another cluster's.", objects: []*unstructured.Unstructured{foreign}, of: releaseArgs{names: []string{"foreign"}, trustMarks: true},
			want: results{Results: map[string]report.Result{"XOrder foreign": report.Released}}, wrote: []string{"xorders foreign", "xorders foreign"},
		},
		"Copy": {
			reason: "Two must not manage one external resource.", objects: []*unstructured.Unstructured{copied}, of: releaseArgs{names: []string{"copy"}},
			want: results{Results: map[string]report.Result{"Bucket copy": report.StillHeld}, Code: ExitProblems},
		},
		"CopyForced": {
			reason: "It may be none.", objects: []*unstructured.Unstructured{copied}, of: releaseArgs{names: []string{"copy"}, force: true, yes: true},
			want: results{Results: map[string]report.Result{"Bucket copy": report.Forced}}, wrote: []string{"buckets copy"},
		},
		"CopyForcedUnnamed": {
			reason: "Whoever lifts all has not looked at each copy.", objects: []*unstructured.Unstructured{copied}, of: releaseArgs{force: true, yes: true},
			want: results{Results: map[string]report.Result{"Bucket copy": report.LeftAlone}},
		},
		"CopyUnasked": {
			reason: "It is as somebody wanted it.", objects: []*unstructured.Unstructured{copied}, want: results{Results: map[string]report.Result{"Bucket copy": report.LeftAlone}},
		},
		"NoExternalName": {
			reason: "Its provider would make a second one.", objects: []*unstructured.Unstructured{nameless},
			want: results{Results: map[string]report.Result{"Bucket n": report.StillHeld}, Code: ExitProblems},
		},
		"NoExternalNameForced": {
			reason: "Somebody wants just that.", objects: []*unstructured.Unstructured{nameless}, of: releaseArgs{force: true, yes: true},
			want: results{Results: map[string]report.Result{"Bucket n": report.Forced}}, wrote: []string{"buckets n"}, said: "its provider makes another external resource",
		},
		"Quarantine": {
			reason: "Somebody wants it held; the source may be alive.", objects: away.all(), want: results{Results: inQuarantine(report.LeftAlone)},
		},
		"QuarantineOfTheRestore": {
			reason: "Its end is asked for.", objects: away.all(), of: releaseArgs{restore: "gone"}, want: results{Results: inQuarantine(report.Released)},
			wrote: []string{"buckets b3", "xorders x3", "orderclaims o3", "buckets b3", "xorders x3", "orderclaims o3", "xorders x3"},
		},
		"QuarantineNamed": {
			reason: "The same, with all that belongs to it.", objects: append(away.all(), newLeftTree("2").all()[:3]...), of: releaseArgs{names: []string{"x3"}},
			want: results{Results: inQuarantine(report.Released)}, wrote: []string{"buckets b3", "xorders x3", "orderclaims o3", "buckets b3", "xorders x3", "orderclaims o3", "xorders x3"},
		},
		"QuarantineOfAnotherRestore": {
			reason: "That is not asked for.", objects: away.all(), of: releaseArgs{restore: "other"}, want: results{Results: map[string]report.Result{}},
		},
		"QuarantineDryRun": {
			reason: "Nothing is changed.", objects: away.all(), of: releaseArgs{restore: "gone", dryRun: true}, want: results{Results: inQuarantine(report.WouldRelease)},
		},
		"QuarantineDryRunMissing": {
			reason: "What would come after it is told.", objects: []*unstructured.Unstructured{away.claim, away.xr, away.revision},
			of: releaseArgs{restore: "gone", dryRun: true}, want: results{Results: map[string]report.Result{"XOrder x3": report.WouldWait, "OrderClaim team-a/o3": report.WouldWait}, Code: ExitProblems},
		},
		"QuarantineOfWhatIsNew": {
			reason: "It looks like nothing of Crossplane's yet.", objects: []*unstructured.Unstructured{fresh}, of: releaseArgs{restore: "gone"},
			want: results{Results: map[string]report.Result{"Bucket new": report.Released}}, wrote: []string{"buckets new", "buckets new"},
		},
		"QuarantineOfWhatIsNewByName": {
			reason: "The same.", objects: []*unstructured.Unstructured{fresh}, of: releaseArgs{names: []string{"new"}},
			want: results{Results: map[string]report.Result{"Bucket new": report.Released}}, wrote: []string{"buckets new", "buckets new"},
		},
		"QuarantineOfWhatIsNewUnasked": {
			reason: "Nobody has asked for it.", objects: []*unstructured.Unstructured{fresh}, want: results{Results: map[string]report.Result{"Bucket new": report.LeftAlone}},
		},
		"ByHand": {
			reason: "Somebody wants to be asked.", objects: append(kept.all(), gone("Completed")),
			want: results{Results: map[string]report.Result{"XOrder x3": report.LeftAlone, "OrderClaim team-a/o3": report.LeftAlone}},
		},
		"ByHandOfTheRestore": {
			reason: "They are.", objects: append(kept.all(), gone("Completed")), of: releaseArgs{restore: "gone"},
			want:  results{Results: map[string]report.Result{"XOrder x3": report.Released, "OrderClaim team-a/o3": report.Released}},
			wrote: []string{"xorders x3", "orderclaims o3", "xorders x3", "orderclaims o3", "xorders x3"}, said: "let it go on, as a person has said",
		},
		"ByHandNamed": {
			reason: "The same, with all that belongs to it.", objects: append(kept.all(), newLeftTree("2").all()[:3]...), of: releaseArgs{names: []string{"x3"}},
			want:  results{Results: map[string]report.Result{"XOrder x3": report.Released, "OrderClaim team-a/o3": report.Released}},
			wrote: []string{"xorders x3", "orderclaims o3", "xorders x3", "orderclaims o3", "xorders x3"},
		},
		"ByHandDryRun": {
			reason: "Nothing is changed.", objects: kept.all(), of: releaseArgs{restore: "gone", dryRun: true},
			want: results{Results: map[string]report.Result{"XOrder x3": report.WouldRelease, "OrderClaim team-a/o3": report.WouldRelease}},
		},
		"ByHandMissing": {
			reason: "What is not ready is not lifted.", objects: []*unstructured.Unstructured{kept.claim, kept.xr, kept.revision},
			of:    releaseArgs{restore: "gone"},
			want:  results{Results: map[string]report.Result{"XOrder x3": report.StillHeld, "OrderClaim team-a/o3": report.StillHeld}, Code: ExitProblems},
			wrote: []string{"xorders x3", "orderclaims o3", "orderclaims o3", "xorders x3"},
		},
		"QuarantineBelow": {
			reason: "Its XR is not let go without it.", objects: []*unstructured.Unstructured{left.xr, left.claim, left.revision, restored(left.mr, adoption.Hold{Quarantine: true})},
			want: results{
				Results: map[string]report.Result{"XOrder x1": report.StillHeld, "OrderClaim team-a/o1": report.StillHeld, "Bucket b1": report.LeftAlone}, Code: ExitProblems,
			},
			wrote: []string{"orderclaims o1", "xorders x1"}, said: "Bucket b1: it is in quarantine",
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

// Each way to release gives the settings from before the restore back.
func TestReleaseGivesBack(t *testing.T) {
	for _, force := range []bool{false, true} {
		left := newLeftTree("1")
		objects := left.all()
		if force {
			objects = []*unstructured.Unstructured{left.claim, left.xr, left.revision}
		}
		s := newServer(objects...)
		s.release(t, releaseArgs{force: force, yes: force})
		xr, claim := s.get(t, xorders, "", "x1"), s.get(t, claims, xptest.Namespace, "o1")
		if policy, ok := (xp.Instance{Unstructured: xr}).UpdatePolicy(); !ok || policy != "Automatic" {
			t.Errorf("force %v: the XR's policy is %q", force, policy)
		}
		if policy, ok := (xp.Instance{Unstructured: claim}).UpdatePolicy(); ok {
			t.Errorf("force %v: the claim had no policy; now it has %q", force, policy)
		}
		if len(xr.GetAnnotations())+len(claim.GetAnnotations()) > 0 {
			t.Errorf("force %v: annotations are left: %v, %v", force, xr.GetAnnotations(), claim.GetAnnotations())
		}
	}
}

func TestReleaseLog(t *testing.T) {
	var b bytes.Buffer
	log := (&release{options: &options{Streams: Streams{Err: &b}}}).logger()
	for range 2 {
		log.WithField("object", "XOrder x").WithError(errors.New("no right")).Warn("Cannot say it")
		log.Info("Step taken")
	}
	if diff := cmp.Diff("warning: Cannot say it; error: no right; object: XOrder x\n", b.String()); diff != "" {
		t.Errorf("What goes wrong is said once: -want, +got:\n%s", diff)
	}
}
