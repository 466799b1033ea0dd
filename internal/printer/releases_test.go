package printer

import (
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

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
