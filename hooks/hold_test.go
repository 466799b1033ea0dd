package hooks

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var buckets = schema.GroupVersionResource{Group: "cloud.example.org", Version: "v1alpha1", Resource: "buckets"}

type holdArgs struct {
	namespace string
	dryRun    bool
	// late is set if the time is up at the first look.
	late bool
}

func (s *server) hold(ctx context.Context, t *testing.T, of holdArgs) results {
	t.Helper()
	var out, problems bytes.Buffer
	o := newOptions(Program{Out: &out, Err: &problems})
	o.velero, o.namespace = "velero", of.namespace
	h := &holder{
		options: o, out: output{format: printer.JSON}, dryRun: of.dryRun, timeout: time.Minute, pause: time.Millisecond, steps: map[xp.ID][]string{},
	}
	if of.late {
		h.timeout = 0
	}
	s.ClearActions()
	err := failed(withRights("hold", h.run(ctx, cluster.New(s, s))))
	o.printError(err)

	return resultsOf(t, out.String(), problems.String(), err)
}

// onList calls do before the nth list of a resource.
func (s *server) onList(resource string, nth int, do func()) {
	s.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		nth--
		if nth == 0 {
			do()
		}

		return false, nil, nil
	})
}

func TestHold(t *testing.T) {
	a, b := newLiveTree("1"), newLiveTree("2")
	creating, unreported := a.held(), a.held()
	unreported.mr = xptest.With(unreported.mr, xptest.Reconciled())
	creating.mr = xptest.With(a.mr, xptest.Annotated(xp.AnnotationCreatePending, "2026-01-02T03:04:05Z"))
	forged := heldLive(a.mr)
	if err := hold.Key(bytes.Repeat([]byte("o"), hold.KeySize)).Sign(forged, ""); err != nil {
		t.Fatal(err)
	}
	inTeam := holdArgs{namespace: xptest.Namespace}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		of      holdArgs
		// meanwhile is called with the server before the command begins.
		meanwhile func(s *server)
		want      map[string]report.Result
		code      int
		wrote     []string
		said      string
	}{
		"Held": {
			reason: "The claims go first, so nothing is composed meanwhile.", objects: a.all(), of: inTeam, want: treeResults(report.Quiet, report.Quiet, report.Quiet),
			wrote: []string{"orderclaims o1", "xorders x1", "buckets b1"},
			said:  "3 of 3 objects are quiet",
		},
		"Stopped": {
			reason: "A second run holds what an earlier one has not.", of: inTeam,
			objects: []*unstructured.Unstructured{heldLive(a.claim), a.xr, a.mr}, want: treeResults(report.Quiet, report.Quiet, report.Quiet),
			wrote: []string{"xorders x1", "buckets b1"},
		},
		"WholeCluster": {
			reason: "Without a namespace it holds what starts Operations too.", objects: append(a.all(), xptest.Object(xp.GroupOperations+"/v1alpha1", "CronOperation", "", "nightly")),
			want: map[string]report.Result{
				"OrderClaim team-a/o1": report.Quiet, "XOrder x1": report.Quiet, "Bucket b1": report.Quiet, "CronOperation nightly": report.Quiet,
			},
			wrote: []string{
				"orderclaims o1", "xorders x1", "cronoperations nightly", "buckets b1",
			},
		},
		"DryRun": {
			reason: "A dry run must change nothing.", objects: a.all(), of: holdArgs{namespace: xptest.Namespace, dryRun: true},
			want: treeResults(report.WouldHold, report.WouldHold, report.WouldHold),
		},
		"DryRunInFlight": {
			reason: "A dry run must name what is under way.", objects: creating.all(), of: holdArgs{namespace: xptest.Namespace, dryRun: true},
			want: treeResults(report.Quiet, report.Quiet, report.Waiting), code: ExitProblems,
		},
		"DryRunUntouched": {
			reason: "Its provider can create it at any time.", objects: []*unstructured.Unstructured{a.claim, a.xr, untouched(a.xr)}, of: holdArgs{namespace: xptest.Namespace, dryRun: true},
			want: treeResults(report.WouldHold, report.WouldHold, report.Waiting), code: ExitProblems, said: "AwaitingProvider",
		},
		"DryRunUntouchedAlone": {
			reason: "The same, without an XR.", of: holdArgs{dryRun: true}, said: "AwaitingProvider", code: ExitProblems,
			objects: append(a.all(), xptest.MR("b9", xptest.Without("metadata", "finalizers"), xptest.Without("metadata", "annotations"))),
			want: map[string]report.Result{
				"OrderClaim team-a/o1": report.WouldHold, "XOrder x1": report.WouldHold, "Bucket b1": report.WouldHold, "Bucket b9": report.Waiting,
			},
		},
		"InFlight": {
			reason: "The provider could not record the outcome of a creation in a paused MR.", objects: creating.all(), of: holdArgs{namespace: xptest.Namespace, late: true},
			want: treeResults(report.Quiet, report.Quiet, report.Waiting), code: ExitTimeout,
			said: "waiting for Bucket b1",
		},
		"InFlightEnds": {
			reason: "An MR is held when its creation is over.", objects: creating.all(), of: inTeam, meanwhile: func(s *server) {
				s.onList("buckets", 3, func() { _ = s.Tracker().Update(buckets, xptest.With(a.mr, xptest.Version("2")), "") })
			},
			want:  treeResults(report.Quiet, report.Quiet, report.Quiet),
			wrote: []string{"buckets b1"},
			said:  "2 of 3 objects are quiet; waiting for Bucket b1",
		},
		"NotReported": {
			reason: "A provider that has not reported the pause can still write.", objects: unreported.all(),
			of:   holdArgs{namespace: xptest.Namespace, late: true},
			want: treeResults(report.Quiet, report.Quiet, report.Waiting), code: ExitTimeout,
			said: "[AwaitingPauseReport]",
		},
		"Appears": {
			reason: "An object that appears between two looks must be held too.", objects: a.all(), of: inTeam, meanwhile: func(s *server) {
				s.onList("orderclaims", 2, func() {
					for _, u := range b.all() {
						_ = s.Tracker().Add(xptest.With(u, xptest.Version("1")))
					}
				})
			},
			want: map[string]report.Result{
				"OrderClaim team-a/o1": report.Quiet, "XOrder x1": report.Quiet, "Bucket b1": report.Quiet,
				"OrderClaim team-a/o2": report.Quiet, "XOrder x2": report.Quiet, "Bucket b2": report.Quiet,
			},
			wrote: []string{
				"orderclaims o1", "xorders x1", "buckets b1", "orderclaims o2", "xorders x2", "buckets b2",
			},
		},
		"Forged": {
			reason: "Time does not help with a mark that does not count, so the command must not wait for its timeout.", of: inTeam,
			objects: []*unstructured.Unstructured{a.claim, a.xr, forged},
			want:    treeResults(report.Quiet, report.Quiet, report.Waiting), code: ExitProblems,
			wrote: []string{"orderclaims o1", "xorders x1"},
			said:  "2 of 3 objects are quiet",
		},
		"Unread": {
			reason: "An object that can't be read can go on.", objects: a.held().all(), of: inTeam, meanwhile: func(s *server) {
				s.PrependReactor("list", "buckets", func(a clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
				})
			},
			want: map[string]report.Result{"OrderClaim team-a/o1": report.Quiet, "XOrder x1": report.Quiet}, code: ExitProblems, said: "[NotRead]",
		},
		"OfARestore": {
			reason: "A Restore that adopts an object ends its hold, so the command waits.", objects: append(newLeftTree("1").all()[:2], a.held().mr, gone("InProgress")),
			of:   holdArgs{namespace: xptest.Namespace, late: true},
			want: map[string]report.Result{"OrderClaim team-a/o1": report.Waiting, "XOrder x1": report.Waiting, "Bucket b1": report.Quiet}, code: ExitTimeout,
			said: "[AwaitingAdoption]",
		},
		"Nothing": {
			reason: "A wrong namespace must be an error.", objects: a.all(), of: holdArgs{namespace: "team-b", dryRun: true},
			code: ExitFailed, said: "[NotFound]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := liveServer(nil, tc.objects...)
			if tc.meanwhile != nil {
				tc.meanwhile(s)
			}
			got := s.hold(t.Context(), t, tc.of)
			wrote := s.wrote()
			if name == "Appears" {
				slices.Sort(wrote) // The order depends on which kind is listed first.
				slices.Sort(tc.wrote)
			}
			if diff := cmp.Diff(tc.want, got.Results); diff != "" || got.Code != tc.code {
				t.Errorf("%s\nexit %d, -want, +got:\n%s\n%s", tc.reason, got.Code, diff, got.err)
			}
			if diff := cmp.Diff(tc.wrote, wrote); diff != "" {
				t.Errorf("%s\nwritten: -want, +got:\n%s", tc.reason, diff)
			}
			if said := got.out + got.err; !strings.Contains(said, tc.said) {
				t.Errorf("%s\nthe output lacks %q:\n%s", tc.reason, tc.said, said)
			}
		})
	}
}

// An interrupted hold names the ways to go on.
func TestHoldInterrupted(t *testing.T) {
	a := newLiveTree("1")
	s := liveServer(map[string]bool{"b1": true}, a.all()...)
	ctx, stop := context.WithCancel(t.Context())
	s.onList("buckets", 3, stop)
	got := s.hold(ctx, t, holdArgs{namespace: xptest.Namespace})
	if got.Code != ExitFailed || !strings.Contains(got.err, "[Interrupted]") || !xp.IsPaused(s.get(t, xorders, "", "x1")) {
		t.Errorf("exit %d, the XR is paused: %t\n%s", got.Code, xp.IsPaused(s.get(t, xorders, "", "x1")), got.err)
	}
}

// Without the rights the command names the file that has them.
func TestHoldForbidden(t *testing.T) {
	for _, resource := range []string{"orderclaims", "xorders"} {
		s := liveServer(nil, newLiveTree("1").all()...)
		s.PrependReactor("patch", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
		})
		got := s.hold(t.Context(), t, holdArgs{namespace: xptest.Namespace})
		if got.Code != ExitFailed || !strings.Contains(got.err, "[RightMissing]") || !strings.Contains(got.err, "example/rbac/hold.yaml") {
			t.Errorf("without the right to patch %s: exit %d\n%s", resource, got.Code, got.err)
		}
	}
}
