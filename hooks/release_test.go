package hooks

import (
	"bytes"
	gocmp "cmp"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
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
	trustMarks, all    bool
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
	o := newOptions(Program{In: of.in, Out: &out, Err: problems})
	o.velero, o.namespace, o.all = "velero", of.namespace, of.all
	r := &release{
		options: o, out: output{format: gocmp.Or(of.format, printer.JSON)}, restore: of.restore, dryRun: of.dryRun, force: of.force, yes: of.yes, timeout: of.timeout,
		trustMarks: of.trustMarks, pause: time.Millisecond, settle: 10 * time.Millisecond,
	}
	if of.timeout == 0 {
		r.timeout = time.Minute
	}
	var err error
	if err = r.prepare(of.names); err != nil {
		err = &exit{code: ExitUsage, err: err}
	} else {
		err = failed(r.run(t.Context(), cluster.New(s, s)))
	}
	o.printError(err)

	return resultsOf(t, out.String(), problems.String(), err)
}

// A leftTree is a claim, its XR and its MR, held by a Restore.
type leftTree struct{ claim, xr, mr, revision *unstructured.Unstructured }

func newLeftTree(n string) leftTree { return newLeftTreeAs(n, hold.Hold{}) }

func newLeftTreeAs(n string, h hold.Hold) leftTree {
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
	return restored(xptest.Object(xp.GroupOperations+"/v1alpha1", "CronOperation", "", "nightly"), hold.Hold{Reason: "it starts Operations by itself"})
}

func TestRelease(t *testing.T) {
	left := newLeftTree("1")
	missing := []*unstructured.Unstructured{left.claim, left.xr, left.revision}
	away := newLeftTreeAs("3", hold.Hold{Quarantine: true})
	away.mr = restored(away.mr, hold.Hold{Quarantine: true})
	kept := newLeftTreeAs("3", hold.Hold{ByHand: true})
	fresh := restored(xptest.Object(xptest.ManagedVersion, xptest.ManagedKind, "", "new"), hold.Hold{Quarantine: true})
	inQuarantine := func(r report.Result) map[string]report.Result {
		return map[string]report.Result{"XOrder x3": r, "OrderClaim team-a/o3": r, "Bucket b3": r}
	}
	byHand := func(r report.Result) map[string]report.Result {
		return map[string]report.Result{"XOrder x3": r, "OrderClaim team-a/o3": r}
	}
	one := func(object string, r report.Result) map[string]report.Result {
		return map[string]report.Result{object: r}
	}
	copied := restored(xptest.MR("copy"), hold.Hold{Clone: "Bucket b", Reason: "it is a copy"})
	foreign := xptest.With(restored(xptest.XR("foreign", xptest.NeverComposed()), hold.Hold{}), xptest.SeenPaused())
	if err := hold.Key(bytes.Repeat([]byte("o"), hold.KeySize)).Sign(foreign, ""); err != nil {
		t.Fatal(err)
	}
	nameless := restored(xptest.MR("n", xptest.Without("metadata", "annotations", xp.AnnotationExternalName)), hold.Hold{Identity: xp.Unknown})
	released := map[string]report.Result{"XOrder x1": report.Released, "OrderClaim team-a/o1": report.Released}
	all := func(r report.Result) map[string]report.Result {
		return map[string]report.Result{"XOrder x1": r, "OrderClaim team-a/o1": r}
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		of      releaseArgs
		want    map[string]report.Result
		code    int
		wrote   []string
		said    string
	}{
		"Gone": {
			reason: "Without its Restore no process lifts the hold.", objects: left.all(), want: released,
			wrote: []string{"xorders x1", "orderclaims o1", "xorders x1"},
		},
		"UnderWay": {
			reason: "The running Restore lifts the hold.", objects: append(left.all(), gone("WaitingForPluginOperations")), want: all(report.LeftAlone),
		},
		"UnderWayNamed": {
			reason: "The user named the XR and must learn that it is still held.", objects: append(left.all(), gone("WaitingForPluginOperations")),
			of: releaseArgs{names: []string{"x1"}}, want: all(report.StillHeld), code: ExitProblems,
		},
		"UnderWayOfTheRestore": {
			reason: "--restore must overrule the Restore's phase, because Velero may be gone.", objects: append(left.all(), gone("InProgress")),
			of: releaseArgs{restore: "gone"}, want: released, wrote: []string{"xorders x1", "orderclaims o1", "xorders x1"},
		},
		"NoSuchRestore": {reason: "A typing error must not look like success.", objects: left.all(), of: releaseArgs{restore: "other"}, code: ExitFailed},
		"Bare": {
			reason: "A name without a namespace is a cluster-scoped one.", objects: left.all(), of: releaseArgs{names: []string{"o1"}}, code: ExitFailed, said: "Names are NAMESPACE/NAME",
		},
		"AnotherRestore": {reason: "--restore must limit the command to the holds of that Restore.", objects: append(left.all(), xptest.Object("velero.io/v1", "Restore", "velero", "other")), of: releaseArgs{restore: "other"}, want: map[string]report.Result{}},
		"Named": {
			reason: "A name must limit the command to its tree.", objects: append(left.all(), newLeftTree("2").all()[:3]...), of: releaseArgs{names: []string{"team-a/o1"}},
			want: released, wrote: []string{"xorders x1", "orderclaims o1", "xorders x1"},
		},
		"NotThere": {
			reason: "A wrong name must be an error.", objects: left.all(), of: releaseArgs{names: []string{"team-a/o2"}}, code: ExitFailed, said: "cannot find team-a/o2",
		},
		"DryRun": {reason: "A dry run must change nothing.", objects: left.all(), of: releaseArgs{dryRun: true}, want: all(report.WouldRelease)},
		"DryRunMissing": {
			reason: "A dry run must report a hold that would stay.", objects: missing, of: releaseArgs{dryRun: true}, want: all(report.WouldWait), code: ExitProblems,
		},
		"DryRunForce": {
			reason: "A dry run must name the cost of --force and write nothing.", objects: missing, of: releaseArgs{dryRun: true, force: true},
			want: map[string]report.Result{"XOrder x1": report.WouldForce, "OrderClaim team-a/o1": report.WouldRelease},
		},
		"Missing": {
			reason: "An XR that lacks a resource must stay held, with the reason.", objects: missing, want: all(report.StillHeld), code: ExitProblems,
			wrote: []string{"orderclaims o1", "xorders x1"}, said: "XOrder x1: waiting for Bucket b1: it is not in the cluster. ",
		},
		"TimedOut": {
			reason: "A resource that is not ready yet may become ready later.", objects: []*unstructured.Unstructured{left.claim, left.xr, left.revision, xptest.With(left.mr, xptest.Without("status"))},
			of: releaseArgs{timeout: time.Millisecond}, want: all(report.StillHeld), code: ExitTimeout, wrote: []string{"orderclaims o1", "xorders x1"},
		},
		"ForceUnasked": {reason: "Without a terminal --force needs --yes.", objects: missing, of: releaseArgs{force: true}, code: ExitUsage, said: "--yes"},
		"Forced": {
			reason: "--yes confirms the cost, and the release of the XR releases the claim.", objects: missing, of: releaseArgs{force: true, yes: true},
			want:  map[string]report.Result{"XOrder x1": report.Forced, "OrderClaim team-a/o1": report.Released},
			wrote: []string{"orderclaims o1", "xorders x1", "xorders x1", "orderclaims o1"}, said: "[Dangling]",
		},
		"Schedule": {
			reason: "A schedule must stay held until a user names it.", objects: []*unstructured.Unstructured{cron()}, want: one("CronOperation nightly", report.LeftAlone),
		},
		"ScheduleNamed": {
			reason: "The name of a schedule is enough to release it.", objects: []*unstructured.Unstructured{cron()}, of: releaseArgs{names: []string{"nightly"}},
			want: one("CronOperation nightly", report.Released), wrote: []string{"cronoperations nightly"},
		},
		"Forged": {
			reason: "Any writer can forge a mark.", objects: []*unstructured.Unstructured{foreign},
			want: one("XOrder foreign", report.StillHeld), code: ExitProblems,
		},
		"ForgedDryRun": {
			reason: "A dry run must announce the result of the real run.", objects: []*unstructured.Unstructured{foreign}, of: releaseArgs{dryRun: true},
			want: one("XOrder foreign", report.WouldWait), code: ExitProblems,
		},
		"ForgedTrusted": {
			reason: "A trusted mark can be of another cluster.", objects: []*unstructured.Unstructured{foreign}, of: releaseArgs{names: []string{"foreign"}, trustMarks: true},
			want: one("XOrder foreign", report.Released), wrote: []string{"xorders foreign", "xorders foreign"},
		},
		"Copy": {
			reason: "Two MRs must not manage one external resource.", objects: []*unstructured.Unstructured{copied}, of: releaseArgs{names: []string{"copy"}},
			want: one("Bucket copy", report.StillHeld), code: ExitProblems,
		},
		"CopyForced": {
			reason: "A user can know that the MR is no copy.", objects: []*unstructured.Unstructured{copied}, of: releaseArgs{names: []string{"copy"}, force: true, yes: true},
			want: one("Bucket copy", report.Forced), wrote: []string{"buckets copy"},
		},
		"CopyForcedUnnamed": {
			reason: "A user who forces every hold has not checked each copy.", objects: []*unstructured.Unstructured{copied}, of: releaseArgs{force: true, yes: true},
			want: one("Bucket copy", report.LeftAlone),
		},
		"CopyUnasked": {
			reason: "The settings wanted the copy held.", objects: []*unstructured.Unstructured{copied}, want: one("Bucket copy", report.LeftAlone),
		},
		"NoExternalName": {
			reason: "The provider would create a second external resource.", objects: []*unstructured.Unstructured{nameless},
			want: one("Bucket n", report.StillHeld), code: ExitProblems,
		},
		"NoExternalNameForced": {
			reason: "A user can want a second external resource.", objects: []*unstructured.Unstructured{nameless}, of: releaseArgs{force: true, yes: true},
			want: one("Bucket n", report.Forced), wrote: []string{"buckets n"}, said: "[IdentityMissing]",
		},
		"QuarantineOfTheRestore": {
			reason: "--restore ends the quarantine of that Restore.", objects: away.all(), of: releaseArgs{restore: "gone"}, want: inQuarantine(report.Released),
			wrote: []string{"buckets b3", "xorders x3", "orderclaims o3", "buckets b3", "xorders x3", "orderclaims o3", "xorders x3"},
		},
		"QuarantineNamed": {
			reason: "A name ends the quarantine of its whole tree.", objects: append(away.all(), newLeftTree("2").all()[:3]...), of: releaseArgs{names: []string{"x3"}},
			want: inQuarantine(report.Released), wrote: []string{"buckets b3", "xorders x3", "orderclaims o3", "buckets b3", "xorders x3", "orderclaims o3", "xorders x3"},
		},
		"QuarantineNew": {
			reason: "A new MR in quarantine has no sign of its provider yet.", objects: []*unstructured.Unstructured{fresh}, of: releaseArgs{restore: "gone"},
			want: one("Bucket new", report.Released), wrote: []string{"buckets new", "buckets new"},
		},
		"ByHand": {reason: "The setting by-hand requires a user's decision.", objects: append(kept.all(), gone("Completed")), want: byHand(report.LeftAlone)},
		"ByHandOfTheRestore": {
			reason: "--restore is the user's decision.", objects: append(kept.all(), gone("Completed")), of: releaseArgs{restore: "gone"},
			want:  byHand(report.Released),
			wrote: []string{"xorders x3", "orderclaims o3", "xorders x3", "orderclaims o3", "xorders x3"}, said: "release it, as a user has agreed",
		},
		"ByHandNamed": {
			reason: "A name is the user's decision for its whole tree.", objects: append(kept.all(), newLeftTree("2").all()[:3]...), of: releaseArgs{names: []string{"x3"}},
			want:  byHand(report.Released),
			wrote: []string{"xorders x3", "orderclaims o3", "xorders x3", "orderclaims o3", "xorders x3"},
		},
		"QuarantineBelow": {
			reason: "An XR must wait for a composed resource in quarantine.", objects: []*unstructured.Unstructured{left.xr, left.claim, left.revision, restored(left.mr, hold.Hold{Quarantine: true})},
			want: map[string]report.Result{"XOrder x1": report.StillHeld, "OrderClaim team-a/o1": report.StillHeld, "Bucket b1": report.LeftAlone}, code: ExitProblems,
			wrote: []string{"orderclaims o1", "xorders x1"}, said: "Bucket b1: it is in quarantine",
		},
		"Unreadable": {
			reason: "An unreadable mark must not pass for a released hold.", objects: []*unstructured.Unstructured{xptest.XR("x", xptest.Annotated(hold.Annotation, "?"))},
			want: one("XOrder x", report.StillHeld), code: ExitProblems,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(tc.objects...)
			got := s.release(t, tc.of)
			if diff := cmp.Diff(tc.want, got.Results); diff != "" || got.Code != tc.code {
				t.Errorf("%s\nexit %d, -want, +got:\n%s\n%s", tc.reason, got.Code, diff, got.err)
			}
			if diff := cmp.Diff(tc.wrote, s.wrote()); diff != "" {
				t.Errorf("%s\nwritten: -want, +got:\n%s", tc.reason, diff)
			}
			if !strings.Contains(got.err, tc.said) {
				t.Errorf("%s\nstderr: %s", tc.reason, got.err)
			}
			for _, r := range got.releases {
				if r.Result != report.Released && r.Reason == "" && len(r.Steps) == 0 {
					t.Errorf("%s has no reason", r.Object)
				}
				if hold.WithoutNext(r.Reason, r.Next) != r.Reason {
					t.Errorf("%s has its next step twice: %q and %q", r.Object, r.Reason, r.Next)
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
	log := newLogger(&b)
	for range 2 {
		log.WithField("object", "XOrder x").WithError(errors.New("no right")).Warn("Cannot say it")
		log.Info("Step taken")
	}
	if diff := cmp.Diff("warning: Cannot say it; error: no right; object: XOrder x\n", b.String()); diff != "" {
		t.Errorf("The log must have each error once: -want, +got:\n%s", diff)
	}
}
