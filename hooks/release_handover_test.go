package hooks

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

type abortArgs struct {
	namespace     string
	dryRun, force bool
	names         []string
}

// abort runs release --handover.
func (s *server) abort(t *testing.T, of abortArgs) results {
	t.Helper()
	var out, problems bytes.Buffer
	o := newOptions(Streams{Out: &out, Err: &problems})
	o.velero, o.namespace = "velero", of.namespace
	r := &release{
		options: o, out: output{format: printer.JSON}, handover: true, dryRun: of.dryRun, force: of.force, yes: true, timeout: time.Minute, pause: time.Millisecond,
		settle: 10 * time.Millisecond, cluster: live.NewCluster(s, s),
	}
	s.ClearActions()
	err := r.prepare(of.names)
	if err == nil {
		err = failed(r.run(t.Context()))
	}
	o.printError(err)

	return resultsOf(t, out.String(), problems.String(), err)
}

// receipt returns the receipt of a cluster for a backup of another one, which began at started.
func receipt(source, cluster string, started time.Time) *unstructured.Unstructured {
	const name = "velero.crossplane.x-k8s.io/receipt"
	content := `{"source":"` + source + `","cluster":"` + cluster + `","backup":"move","restore":"moved","started":"` + started.Format(time.RFC3339) + `"}`

	return xptest.Object("velero.io/v1", "Backup", "velero", "receipt-"+cluster, xptest.Labelled(name, "true"), xptest.Annotated(name, content))
}

func TestReleaseHandover(t *testing.T) {
	tree := newLiveTree("1")
	a, later := tree.held(), heldAt.Add(time.Minute)
	platform := newLeftTree("1").revision
	of := func(more ...*unstructured.Unstructured) []*unstructured.Unstructured {
		return append(append(a.all(), platform, record()), more...)
	}
	left := newLeftTree("2")
	released := results{Results: treeResults(report.Released, report.Released, report.Released)}
	refused := results{Results: treeResults(report.StillHeld, report.StillHeld, report.StillHeld), Code: ExitProblems}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		of      abortArgs
		want    results
		// recorded is the number of records that are left.
		recorded int
		said     string
	}{
		"Aborted": {reason: "Everything goes on as it was.", objects: of(), want: released},
		"Adopted": {
			reason: "The other cluster has begun to adopt it, so two would manage the same.", objects: of(receipt(own, other, later)), want: refused, recorded: 1,
			said: "[AdoptedElsewhere]",
		},
		"Forced": {reason: "A user may know that nothing is adopted there any more.", objects: of(receipt(own, other, later)), of: abortArgs{force: true}, want: released},
		"OlderReceipt": {
			reason: "The other cluster adopted an earlier backup, of another handover.", objects: of(receipt(own, other, heldAt.Add(-time.Second))), want: released,
		},
		"ReceiptOfAnother": {reason: "Other clusters share the bucket.", objects: of(receipt("third", other, later)), want: released},
		"OwnReceipt":       {reason: "A restore in this cluster adopts nothing elsewhere.", objects: of(receipt(own, own, later)), want: released},
		"DryRun": {
			reason: "A dry run keeps the record.", objects: of(), of: abortArgs{dryRun: true}, recorded: 1,
			want: results{Results: treeResults(report.WouldRelease, report.WouldRelease, report.WouldRelease)},
		},
		"DryRunAdopted": {reason: "A dry run must say that it would be refused.", objects: of(receipt(own, other, later)), of: abortArgs{dryRun: true}, want: refused, recorded: 1},
		"Named": {
			reason: "The handover of the others goes on.", objects: of(), of: abortArgs{names: []string{"b1"}}, recorded: 1,
			want: results{Results: map[string]report.Result{"Bucket b1": report.Released}},
		},
		"OnlyTheRecord": {
			reason: "An earlier run was stopped, or hold had just begun.", objects: []*unstructured.Unstructured{tree.claim, tree.xr, tree.mr, record()},
			want: results{Results: map[string]report.Result{}},
		},
		"OtherNamespace": {
			reason: "The handover of another namespace goes on.", objects: of(), of: abortArgs{namespace: "team-b"}, recorded: 1,
			want: results{Results: map[string]report.Result{}},
		},
		"Restored": {
			reason: "The hold of a Restore is none of a handover.", objects: append(left.all(), record()), want: results{Results: map[string]report.Result{}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := handoverServer(nil, tc.objects...)
			got := s.abort(t, tc.of)
			if diff := cmp.Diff(tc.want, results{Results: got.Results, Code: got.Code}, cmpopts.IgnoreUnexported(results{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, got.err)
			}
			if n := len(s.records(t)); n != tc.recorded {
				t.Errorf("%s\n%d records are left, not %d", tc.reason, n, tc.recorded)
			}
			if said := got.out + got.err; !strings.Contains(said, tc.said) {
				t.Errorf("%s\nthe output lacks %q:\n%s", tc.reason, tc.said, said)
			}
			if writes := len(s.wrote()); (tc.of.dryRun || tc.want.Code != ExitFine) && writes > 0 {
				t.Errorf("%s\nwritten: %v", tc.reason, s.wrote())
			}
		})
	}
}

// An abort gives everything back that the hold has changed.
func TestReleaseHandoverGivesBack(t *testing.T) {
	tree := newLiveTree("1")
	tree.mr = xptest.With(tree.mr, xptest.Annotated(xp.AnnotationPaused, "true"), xptest.SeenPaused())
	s := handoverServer(nil, append(tree.all(), newLeftTree("1").revision)...)
	if got := s.hold(t.Context(), t, holdArgs{namespace: xptest.Namespace}); got.Code != ExitFine {
		t.Fatalf("hold: exit %d: %s", got.Code, got.err)
	}
	if got := s.abort(t, abortArgs{namespace: xptest.Namespace}); got.Code != ExitFine || len(s.records(t)) > 0 {
		t.Fatalf("release: exit %d, records %v: %s", got.Code, s.records(t), got.err)
	}
	for gvr, want := range map[string]*unstructured.Unstructured{"claim": tree.claim, "XR": tree.xr, "MR": tree.mr} {
		now := map[string]*unstructured.Unstructured{
			"claim": s.get(t, claims, xptest.Namespace, "o1"), "XR": s.get(t, xorders, "", "x1"), "MR": s.get(t, buckets, "", "b1"),
		}[gvr]
		if diff := cmp.Diff(want.GetAnnotations(), now.GetAnnotations(), cmpopts.EquateEmpty()) + cmp.Diff(want.Object["spec"], now.Object["spec"]); diff != "" {
			t.Errorf("the %s: -before, +after:\n%s", gvr, diff)
		}
	}
}

// A plain release leaves a handover alone.
func TestReleaseLeavesHandovers(t *testing.T) {
	s := handoverServer(nil, append(newLiveTree("1").held().all(), record())...)
	got := s.release(t, releaseArgs{})
	want := results{Results: treeResults(report.LeftAlone, report.LeftAlone, report.LeftAlone)}
	if diff := cmp.Diff(want, results{Results: got.Results, Code: got.Code}, cmpopts.IgnoreUnexported(results{})); diff != "" || len(s.records(t)) != 1 {
		t.Errorf("records %v; -want, +got:\n%s", s.records(t), diff)
	}
	for _, one := range got.releases {
		if one.Code != "HandedOver" || !strings.Contains(one.Next, "release --handover") {
			t.Errorf("%s: %s, next: %s", one.Object, one.Code, one.Next)
		}
	}
}

// A name must not go around the refusal.
func TestReleaseNamedIsRefused(t *testing.T) {
	s := handoverServer(nil, append(newLiveTree("1").held().all(), receipt(own, other, heldAt.Add(time.Minute)))...)
	got := s.release(t, releaseArgs{names: []string{"b1"}})
	if got.Code != ExitProblems || got.Results["Bucket b1"] != report.StillHeld || !strings.Contains(got.out, "AdoptedElsewhere") {
		t.Errorf("exit %d: %v\n%s", got.Code, got.Results, got.out)
	}
}

// Without the rights to find out whether another cluster has it, nothing is released.
func TestReleaseHandoverForbidden(t *testing.T) {
	for verb, resource := range map[string]string{"list": "backups", "get": "namespaces", "patch": "configmaps"} {
		s := handoverServer(nil, append(newLiveTree("1").held().all(), record())...)
		s.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
		})
		got := s.abort(t, abortArgs{namespace: xptest.Namespace})
		if got.Code != ExitFailed || !strings.Contains(got.err, "example/rbac/handover.yaml") || !xp.IsPaused(s.get(t, xorders, "", "x1")) {
			t.Errorf("without the right to %s %s: exit %d: %s", verb, resource, got.Code, got.err)
		}
	}
}
