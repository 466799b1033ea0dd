package hooks

import (
	"context"
	"fmt"
	"maps"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A DryRunner calls add with what a restore of a backup would do with each item, in restore order.
// It writes nothing. A nil cluster stands for an empty one.
type DryRunner func(ctx context.Context, b *archive.Backup, c *cluster.Cluster, restore *velerov1.Restore, add func(report.ItemResult)) error

// dryRun reports the order of a restore and, if there is a cluster, what a restore would do in it.
// It returns the results of the latter.
func (i *inspect) dryRun(ctx context.Context, b *archive.Backup, cluster *cluster.Cluster, r *report.Report) (results []report.ItemResult, err error) {
	if cluster != nil {
		err = i.fullNames(cluster)
	}
	if err != nil {
		return nil, err
	}
	steps, empty := &steps{backup: b, positions: map[string]int{}}, i.restore.DeepCopy()
	empty.Spec.ResourceModifier = nil // Only the cluster has its ConfigMap.
	if err = i.DryRunner(ctx, b, nil, empty, steps.add); err != nil {
		return nil, fmt.Errorf("cannot determine the order of a restore: %w", err)
	}
	r.Order = steps.order
	if cluster == nil {
		return nil, nil
	}
	r.DryRun = &report.DryRunResult{Cluster: cluster.Name()}
	if err = i.DryRunner(ctx, b, cluster, i.restore, func(f report.ItemResult) { results = append(results, f) }); err != nil {
		return nil, fmt.Errorf("cannot determine what a restore into %s would do: %w", cluster.Name(), err)
	}

	return results, nil
}

// fullNames replaces short names in the Restore's filters by resources, since only the API server
// knows them.
func (i *inspect) fullNames(cluster *cluster.Cluster) (err error) {
	for _, filters := range []*[]string{&i.restore.Spec.IncludedResources, &i.restore.Spec.ExcludedResources} {
		if *filters, err = cluster.WithoutShortNames(*filters); err != nil {
			return err // It says what can't be read.
		}
	}

	return nil
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
		why := orderReason(s.backup.Get(xp.Item{GroupResource: schema.ParseGroupResource(f.Resource), Namespace: f.Item.Namespace, Name: f.Item.Name}))
		if f.For != nil {
			why += "; the first for " + f.For.String()
		}
		n = len(s.order)
		s.positions[f.Resource] = n
		s.order = append(s.order, report.Step{Resource: f.Resource, Why: why})
	}
	s.order[n].Items++
}

// orderReason returns why a resource comes at the position of its first item.
func orderReason(u *unstructured.Unstructured) string {
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

// leftBehind returns the Usages that a problem already says to be left behind.
func leftBehind(problems []report.Problem) sets.Set[xp.ID] {
	usages := sets.New[xp.ID]()
	for _, p := range problems {
		if p.Code == reason.UsageLeftBehind {
			usages.Insert(p.Object.ID())
		}
	}

	return usages
}

// applyResults writes the results into the trees and the counts of against. It returns the problems
// of what the Restore selects, and one for each other item that is refused.
func applyResults(against *report.DryRunResult, trees []*report.Node, results []report.ItemResult, problems []report.Problem) []report.Problem {
	outcomes := map[xp.ID]report.Outcome{}
	for _, f := range results {
		outcomes[f.Item.ID()] = f.Outcome
	}
	placed := sets.New[xp.ID]()
	for n := range report.All(trees...) {
		placed.Insert(n.ID())
		if o, ok := outcomes[n.ID()]; ok && n.State != report.Foreign {
			n.Restore = &o
		}
	}
	problems = slices.DeleteFunc(problems, func(p report.Problem) bool { return outcomes[p.Object.ID()].Code == reason.NotSelected })
	known := leftBehind(problems)
	against.Counts = map[report.Action]int{}
	never, unselected := map[string]int{}, map[string]int{}
	for _, f := range results {
		against.Counts[f.Outcome.Action]++
		isExpected := f.Outcome.Action == report.Create || f.Outcome.Action == report.Exists && !placed.Has(f.Item.ID())
		switch {
		case f.Outcome.Code == reason.NeverRestored:
			never[f.Resource]++
		case f.Outcome.Code == reason.NotSelected:
			unselected[f.Resource]++
		case !isExpected || f.Outcome.Reason != "":
			against.Items = append(against.Items, f)
		}
		if f.Outcome.Action == report.Refuse && !known.Has(f.Item.ID()) {
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
