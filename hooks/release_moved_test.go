package hooks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func treeResults(claim, xr, mr report.Result) map[string]report.Result {
	return map[string]report.Result{"OrderClaim team-a/o1": claim, "XOrder x1": xr, "Bucket b1": mr}
}

func TestReleaseOfWhatTheCommandHoldHolds(t *testing.T) {
	tree := append(newLiveTree("1").held().all(), newLeftTree("1").revision)
	released := treeResults(report.Released, report.Released, report.Released)
	const warns = "makes two clusters change and delete them"
	cases := map[string]struct {
		reason string
		of     releaseArgs
		want   map[string]report.Result
		code   int
		said   string
	}{
		"Namespace": {reason: "Who names the namespace means these holds.", of: releaseArgs{namespace: xptest.Namespace, yes: true}, want: released, said: warns},
		"Cluster":   {reason: "Who names the whole cluster means these holds.", of: releaseArgs{all: true, yes: true}, want: released, said: warns},
		"Named": {
			reason: "The others stay held.", of: releaseArgs{names: []string{"b1"}, yes: true},
			want: map[string]report.Result{"Bucket b1": report.Released}, said: warns,
		},
		"Unnamed": {
			reason: "Another cluster may have adopted them.", of: releaseArgs{yes: true}, want: treeResults(report.LeftAlone, report.LeftAlone, report.LeftAlone),
			said: "[HeldByCommand]",
		},
		"DryRun": {
			reason: "A dry run says what it would ask.", of: releaseArgs{namespace: xptest.Namespace, dryRun: true},
			want: treeResults(report.WouldRelease, report.WouldRelease, report.WouldRelease), said: warns,
		},
		"NoTerminal": {reason: "Nobody can answer.", of: releaseArgs{namespace: xptest.Namespace}, code: ExitUsage, said: "then give --yes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := liveServer(nil, tree...)
			got := s.release(t, tc.of)
			if diff := cmp.Diff(tc.want, got.Results); diff != "" || got.Code != tc.code {
				t.Errorf("%s\nexit %d, -want, +got:\n%s\n%s", tc.reason, got.Code, diff, got.err)
			}
			if said := got.out + got.err; !strings.Contains(said, tc.said) {
				t.Errorf("%s\nthe output lacks %q:\n%s", tc.reason, tc.said, said)
			}
			if wrote := s.wrote(); got.Results["Bucket b1"] != report.Released && len(wrote) > 0 {
				t.Errorf("%s\nwritten: %v", tc.reason, wrote)
			}
		})
	}
}

// Only a yes on a terminal confirms that no other cluster has adopted anything.
func TestReleaseAsksAboutOtherClusters(t *testing.T) {
	for typed, want := range map[string]report.Result{"y\n": report.Released, "n\n": report.StillHeld, "\n": report.StillHeld} {
		_, terminal := newKeyboard(t, typed)
		s := liveServer(nil, append(newLiveTree("1").held().all(), newLeftTree("1").revision)...)
		got := s.release(t, releaseArgs{namespace: xptest.Namespace, in: terminal})
		if diff := cmp.Diff(treeResults(want, want, want), got.Results); diff != "" || (got.Code == ExitFine) != (want == report.Released) {
			t.Errorf("%q: exit %d, -want, +got:\n%s\n%s", typed, got.Code, diff, got.err)
		}
	}
}

// A release gives everything back that the command hold has changed.
func TestHoldAndRelease(t *testing.T) {
	tree := newLiveTree("1")
	tree.mr = xptest.With(tree.mr, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.SeenPaused())
	s := liveServer(nil, append(tree.all(), newLeftTree("1").revision)...)
	if got := s.hold(t.Context(), t, holdArgs{namespace: xptest.Namespace}); got.Code != ExitFine {
		t.Fatalf("hold: exit %d: %s", got.Code, got.err)
	}
	if got := s.release(t, releaseArgs{namespace: xptest.Namespace, yes: true}); got.Code != ExitFine {
		t.Fatalf("release: exit %d: %s", got.Code, got.err)
	}
	for _, was := range tree.all() {
		now := map[string]*unstructured.Unstructured{
			"OrderClaim": s.get(t, claims, xptest.Namespace, "o1"), "XOrder": s.get(t, xorders, "", "x1"), "Bucket": s.get(t, buckets, "", "b1"),
		}[was.GetKind()]
		if diff := cmp.Diff(was.GetAnnotations(), now.GetAnnotations(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("annotations of %s: -before, +after:\n%s", xp.String(was), diff)
		}
		if diff := cmp.Diff(was.Object["spec"], now.Object["spec"]); diff != "" {
			t.Errorf("spec of %s: -before, +after:\n%s", xp.String(was), diff)
		}
	}
}

// A Restore that is gone has existed if an object has its label. Else its name is a mistake.
func TestReleaseOfARestoreThatIsGone(t *testing.T) {
	tree := newLiveTree("1")
	tree.xr = xptest.With(tree.xr, xptest.Labelled(xp.LabelRestore, "monday"))
	for name, want := range map[string]int{"monday": ExitFine, "tuesday": ExitFailed} {
		s := newServer(tree.all()...)
		if got := s.release(t, releaseArgs{restore: name}); got.Code != want || (want == ExitFailed) != strings.Contains(got.err, "[NotFound]") {
			t.Errorf("%s: exit %d: %s", name, got.Code, got.err)
		}
	}
}
