package printer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// now is the time of the sample reports.
var now = time.Date(2026, time.March, 14, 9, 30, 0, 0, time.UTC)

func before(d time.Duration) *time.Time {
	t := now.Add(-d)

	return &t
}

func claimRef(name string) xp.Ref {
	return xp.Ref{APIVersion: "example.org/v1alpha1", Kind: "OrderClaim", Namespace: "team-a", Name: name}
}

func xrRef(name string) xp.Ref {
	return xp.Ref{APIVersion: "example.org/v1alpha1", Kind: "XOrder", Name: name}
}

func mrRef(name string) xp.Ref {
	return xp.Ref{APIVersion: "cloud.example.org/v1alpha1", Kind: "Bucket", Name: name}
}

// healthyNode returns a node without problems.
func healthyNode(r xp.Ref, role report.Role, children ...*report.Node) *report.Node {
	n := &report.Node{
		Ref: r, Role: role, State: report.Adopted, Created: before(26 * time.Hour), Children: children,
		Synced: &report.Condition{Status: "True", Reason: "ReconcileSuccess", Since: before(25 * time.Hour)},
		Ready:  &report.Condition{Status: "True", Reason: "Available", Since: before(25 * time.Hour)},
	}
	if role == report.RoleManaged {
		n.ExternalName = "eu-" + r.Name
	} else {
		n.Composition, n.Revision = "orders", "orders-1a2b3c"
	}

	return n
}

func order(name string, buckets ...*report.Node) *report.Node {
	return healthyNode(claimRef(name), report.RoleClaim, healthyNode(xrRef(name+"-x7k2p"), report.RoleComposite, buckets...))
}

func buckets(of string, n int) []*report.Node {
	var all []*report.Node
	for k := range n {
		all = append(all, healthyNode(mrRef(fmt.Sprintf("%s-x7k2p-%c%c%c%c%c", of, 'a'+k, 'q', '2'+k%8, 'd', 'z'-k)), report.RoleManaged))
	}

	return all
}

// validation returns a report with the trees and problems, and their counts.
func validation(trees []*report.Node, problems ...report.Problem) *report.Report {
	r := &report.Report{
		APIVersion: report.APIVersion, Kind: report.KindValidation, Source: "kind-production", Time: now, Problems: problems, Trees: trees,
	}
	for n := range report.All(trees...) {
		switch n.Role { //nolint:exhaustive // The other roles are not counted.
		case report.RoleClaim:
			r.Summary.Claims++
		case report.RoleComposite:
			r.Summary.XRs++
		case report.RoleManaged:
			r.Summary.Managed++
			r.Summary.Composed++
		}
		switch {
		case n.State == report.Held:
			r.Summary.Held++
		case n.Role == report.RoleManaged && n.State == report.Adopted:
			r.Summary.Adopted++
		}
	}
	for _, p := range problems {
		if p.Severity == report.Error {
			r.Summary.Problems++
		} else {
			r.Summary.Warnings++
		}
	}

	return r
}

func problem(code reason.Code, object xp.Ref, reason, next string) report.Problem {
	return report.Problem{Code: code, Severity: report.Error, Object: object, Reason: reason, Next: next}
}

func heldReport() *report.Report {
	tree := order("orders", buckets("orders", 2)...)
	xr := tree.Children[0]
	for _, n := range []*report.Node{tree, xr} {
		n.State, n.Paused, n.Problems = report.Held, true, []reason.Code{reason.Held}
		n.Hold = &report.Hold{Restore: "velero/nightly-20260314", Since: before(12 * time.Minute)}
		n.Synced = &report.Condition{Status: "False", Reason: "ReconcilePaused", Message: "Reconciliation is paused via the pause annotation"}
		n.Ready = nil
	}
	xr.Hold.Waiting = []string{"Bucket orders-x7k2p-bq3dy: its provider has not observed it yet", "Function function-patch-and-transform: it is not Healthy"}
	for n := range report.All(tree) {
		n.Created = before(12 * time.Minute)
	}
	b := xr.Children[1]
	b.State, b.Synced, b.Ready, b.ExternalName = report.Held, nil, nil, ""
	r := validation([]*report.Node{tree},
		problem(reason.Held, tree.Ref, "held by the Restore velero/nightly-20260314 since 2026-03-14T09:18:00Z: waiting for XOrder orders-x7k2p, which is not adopted",
			"the restore continues when that exists; see: velero restore describe --details nightly-20260314"),
		problem(reason.Held, xr.Ref, "held by the Restore velero/nightly-20260314 since 2026-03-14T09:18:00Z: waiting for Bucket orders-x7k2p-bq3dy, "+
			"which its provider has not observed yet (and 1 more)",
			"the restore continues when that exists; see: velero restore describe --details nightly-20260314"))
	r.Restores = []report.Restore{{Name: "velero/nightly-20260314", Phase: "WaitingForPluginOperations", Backup: "nightly", Started: before(13 * time.Minute)}}

	return r
}

// againstReport is an inspection with the outcome of each item.
func againstReport() *report.Report {
	good, bad := order("orders", buckets("orders", 4)...), order("shop", buckets("shop", 2)...)
	for n := range report.All(good) {
		n.Restore = &report.Outcome{Action: report.Create}
	}
	for n := range report.All(bad) {
		n.Restore = &report.Outcome{Action: report.Exists}
	}
	good.Restore, good.Children[0].Restore = &report.Outcome{Action: report.Keep}, &report.Outcome{Action: report.Keep, Reason: "until Crossplane has adopted it"}
	bad.Children[0].Children[0].Restore = &report.Outcome{Action: report.Refuse, Reason: "its XRD is being deleted"}
	bad.Children[0].Children[1].Restore = &report.Outcome{Action: report.Clone, Reason: "the original is alive in team-a"}
	r := validation([]*report.Node{good, bad})
	r.Kind, r.Source = report.KindInspection, "nightly.tar.gz"
	r.DryRun = &report.DryRunResult{
		Cluster: "kind-standby", Counts: map[report.Action]int{report.Create: 14, report.Keep: 2, report.Exists: 3, report.Refuse: 1, report.Clone: 1, report.Skip: 1},
		Items: []report.ItemResult{
			{Item: good.Ref, Resource: "orderclaims.example.org", Outcome: *good.Restore},
			{Item: bad.Children[0].Children[0].Ref, Resource: "buckets.cloud.example.org", Outcome: *bad.Children[0].Children[0].Restore, For: &bad.Children[0].Ref},
			{Item: bad.Children[0].Children[1].Ref, Resource: "buckets.cloud.example.org", Namespace: "team-b", Outcome: *bad.Children[0].Children[1].Restore},
			{Item: xp.Ref{APIVersion: "pkg.crossplane.io/v1beta1", Kind: "Lock", Name: "lock"}, Resource: "locks.pkg.crossplane.io", Outcome: report.Outcome{
				Action: report.Skip, Reason: "the control plane makes it by itself",
			}},
		},
	}
	r.Order = []report.Step{
		{Resource: "compositeresourcedefinitions.apiextensions.crossplane.io", Items: 1, Why: "the kinds of the XRs and claims"},
		{Resource: "compositionrevisions.apiextensions.crossplane.io", Items: 2, Why: "what the XRs run on"},
		{Resource: "xorders.example.org", Items: 2, Why: "before what they compose, so that it has an owner"},
		{Resource: "buckets.cloud.example.org", Items: 6, Why: "after the XRs that control them"},
	}
	r.Versions = []report.Version{{Name: "backup format", Version: "1.1.0"}, {Name: "Crossplane", Version: "v2.3.4"}}

	return r
}

// wrongReport has a composed resource in each state, with problems of all lengths.
func wrongReport() *report.Report {
	tree := order("orders", buckets("orders", 6)...)
	var problems []report.Problem
	for n, p := range []report.Problem{
		{Code: reason.Dangling, Severity: report.Error, Reason: "XOrder orders-x7k2p lists it", Next: "restore it"},
		{Code: reason.ControlledByAnother, Severity: report.Error, Reason: "XOrder orders-x7k2p lists it, and another one controls it", Next: "ignore the link"},
		{
			Code: reason.DeadController, Severity: report.Error,
			Reason: "XOrder orders-x7k2p lists it, and its controller XOrder orders-x7k2p does not exist with the UID 7d5f3c7e-0d0f-4a53-9d1b-2f6d4f0b9f6e",
			Next: "pause it and remove that owner reference at once: the garbage collector deletes an object without existing owners. Crossplane then makes the XR its " +
				"controller",
		},
		{
			Code: reason.NotSynced, Severity: report.Warning, Next: "correct that; its Events have more: kubectl describe",
			Reason: "it can't be reconciled: cannot compose resources: pipeline step \"patch-and-transform\" returned a fatal result",
		},
		{Code: reason.NotReady, Severity: report.Warning, Reason: "it is not Ready", Next: "wait"},
	} {
		bucket := tree.Children[0].Children[n]
		bucket.Problems, p.Object = []reason.Code{p.Code}, bucket.Ref
		problems = append(problems, p)
	}
	all := tree.Children[0].Children
	*all[0] = report.Node{Ref: all[0].Ref, Role: report.RoleOther, State: report.Missing, Problems: all[0].Problems}
	*all[1] = report.Node{Ref: all[1].Ref, Role: report.RoleManaged, State: report.Foreign, Problems: all[1].Problems}
	all[3].Synced = &report.Condition{Status: "False", Reason: "ReconcileError", Message: "cannot compose resources: pipeline step returned a fatal result"}
	all[4].Ready = &report.Condition{Status: "False", Reason: "Creating"}

	return validation([]*report.Node{tree}, problems...)
}

// samples are typical reports. Those in testdata are from the real stack: a backup with an MR whose
// creation was pending, its restore, and the state after that.
func samples() map[string]*report.Report {
	all := map[string]*report.Report{
		"healthy":  validation([]*report.Node{order("orders", buckets("orders", 2)...), order("shop", buckets("shop", 1)...)}),
		"held":     heldReport(),
		"against":  againstReport(),
		"empty":    validation(nil),
		"release":  releaseReport(),
		"force":    dryRunReport(),
		"released": releaseOf(nil),
		"grouped":  groupedReport(),
		"hostile":  hostileReport(),
		"same":     sameReport(),
		"wrong":    wrongReport(),
	}
	for _, name := range []string{"real-healthy", "real-backup", "real-held", "real-restored"} {
		all[name] = realReport(name)
	}

	return all
}

func realReport(name string) *report.Report {
	b, err := os.ReadFile(filepath.Join("testdata", name+".json")) //nolint:gosec // The file is in the repository.
	if err != nil {
		panic(err)
	}
	r := &report.Report{}
	if err := json.Unmarshal(b, r); err != nil {
		panic(err)
	}

	return r
}

func groupedReport() *report.Report {
	var trees []*report.Node
	for n := range 8 {
		trees = append(trees, order(fmt.Sprintf("tenant-%d", n), buckets("tenant", 3)...))
	}
	big := order("an-order-with-a-name-that-is-much-longer-than-any-terminal-has-columns-for-it", buckets("big", 12)...)
	big.Children[0].Children[7].Ready = &report.Condition{Status: "False", Reason: "Creating"}
	secret := &report.Node{Ref: xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "crossplane-system", Name: "big"}, Role: report.RoleOther, State: report.Adopted}
	nested := healthyNode(xrRef("nested"), report.RoleComposite, buckets("nested", 4)...)
	big.Children[0].Children = append(big.Children[0].Children, secret, nested)
	other := healthyNode(xp.Ref{APIVersion: "s3.example.net/v1", Kind: "Bucket", Namespace: "team-b", Name: "alone"}, report.RoleManaged)
	other.State = report.Alone

	return validation(append(trees, big, other))
}

// hostileReport has names and messages that try to be more than text.
func hostileReport() *report.Report {
	tree := order("or\x1b[2Jders", buckets("a", 1)...)
	b := tree.Children[0].Children[0]
	b.Name = "b\x1b]0;title\x07\n└─ Bucket/forged  True  False  adopted\u202egnp.exe"
	b.Ready = &report.Condition{Status: "False", Reason: "<script>alert(1)</script>", Message: "line one\r\nline two\t\u009b31mred ]]> \" \\"}

	return validation([]*report.Node{tree}, problem(reason.Stuck, b.Ref, "<img src=x onerror=alert(1)> \x1b[31m{{.}} ]]>", "run: \"rm -rf\"\n\x08\x00\xff\\"))
}

func sameReport() *report.Report {
	trees := []*report.Node{}
	problems := []report.Problem{}
	for n := range 9 {
		tree := order(fmt.Sprintf("tenant-%d", n))
		tree.Children[0].Problems = []reason.Code{reason.DefinitionMissing}
		trees = append(trees, tree)
		problems = append(problems, problem(reason.DefinitionMissing, tree.Children[0].Ref, "the XRD of its kind is not in the backup",
			"back up again with the plugin, which includes it, or apply it in the cluster before you restore"))
	}

	return validation(trees, problems...)
}

func releaseOf(releases []report.Release, problems ...report.Problem) *report.Report {
	r := &report.Report{
		Kind: report.KindRelease, Source: "kind-production", Time: time.Date(2026, 3, 14, 9, 30, 0, 0, time.UTC), Releases: releases,
		Restores: []report.Restore{{Name: "velero/nightly-20260314", Phase: "PartiallyFailed", Backup: "nightly-20260314"}},
	}
	r.Assemble(nil, problems)

	return r
}

func hold(r xp.Ref, result report.Result) report.Release {
	return report.Release{Object: r, Restore: "velero/nightly-20260314", Phase: "PartiallyFailed", Result: result}
}

// releaseReport is a report of a release with various results.
func releaseReport() *report.Report {
	claim, xr := xp.Ref{APIVersion: "shop.example.org/v1", Kind: "Order", Namespace: "team-a", Name: "orders"}, xrRef("orders-x7k2p")
	back := hold(claim, report.Released)
	back.Settings = []string{"crossplane.io/paused: false", "compositionUpdatePolicy: Manual"}
	held := hold(xrRef("shop-c9d8e"), report.StillHeld)
	held.Reason = "waiting for Bucket shop-c9d8e-logs: it was not restored; restore it, or remove it from the resourceRefs of XOrder shop-c9d8e to have it made anew"
	held.Next = "mend that, and run: velero-plugin-for-crossplane release shop-c9d8e (to see what doing without it can cost, with --force --dry-run)"
	cron := hold(xp.Ref{APIVersion: "ops.crossplane.io/v1alpha1", Kind: "CronOperation", Name: "nightly-cleanup"}, report.LeftAlone)
	cron.Reason = "it starts Operations by itself"
	cron.Next = "to let it, run: velero-plugin-for-crossplane release nightly-cleanup"

	lost := hold(xrRef("orders-b4m8q"), report.Released)
	lost.Reason = "who managed which of its fields is lost, since Velero was stopped before it wrote that back"
	lost.Next = "restore again before release next time, which brings back who managed what"

	return releaseOf([]report.Release{hold(xr, report.Released), lost, back, held, cron}, problem(reason.LeakedHold, held.Object, held.Reason, held.Next))
}

// dryRunReport is a report of a dry run with --force.
func dryRunReport() *report.Report {
	xr := hold(xrRef("shop-c9d8e"), report.WouldForce)
	xr.Steps = []string{"give its own settings back at once"}
	xr.Risks = []string{
		"Bucket shop-c9d8e-logs is missing: Crossplane makes it anew, under another name unless the Composition names it; if it is a managed resource, with another " +
			"external resource, and nothing manages the one that it had",
		"its update policy is Automatic: it follows CompositionRevision orders-5d6e7f at once, and not orders-1a2b3c with which it was backed up",
	}
	claim := hold(xp.Ref{APIVersion: "shop.example.org/v1", Kind: "Order", Namespace: "team-a", Name: "shop"}, report.WouldRelease)
	claim.Steps = []string{"when what is below is lifted, go on as without --force"}

	return releaseOf([]report.Release{xr, claim})
}
