package hooks

import (
	"context"
	"fmt"
	"maps"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A DryRunner calls add with what a restore of a backup would do with each item, in restore order.
// It writes nothing. A nil cluster stands for an empty one.
type DryRunner func(ctx context.Context, b *archive.Backup, c *live.Cluster, restore *velerov1.Restore, add func(report.ItemResult)) error

// dryRun returns the order of a restore. With --against it also returns what a restore would do in
// the cluster; against is nil otherwise.
func (i *inspect) dryRun(ctx context.Context, b *archive.Backup) (order []report.Step, against *report.DryRunResult, results []report.ItemResult, err error) {
	if i.dryRunner == nil {
		return nil, nil, nil, nil
	}
	var cluster *live.Cluster
	if i.against {
		if cluster, err = i.cluster(); err == nil {
			err = i.fullNames(cluster)
		}
		if err != nil {
			return nil, nil, nil, err
		}
	}
	steps, empty := &steps{backup: b, positions: map[string]int{}}, i.restore.DeepCopy()
	empty.Spec.ResourceModifier = nil // Only the cluster has its ConfigMap.
	if err = i.dryRunner(ctx, b, nil, empty, steps.add); err != nil {
		return nil, nil, nil, fmt.Errorf("cannot determine the order of a restore: %w", err)
	}
	if !i.against {
		return steps.order, nil, nil, nil
	}
	if err = i.dryRunner(ctx, b, cluster, i.restore, func(f report.ItemResult) { results = append(results, f) }); err != nil {
		return nil, nil, nil, fmt.Errorf("cannot determine what a restore into %s would do: %w", cluster.Name(), err)
	}

	return steps.order, &report.DryRunResult{Cluster: cluster.Name()}, results, nil
}

// steps collects the order in which a restore brings back resources. A resource takes the position
// of its first item.
type steps struct {
	backup *archive.Backup
	order  []report.Step
	// positions are indexes into order, by resource.
	positions map[string]int
}

// add records the next item, unless the restore skips or refuses it.
func (s *steps) add(f report.ItemResult) {
	if f.Outcome.Action == report.Skip || f.Outcome.Action == report.Refuse {
		return
	}
	n, ok := s.positions[f.Resource]
	if !ok {
		n = len(s.order)
		s.positions[f.Resource] = n
		s.order = append(s.order, report.Step{Resource: f.Resource, Why: orderReason(s.backup, f)})
	}
	s.order[n].Items++
}

// orderReason returns why a resource comes at the position of its first item.
func orderReason(b *archive.Backup, f report.ItemResult) string {
	u := b.Get(xp.Item{GroupResource: schema.ParseGroupResource(f.Resource), Namespace: f.Item.Namespace, Name: f.Item.Name})
	s := outcomeReason(u)
	if f.For != nil {
		return s + "; the first for " + f.For.String()
	}

	return s
}

func outcomeReason(u *unstructured.Unstructured) string {
	switch {
	case u == nil:
		return ""
	case u.GroupVersionKind().Group == archive.GroupCRD:
		return "they define kinds, and Velero restores them first"
	case xp.IsDefinition(u):
		return "they define the kinds of XRs and claims"
	case xp.IsPlatform(u):
		return "XRs need them"
	case xp.IsClaim(u):
		return "held, after all objects below them"
	case xp.IsComposite(u):
		return "held, before their composed resources, which they own"
	case xp.IsUsage(u):
		return "after the objects that they protect"
	case xp.IsConnectionSecret(u):
		return "after the objects that publish them, and before claims"
	case xp.IsComposed(u):
		return "after the XRs that compose them"
	case xp.IsManaged(u):
		return "they need no other objects"
	case xp.IsProviderConfig(u):
		return "how providers authenticate"
	default:
		return "in Velero's own order"
	}
}

// ofSelected removes the problems of objects that the Restore does not select.
func ofSelected(problems []report.Problem, results []report.ItemResult) []report.Problem {
	left := map[xp.ID]bool{}
	for _, f := range results {
		if f.Outcome.Code == reason.NotSelected {
			left[f.Item.ID()] = true
		}
	}

	return slices.DeleteFunc(problems, func(p report.Problem) bool { return left[p.Object.ID()] })
}

// applyResults writes the results into the trees and the counts of against. It returns a problem
// for each refused item, unless reported already has one of it.
func applyResults(against *report.DryRunResult, trees []*report.Node, results []report.ItemResult, reported []report.Problem) []report.Problem {
	outcomes := map[xp.ID]report.Outcome{}
	for _, f := range results {
		outcomes[f.Item.ID()] = f.Outcome
	}
	placed := map[xp.ID]bool{}
	for n := range report.All(trees...) {
		placed[n.ID()] = true
		if o, ok := outcomes[n.ID()]; ok && n.State != report.Foreign {
			n.Restore = &o
		}
	}
	known := map[xp.ID]bool{}
	for _, p := range reported {
		known[p.Object.ID()] = known[p.Object.ID()] || p.Code == reason.UsageLeftBehind
	}
	against.Counts = map[report.Action]int{}
	var problems []report.Problem
	never, unselected := map[string]int{}, map[string]int{}
	for _, f := range results {
		against.Counts[f.Outcome.Action]++
		switch {
		case f.Outcome.Code == reason.NeverRestored:
			never[f.Resource]++
		case f.Outcome.Code == reason.NotSelected:
			unselected[f.Resource]++
		case isNotable(f, placed[f.Item.ID()]):
			against.Items = append(against.Items, f)
		}
		if f.Outcome.Action == report.Refuse && !known[f.Item.ID()] {
			problems = append(problems, report.Problem{
				Code: reason.NotRestored, Severity: report.Error, Object: f.Item, Next: "correct that before the restore",
				Reason: "a restore into " + against.Cluster + " would not bring it back: " + f.Outcome.Reason,
			})
		}
	}
	against.Items = append(against.Items, inOneLine(never, reason.NeverRestored, "Velero does not restore its kind; there are %d")...)
	against.Items = append(against.Items, inOneLine(unselected, reason.NotSelected, "the Restore does not select %d of them")...)

	return problems
}

// inOneLine returns one result for all items of a resource, since a backup can have many thousands.
func inOneLine(counts map[string]int, code reason.Code, format string) []report.ItemResult {
	var all []report.ItemResult
	for _, resource := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, report.ItemResult{
			Item: xp.Ref{Kind: resource, Name: "*"}, Resource: resource, Outcome: report.OutcomeOf(report.Skip, code.Messagef(format, counts[resource])),
		})
	}

	return all
}

// isNotable reports whether the report lists the result of an item. placed items are in a tree.
func isNotable(f report.ItemResult, placed bool) bool {
	switch f.Outcome.Action { //nolint:exhaustive // The others are always notable.
	case report.Create:
		return f.Outcome.Reason != ""
	case report.Exists:
		return placed || f.Outcome.Reason != ""
	default:
		return true
	}
}
