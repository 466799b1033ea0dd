package hooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// maxNamed is how many objects a problem names. The others are in its list.
const maxNamed = 5

// check validates what a Restore has brought back, and compares it with the backup.
func (d *drillRun) check(ctx context.Context, rep *report.Report, restore, backup *unstructured.Unstructured) (*report.Report, bool, error) {
	if phase := phaseOf(restore); phase != "Completed" {
		d.problem(restore, reason.RestoreNotCompleted.Messagef("it is %s", phase), describe(restore.GetName()))
	}
	v := &validation{options: d.options, restore: restore.GetName(), pause: recheckAfter, cluster: d.cluster}
	found, err := v.validateStable(ctx)
	if err != nil {
		return nil, false, err
	}
	rep.Restores, rep.Time = found.Restores, found.Time
	by := d.velero + "/" + restore.GetName()
	isHeld := map[xp.ID]bool{}
	for n := range report.All(found.Trees...) {
		isHeld[n.ID()] = isHeld[n.ID()] || n.Hold != nil && n.Hold.Restore == by
	}
	problems := slices.DeleteFunc(found.Problems, func(p report.Problem) bool { return p.Code == reason.Quarantined && isHeld[p.Object.ID()] })
	if err := d.compare(ctx, restore, backup, isHeld); err != nil {
		return nil, false, err
	}
	d.addDangling(found.Trees, isHeld)
	rep.Assemble(found.Trees, problems)

	return rep, false, nil
}

// compare records what the backup has and the Restore has not brought into quarantine.
func (d *drillRun) compare(ctx context.Context, restore, backup *unstructured.Unstructured, isHeld map[xp.ID]bool) error {
	refs, ok, err := d.cluster.BackedUpTrees(ctx, restore, backup)
	if err != nil {
		return err
	}
	if !ok {
		fmt.Fprintln(d.Err, "the Restore selects by label, so what has come back is not compared with the list of what is in the backup")

		return nil
	}
	missing := map[schema.GroupKind][]xp.Ref{}
	var kinds []schema.GroupKind
	for _, r := range refs {
		if isHeld[r.ID()] {
			continue
		}
		gk := r.GroupVersionKind().GroupKind()
		if missing[gk] == nil {
			kinds = append(kinds, gk)
		}
		missing[gk] = append(missing[gk], r)
	}
	for _, gk := range kinds {
		of := missing[gk]
		names := make([]string, 0, maxNamed)
		for _, r := range of[:min(len(of), maxNamed)] {
			names = append(names, r.Path())
		}
		if len(of) > maxNamed {
			names = append(names, fmt.Sprintf("%d more", len(of)-maxNamed))
		}
		why := reason.NotBroughtBack.Messagef("the backup has %d of this kind that are not in quarantine: %s", len(of), strings.Join(names, ", "))
		d.problems = append(d.problems, report.Problem{
			Code: why.Code, Severity: report.Error, Object: of[0], Others: of[1:], Reason: why.String(), Next: describe(restore.GetName()),
		})
	}

	return nil
}

// addDangling records what the restored objects reference and what does not exist. It is no problem
// of an object that a Restore holds for as long as a Restore may still bring it, which is over here.
func (d *drillRun) addDangling(trees []*report.Node, isHeld map[xp.ID]bool) {
	named := map[xp.ID]bool{}
	for _, p := range d.problems {
		for _, r := range append([]xp.Ref{p.Object}, p.Others...) {
			named[r.ID()] = true
		}
	}
	for parent := range report.All(trees...) {
		if !isHeld[parent.ID()] {
			continue
		}
		for _, n := range parent.Children {
			if n.State != report.Missing || named[n.ID()] {
				continue
			}
			named[n.ID()] = true
			why := reason.Dangling.Messagef("%s lists it, and it did not come back", parent.String())
			d.problems = append(d.problems, report.Problem{
				Code: why.Code, Severity: report.Error, Object: n.Ref, Reason: why.String(),
				Next: "see whether the filters of the backup or of the drill's Restore leave it out, and whether the cluster serves its kind",
			})
		}
	}
}
