package hooks

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// reportMode is the mode of the files of a report, which have no secrets.
const reportMode = 0o644

// finish removes what a drill that passed has restored, and reports the result.
func (d *drillRun) finish(ctx context.Context, rep *report.Report, late bool) error {
	found := rep.Problems
	assemble := func() { rep.Assemble(rep.Trees, slices.Concat(found, d.problems)) }
	assemble()
	if rep.Failing(d.strict) == 0 && !d.keep {
		if err := d.clean(ctx); err != nil {
			u := xp.RefTo(d.about)
			d.problemOf(u, report.Warning, reason.DrillNotRemoved.Messagef("what it has restored stays: %v", err), "the next drill removes it")
		}
		assemble()
	}
	d.result.Ended = time.Now().UTC().Truncate(time.Second)
	d.result.Problems, d.result.Warnings = rep.Summary.Problems, rep.Summary.Warnings
	d.result.Passed = rep.Failing(d.strict) == 0
	rep.Drill = &d.result
	if err := d.signal(ctx, rep); err != nil {
		return drillRight(err)
	}
	if err := d.print(rep, d.out); err != nil {
		return err
	}
	if err := d.save(rep); err != nil {
		return err
	}
	if late {
		return &exit{code: ExitTimeout}
	}

	return exitFor(rep.Failing(d.strict))
}

// signal writes the result on the Restore, and an Event.
func (d *drillRun) signal(ctx context.Context, rep *report.Report) error {
	if d.about == nil {
		return nil // There is no object that an Event could be about.
	}
	result, event, write := adoption.DrillPassed, adoption.EventDrillPassed, d.cluster.Note
	message := fmt.Sprintf("The drill of the schedule %s passed: %s, %s and %s came back into quarantine", d.schedule,
		printer.Counted(rep.Summary.Claims, "claim"), printer.Counted(rep.Summary.XRs, "XR"), printer.Counted(rep.Summary.Managed, "MR"))
	if !d.result.Passed {
		result, event, write = adoption.DrillFailed, adoption.EventDrillFailed, d.cluster.Warn
		first := rep.Problems[0]
		message = fmt.Sprintf("The drill of the schedule %s failed with %s; the first is: %s: %s", d.schedule,
			printer.Counted(rep.Failing(d.strict), "problem"), first.Object, first.Reason)
	}
	if d.result.Restore != "" {
		if err := d.cluster.LabelDrillResult(ctx, d.about, result); err != nil {
			return err
		}
	}

	return write(ctx, d.about, event, message)
}

// save writes the report into the folder and the bucket.
func (d *drillRun) save(rep *report.Report) error {
	name := d.result.Restore
	if name == "" {
		name = adoption.DrillName(d.schedule, d.result.Started)
	}
	for extension, format := range map[string]printer.Format{"html": printer.HTML, "xml": printer.JUnit, "json": printer.JSON} {
		var b bytes.Buffer
		if err := printer.Print(&b, rep, format, printer.Options{}); err != nil {
			return err
		}
		if d.dir != "" {
			if err := os.WriteFile(filepath.Join(d.dir, name+"."+extension), b.Bytes(), reportMode); err != nil {
				return fmt.Errorf("cannot write the report: %w", err)
			}
		}
		if d.store != nil {
			if err := d.store.Put(drillFile(d.schedule, name+"."+extension), b.Bytes()); err != nil {
				return reason.ReportNotStored.Errorf("%w", err)
			}
		}
	}
	if d.store == nil {
		return nil
	}
	b, err := printer.Encode(d.result, printer.JSON)
	if err != nil {
		return fmt.Errorf("cannot encode the result of the drill: %w", err)
	}
	files := []string{latestDrill}
	if d.result.Passed {
		files = append(files, passedDrill)
	}
	for _, file := range files {
		if err := d.store.Put(drillFile(d.schedule, file), b); err != nil {
			return reason.ReportNotStored.Errorf("%w", err)
		}
	}

	return nil
}
