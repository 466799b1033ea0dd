package hooks

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var errDryRun = errors.New("the dry run failed")

// resultOf returns the result for an object of package xptest.
func resultOf(b *archive.Backup, kind, name string, o report.Outcome) report.ItemResult {
	for _, i := range b.Items {
		if i.Object().GetKind() == kind && i.Name == name {
			return report.ItemResult{Item: xp.RefTo(i.Object()), Resource: i.GroupResource.String(), Outcome: o}
		}
	}

	return report.ItemResult{Item: xp.Ref{Kind: kind, Name: name}, Resource: kind, Outcome: o}
}

func TestInspectOrder(t *testing.T) {
	var asked *velerov1.Restore
	dryRunner := func(_ context.Context, b *archive.Backup, c *cluster.Cluster, r *velerov1.Restore, add func(report.ItemResult)) error {
		if c != nil {
			t.Error("A dry run without --against must not get a cluster.")
		}
		asked = r
		xr := resultOf(b, xptest.LegacyKind, "shop-x1", report.Outcome{Action: report.Keep})
		xr.For = &xp.Ref{Kind: "Bucket", Name: "shop-b"}

		add(xr)
		add(resultOf(b, "Lock", "lock", report.Outcome{Action: report.Skip}))
		add(resultOf(b, "Bucket", "shop-b", report.Outcome{Action: report.Create}))
		add(xr)

		return nil
	}
	var out, stderr bytes.Buffer
	code := Run(t.Context(), []string{"inspect", "-", "-o", "json", "--velero-namespace", "backups"},
		Program{In: bytes.NewReader(xptest.Backup(shop()...)), Out: &out, Err: &stderr, DryRunner: dryRunner})
	want := []report.Step{
		{Resource: "xorders.example.org", Items: 2, Why: "held, before their composed resources, which they own; the first for Bucket shop-b"},
		{Resource: "buckets.cloud.example.org", Items: 1, Why: "after the XRs that compose them"},
	}
	if diff := cmp.Diff(want, decodeReport(t, commandResult{out: out.String()}).Order); diff != "" || code != ExitFine {
		t.Errorf("Each resource stands where its first restored item is; the exit code is %d: %s", code, diff)
	}
	if asked.Namespace != "backups" {
		t.Errorf("The settings are in Velero's namespace; the dry run used the namespace %s", asked.Namespace)
	}
}

func TestInspectOrderFails(t *testing.T) {
	dryRunner := func(context.Context, *archive.Backup, *cluster.Cluster, *velerov1.Restore, func(report.ItemResult)) error {
		return errDryRun
	}
	code := Run(t.Context(), []string{"inspect", "-"}, Program{In: bytes.NewReader(xptest.Backup()), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, DryRunner: dryRunner})
	if code != ExitFailed {
		t.Errorf("want ExitFailed, got exit code %d", code)
	}
}

func TestFlagsNeedACluster(t *testing.T) {
	for _, args := range [][]string{{"--namespace-mappings", "a:b"}, {"--restore", "restore.yaml"}} {
		if got := command(t, xptest.Backup(), append([]string{"inspect", "-"}, args...)...); got.code != ExitUsage || !strings.Contains(got.err, "--against") {
			t.Errorf("A flag without effect must be refused; got %+v", got)
		}
	}
	if got := command(t, xptest.Backup(), "inspect", "-", "--namespace-mappings", "a=b"); got.code != ExitUsage {
		t.Errorf("The flag has the format of Velero's; got %+v", got)
	}
}

func TestApplyResults(t *testing.T) {
	b := readBackup(t, xptest.Backup(shop()...))
	trees := objectsOf(b).Trees()
	results := []report.ItemResult{
		resultOf(b, xptest.LegacyKind, "shop-x1", report.Outcome{Action: report.Keep}),
		resultOf(b, "Bucket", "shop-b", report.Outcome{Action: report.Refuse, Reason: "no"}),
		resultOf(b, "Composition", xptest.CompositionName, report.Outcome{Action: report.Exists}),
		resultOf(b, "CompositionRevision", xptest.RevisionName, report.Outcome{Action: report.Create}),
		resultOf(b, "Usage", "left", report.Outcome{Action: report.Refuse, Reason: "left behind"}),
		resultOf(b, "Lock", "lock", report.Outcome{Action: report.Skip, Reason: "created again"}),
		resultOf(b, "ConfigMap", "out", report.OutcomeOf(report.Skip, reason.NotSelected.Messagef("no"))),
		resultOf(b, "Event", "e", report.OutcomeOf(report.Skip, reason.NeverRestored.Messagef("Velero does not restore its kind"))),
	}
	against := &report.DryRunResult{Cluster: "prod"}
	problems := applyResults(against, trees, results, []report.Problem{
		{Code: reason.UsageLeftBehind, Object: xp.Ref{Kind: "Usage", Name: "left"}}, {Code: reason.Malformed, Object: xp.Ref{Kind: "ConfigMap", Name: "out"}},
	})

	if diff := cmp.Diff(map[report.Action]int{report.Keep: 1, report.Refuse: 2, report.Exists: 1, report.Create: 1, report.Skip: 3}, against.Counts); diff != "" {
		t.Errorf("The counts must include every item: %s", diff)
	}
	var items []string
	for _, f := range against.Items {
		items = append(items, string(f.Outcome.Action)+" "+f.Item.String())
	}
	if diff := cmp.Diff([]string{"hold XOrder shop-x1", "refuse Bucket shop-b", "refuse Usage left", "skip Lock lock", "skip Event *", "skip ConfigMap *"}, items); diff != "" {
		t.Errorf("The list must leave out only expected outcomes: %s", diff)
	}
	var codes []string
	for _, p := range problems {
		codes = append(codes, string(p.Code)+" "+p.Object.String())
	}
	if diff := cmp.Diff([]string{"UsageLeftBehind Usage left", "NotRestored Bucket shop-b"}, codes); diff != "" {
		t.Errorf("Only what is selected has problems, and a refused item has one: %s", diff)
	}
	xr := trees[0].Children[0]
	if trees[0].Restore != nil || xr.Restore.Action != report.Keep || xr.Children[0].Restore.Reason != "no" {
		t.Errorf("Each node of a tree must have its outcome; got %+v", trees[0])
	}
}
