package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

type retireArgs struct {
	namespace  string
	namespaces map[string]string
	dryRun     bool
	// ask is set without --yes, and late if the command does not wait.
	ask, late bool
	// interrupted is set if the user interrupts the command when it deletes an object.
	interrupted bool
	// report is the report of the other cluster: a *report.Report, or the content of the file.
	report any
}

func (s *server) retire(t *testing.T, of retireArgs) results {
	t.Helper()
	file := filepath.Join(t.TempDir(), "adopted.json")
	content, isText := of.report.(string)
	if !isText {
		b, err := json.Marshal(of.report)
		if err != nil {
			t.Fatal(err)
		}
		content = string(b)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	o := newOptions(Streams{In: strings.NewReader("n\n"), Out: &out, Err: &problems})
	o.velero, o.namespace = "velero", of.namespace
	r := &retire{
		options: o, out: output{format: printer.JSON}, file: file, namespaces: of.namespaces, dryRun: of.dryRun, yes: !of.ask, timeout: time.Minute,
		pause: time.Millisecond, deleted: map[xp.ID]types.UID{}, cluster: live.NewCluster(s, s),
	}
	if of.late {
		r.timeout = 0
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if of.interrupted {
		s.PrependReactor("delete", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			cancel()

			return false, nil, nil
		})
	}
	s.ClearActions()
	there, err := r.read()
	if err == nil {
		err = r.run(ctx, there)
	}
	err = failed(err)
	o.printError(err)

	return resultsOf(t, out.String(), problems.String(), err)
}

// retiredInOrder is what is written to retire a tree, and then to end the record of its handover.
var retiredInOrder = []string{
	"buckets b1", "delete buckets", "xorders x1", "delete xorders", "orderclaims o1", "delete orderclaims", "configmaps " + live.HandoverConfigMap,
}

func treeResults(claim, xr, mr report.Result) map[string]report.Result {
	return map[string]report.Result{"OrderClaim team-a/o1": claim, "XOrder x1": xr, "Bucket b1": mr}
}

// nodeOf returns the node of a kind in a report.
func nodeOf(r *report.Report, kind string) *report.Node {
	for n := range report.All(r.Trees...) {
		if n.Kind == kind {
			return n
		}
	}

	return nil
}

// untouched returns the MR of an XR as Crossplane composes it.
func untouched(xr *unstructured.Unstructured) *unstructured.Unstructured {
	return xptest.MR("b1", xptest.ControlledBy(xr), xptest.Without("metadata", "finalizers"), xptest.Without("metadata", "annotations"))
}

func TestRetire(t *testing.T) {
	a := newLiveTree("1").held()
	all := func(more ...*unstructured.Unstructured) []*unstructured.Unstructured {
		return append(append(a.all(), record()), more...)
	}
	there := func(change func(r *report.Report)) *report.Report {
		r := a.adoptedThere()
		if change != nil {
			change(r)
		}

		return r
	}
	bucket := func(change func(n *report.Node)) *report.Report {
		return there(func(r *report.Report) { change(nodeOf(r, xptest.ManagedKind)) })
	}
	isUnpaused := xptest.Without("metadata", "annotations", xp.AnnotationPaused)
	unpaused, unpausedXR, unpausedClaim := xptest.With(a.mr, isUnpaused), xptest.With(a.xr, isUnpaused), xptest.With(a.claim, isUnpaused)
	unnamed := xptest.With(a.mr, xptest.Without("metadata", "annotations", xp.AnnotationExternalName))
	foreign := newLeftTreeAs("1", adoption.Hold{Quarantine: true})
	inQuarantine := restored(foreign.mr, adoption.Hold{Quarantine: true}, xptest.SeenPaused())
	stays := results{Results: treeResults(report.StillHeld, report.StillHeld, report.StillHeld), Code: ExitProblems}
	done := results{Results: treeResults(report.Retired, report.Retired, report.Retired)}
	unusable := results{Code: ExitFailed}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		of      retireArgs
		want    results
		wrote   []string
		said    string
	}{
		"Retired": {reason: "What is composed goes first, and a claim last.", objects: all(), of: retireArgs{report: there(nil)}, want: done, wrote: retiredInOrder},
		"DryRun": {
			reason: "A dry run must change nothing.", objects: all(), of: retireArgs{report: there(nil), dryRun: true},
			want: results{Results: treeResults(report.WouldRetire, report.WouldRetire, report.WouldRetire)},
		},
		"Declined": {
			reason: "The command must change nothing when the user declines.", objects: all(), of: retireArgs{report: there(nil), ask: true}, want: unusable,
			said: "[NotConfirmed]",
		},
		"NoJSON":     {reason: "The error must name the unusable file.", objects: all(), of: retireArgs{report: "adopted"}, want: unusable, said: "[ReportUnusable]"},
		"Empty":      {reason: "The other command has failed.", objects: all(), of: retireArgs{report: ""}, want: unusable, said: "[ReportUnusable]"},
		"OtherKind":  {reason: "Only validate proves anything.", objects: all(), of: retireArgs{report: there(func(r *report.Report) { r.Kind = report.KindInspection })}, want: unusable, said: "[ReportUnusable]"},
		"OtherAPI":   {reason: "Another version can mean something else.", objects: all(), of: retireArgs{report: there(func(r *report.Report) { r.APIVersion = "v2" })}, want: unusable, said: "[ReportUnusable]"},
		"NoCluster":  {reason: "The report can be of this cluster.", objects: all(), of: retireArgs{report: there(func(r *report.Report) { r.Cluster = "" })}, want: unusable, said: "does not name its cluster"},
		"OwnCluster": {reason: "Here everything exists.", objects: all(), of: retireArgs{report: there(func(r *report.Report) { r.Cluster = own })}, want: unusable, said: "a report of this cluster"},
		"OtherPlace": {reason: "A wrong namespace must be an error.", objects: all(), of: retireArgs{report: there(nil), namespace: "team-b"}, want: unusable, said: "[NotFound]"},
		"Older":      {reason: "The other cluster can have lost it since.", objects: all(), of: retireArgs{report: there(func(r *report.Report) { r.Time = heldAt.Add(-time.Second) })}, want: stays, said: "older than the handover"},
		"Missing":    {reason: "An MR that the report lacks stays, with all above.", objects: all(), of: retireArgs{report: there(func(r *report.Report) { nodeOf(r, xptest.LegacyKind).Children = nil })}, want: stays, said: "the report does not have it"},
		"Held":       {reason: "The other cluster does not manage it yet.", objects: all(), of: retireArgs{report: bucket(func(n *report.Node) { n.Hold = &report.Hold{} })}, want: stays, said: "still held there"},
		"HeldByXR":   {reason: "The same, by its XR.", objects: all(), of: retireArgs{report: bucket(func(n *report.Node) { n.State = report.Held })}, want: stays, said: "still held there"},
		"Deleting":   {reason: "The other cluster gives it up.", objects: all(), of: retireArgs{report: bucket(func(n *report.Node) { n.State = report.Deleting })}, want: stays, said: "it is deleting there"},
		"Foreign":    {reason: "Another XR has it there.", objects: all(), of: retireArgs{report: bucket(func(n *report.Node) { n.State = report.Foreign })}, want: stays, said: "the report does not have it"},
		"OtherName":  {reason: "It manages another external resource there.", objects: all(), of: retireArgs{report: bucket(func(n *report.Node) { n.ExternalName = "e2" })}, want: stays, said: `external-name is \"e1\" here and \"e2\" there`},
		"Mapped":     {reason: "The restore has mapped the namespace.", objects: all(), of: retireArgs{report: there(func(r *report.Report) { r.Trees[0].Namespace = "team-b" }), namespaces: map[string]string{xptest.Namespace: "team-b"}}, want: done, wrote: retiredInOrder},
		"NotMapped":  {reason: "Without the mapping the claim is another one.", objects: all(), of: retireArgs{report: there(func(r *report.Report) { r.Trees[0].Namespace = "team-b" })}, want: results{Results: treeResults(report.StillHeld, report.Retired, report.Retired), Code: ExitProblems}, wrote: retiredInOrder[:4]},
		"NotHeld":    {reason: "It is reconciled here.", objects: []*unstructured.Unstructured{a.claim, a.xr, newLiveTree("1").mr}, of: retireArgs{report: there(nil)}, want: stays, said: "[NotHandedOver]"},
		"Unpaused":   {reason: "Another writer has removed the pause.", objects: []*unstructured.Unstructured{a.claim, a.xr, unpaused}, of: retireArgs{report: there(nil)}, want: stays, said: "[HoldRemoved]"},
		"XRUnpaused": {reason: "An XR at work would compose its MR again.", objects: []*unstructured.Unstructured{a.claim, unpausedXR, a.mr}, of: retireArgs{report: there(nil)}, want: stays, said: "would compose it again"},
		"ClaimBusy":  {reason: "A claim at work would create its XR again.", objects: []*unstructured.Unstructured{unpausedClaim, a.xr, a.mr}, of: retireArgs{report: there(nil)}, want: stays, said: "would compose it again"},
		"OfARestore": {reason: "A quarantine of a Restore is no handover.", objects: []*unstructured.Unstructured{a.claim, a.xr, inQuarantine}, of: retireArgs{report: there(nil)}, want: stays, said: "a Restore holds it, and not the command hold"},
		"AllGone":    {reason: "An earlier run was stopped after the last object.", objects: []*unstructured.Unstructured{record()}, of: retireArgs{report: there(nil)}, want: results{Results: map[string]report.Result{}}, wrote: retiredInOrder[6:]},
		"AllGoneDry": {reason: "A dry run keeps the record.", objects: []*unstructured.Unstructured{record()}, of: retireArgs{report: there(nil), dryRun: true}, want: results{Results: map[string]report.Result{}}},
		"Unnamed": {
			reason: "Some kinds have no external-name.", objects: []*unstructured.Unstructured{a.claim, a.xr, unnamed, record()}, want: done, wrote: retiredInOrder,
			of: retireArgs{report: bucket(func(n *report.Node) { n.ExternalName = "" })},
		},
		"UnnamedBare": {
			reason: "The same, and an earlier run was stopped between the two steps.", want: done, wrote: retiredInOrder[1:],
			objects: []*unstructured.Unstructured{a.claim, a.xr, xptest.With(unnamed, xptest.Without("metadata", "finalizers")), record()},
			of:      retireArgs{report: bucket(func(n *report.Node) { n.ExternalName = "" })},
		},
		"Untouched": {
			reason: "Its provider would create it here.", want: stays, said: "it is not held",
			objects: []*unstructured.Unstructured{a.claim, a.xr, untouched(a.xr), record()}, of: retireArgs{report: bucket(func(n *report.Node) { n.ExternalName = "" })},
		},
		"Interrupted": {
			reason: "The user must learn what is deleted and what is not.", objects: all(), of: retireArgs{report: there(nil), interrupted: true},
			want: results{Results: treeResults(report.StillHeld, report.StillHeld, report.Retired), Code: ExitFailed}, wrote: retiredInOrder[:2], said: "[Interrupted]",
		},
		"NeverThere":  {reason: "Nothing was handed over.", of: retireArgs{report: there(nil)}, want: unusable, said: "[NotFound]"},
		"NoFinalizer": {reason: "An earlier run was stopped between the two steps.", objects: []*unstructured.Unstructured{a.claim, a.xr, xptest.With(a.mr, xptest.Without("metadata", "finalizers")), record()}, of: retireArgs{report: there(nil)}, want: done, wrote: retiredInOrder[1:]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := handoverServer(nil, tc.objects...)
			if tc.of.namespace == "" {
				tc.of.namespace = xptest.Namespace
			}
			got := s.retire(t, tc.of)
			wrote := s.wrote()
			if diff := cmp.Diff(tc.want, results{Results: got.Results, Code: got.Code}, cmpopts.IgnoreUnexported(results{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, got.err)
			}
			if diff := cmp.Diff(tc.wrote, wrote); diff != "" {
				t.Errorf("%s\nwritten: -want, +got:\n%s", tc.reason, diff)
			}
			if said := got.out + got.err; !strings.Contains(said, tc.said) {
				t.Errorf("%s\nthe output lacks %q:\n%s", tc.reason, tc.said, said)
			}
			if ended := slices.Contains(tc.wrote, retiredInOrder[6]); ended && len(s.records(t)) > 0 {
				t.Errorf("%s\nthe record is left: %v", tc.reason, s.records(t))
			}
		})
	}
}

// A Usage would refuse the deletion of what it protects, so it goes first.
func TestRetireUsagesFirst(t *testing.T) {
	a := newLiveTree("1").withUsage().held()
	usage := xptest.With(a.usage, xptest.Finalizers("finalizer.usage.apiextensions.crossplane.io"))
	s := handoverServer(nil, append(a.all(), usage, record())...)
	got := s.retire(t, retireArgs{namespace: xptest.Namespace, report: a.adoptedThere()})
	want := append([]string{"clusterusages u1", "delete clusterusages"}, retiredInOrder...)
	if diff := cmp.Diff(want, s.wrote()); diff != "" || got.Code != ExitFine {
		t.Errorf("exit %d; -want, +got:\n%s\n%s", got.Code, diff, got.err)
	}
}

// A Usage of an XR that stays goes on to protect.
func TestRetireKeepsUsages(t *testing.T) {
	a := newLiveTree("1").withUsage().held()
	there := a.adoptedThere()
	nodeOf(there, xptest.LegacyKind).Hold = &report.Hold{}
	s := handoverServer(nil, append(a.all(), a.usage)...)
	got := s.retire(t, retireArgs{namespace: xptest.Namespace, report: there})
	if diff := cmp.Diff([]string{"buckets b1", "delete buckets"}, s.wrote()); diff != "" || got.Code != ExitProblems {
		t.Errorf("exit %d; -want, +got:\n%s\n%s", got.Code, diff, got.err)
	}
}

// Retire waits until what it deletes is gone, and looks who creates it again.
func TestRetireWaits(t *testing.T) {
	a := newLiveTree("1").held()
	// orphaned makes the deletion of the XR wait for the garbage collector, as an API server does.
	orphaned := func(s *server) {
		s.PrependReactor("delete", "xorders", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, s.Tracker().Update(xorders, xptest.With(a.xr, xptest.Deleting(), xptest.Finalizers(metav1.FinalizerOrphanDependents)), "")
		})
	}
	again := func(s *server) {
		s.PrependReactor("delete", "orderclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			claim := xptest.With(newLiveTree("1").claim, xptest.UID("again"), xptest.Version("9"), func(u *unstructured.Unstructured) {
				u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "flux", Operation: metav1.ManagedFieldsOperationApply}})
			})

			return true, nil, s.Tracker().Update(claims, claim, xptest.Namespace)
		})
	}
	cases := map[string]struct {
		reason    string
		late      bool
		meanwhile func(s *server)
		want      results
		said      string
		// ends is set if the record of the handover is removed.
		ends bool
	}{
		"Ends": {
			reason: "The garbage collector ends the deletion of an XR.", ends: true, meanwhile: func(s *server) {
				orphaned(s)
				s.onList("xorders", 4, func() { _ = s.Tracker().Delete(xorders, "", "x1") })
			},
			want: results{Results: treeResults(report.Retired, report.Retired, report.Retired)},
		},
		"Stays": {
			reason: "A finalizer that another writer adds must be named.", late: true, meanwhile: orphaned, said: "the finalizers [orphan] are left",
			want: results{Results: treeResults(report.Retired, report.StillHeld, report.Retired), Code: ExitProblems},
		},
		"AppliedAgain": {
			reason: "What still applies an object here could create external resources.", meanwhile: again, said: "flux has created it again",
			want: results{Results: treeResults(report.StillHeld, report.Retired, report.Retired), Code: ExitProblems},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := handoverServer(nil, append(a.all(), record())...)
			tc.meanwhile(s)
			got := s.retire(t, retireArgs{namespace: xptest.Namespace, report: a.adoptedThere(), late: tc.late})
			if diff := cmp.Diff(tc.want, results{Results: got.Results, Code: got.Code}, cmpopts.IgnoreUnexported(results{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, got.err)
			}
			if said := got.out + got.err; !strings.Contains(said, tc.said) {
				t.Errorf("%s\nthe output lacks %q:\n%s", tc.reason, tc.said, said)
			}
			if ended := len(s.records(t)) == 0; ended != tc.ends {
				t.Errorf("%s\nthe records are %v", tc.reason, s.records(t))
			}
		})
	}
}

// What can't be deleted stays, and so does all above it.
func TestRetireRefused(t *testing.T) {
	bucketsGR := buckets.GroupResource()
	cases := map[string]struct {
		reason string
		err    error
		code   int
		said   string
	}{
		"Changed": {reason: "Another writer may have unpaused it.", err: apierrors.NewConflict(bucketsGR, "b1", errors.New("it has changed")), code: ExitProblems, said: "[ChangedSinceConfirmed]"},
		"Denied": {
			reason: "A webhook keeps the object.", code: ExitProblems, said: "[NotDeleted]",
			err: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "a" denied the request: no`}},
		},
		"Forbidden": {reason: "A missing right is the same for all objects.", err: apierrors.NewForbidden(bucketsGR, "b1", nil), code: ExitFailed, said: "example/rbac/handover.yaml"},
	}
	for name, tc := range cases {
		for _, verb := range []string{"patch", "delete"} {
			t.Run(name+"/"+verb, func(t *testing.T) {
				a := newLiveTree("1").held()
				s := handoverServer(nil, append(a.all(), record())...)
				s.PrependReactor(verb, "buckets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
				got := s.retire(t, retireArgs{namespace: xptest.Namespace, report: a.adoptedThere()})
				if got.Code != tc.code || !strings.Contains(got.out+got.err, tc.said) || len(s.records(t)) != 1 {
					t.Errorf("%s\nexit %d, not %d, records %v; without %q:\n%s%s", tc.reason, got.Code, tc.code, s.records(t), tc.said, got.out, got.err)
				}
				if !xp.IsPaused(s.get(t, xorders, "", "x1")) {
					t.Errorf("%s\nthe XR above it must stay as it was", tc.reason)
				}
			})
		}
	}
}

func TestHandoverUsage(t *testing.T) {
	cases := map[string]struct {
		reason, args, said string
		code               int
	}{
		"HoldNothing":    {reason: "A whole cluster is never held by accident.", args: "hold", code: ExitUsage, said: "give a namespace with -n"},
		"HoldBoth":       {reason: "The two flags contradict each other.", args: "hold -n a -A", code: ExitUsage, said: "[namespace all-namespaces]"},
		"HoldNegative":   {reason: "Nobody can wait for less than no time.", args: "hold -A --timeout -1s", code: ExitUsage, said: "cannot wait for -1s"},
		"RetireNoReport": {reason: "Without a report nothing is proven.", args: "retire -n a", code: ExitUsage, said: "give its report, as a file with --report"},
		"RetireNoAnswer": {reason: "Without a terminal the command can't ask.", args: "retire -n a --report f", code: ExitUsage, said: "stdin is no terminal"},
		"RetireNoFile":   {reason: "The error must name the file.", args: "retire -n a --report /nowhere/f --dry-run", code: ExitFailed, said: "open /nowhere/f"},
		"TwoReleases":    {reason: "A Restore and a handover are two things.", args: "release --handover --restore r", code: ExitUsage, said: "[restore handover]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := command(t, nil, strings.Fields(tc.args)...)
			if got.code != tc.code || !strings.Contains(got.err, tc.said) {
				t.Errorf("%s\nexit %d, not %d; without %q:\n%s", tc.reason, got.code, tc.code, tc.said, got.err)
			}
		})
	}
}
