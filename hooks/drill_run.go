package hooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/vmware-tanzu/velero/pkg/label"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	drillTimeout  = time.Hour
	drillInterval = 2 * time.Second
	// drillGone is how long to wait until what it removes is gone, and drillAnswer until Velero
	// answers.
	drillGone   = 2 * time.Minute
	drillAnswer = time.Minute
)

const drillRunLong = `Drill run restores the newest Completed backup of a schedule into quarantine: every claim, XR and managed resource comes back paused, so
nothing is reconciled and nothing is written to the cloud. It then checks what has come back, as validate does, and whether it is all that the backup has.

It first removes what earlier drills of the schedule left in quarantine, without running finalizers, so no external resource is touched. After a drill that
passed it does so again; --keep leaves everything for a look. It removes only claims, XRs, managed resources and Usages that a drill brought, and names those
that somebody has changed or released.

It does not begin if Velero runs without this plugin, and restores nothing if the newest backup is older than --max-age.

The result is the exit code, an Event DrillPassed or DrillFailed on the Restore, a label on the Restore, and a report: on stdout, in a folder with
--report-dir, and in the bucket of a BackupStorageLocation with --report-location, which needs Velero's plugin for the object store.

It exits with 0 if the drill passed, 3 if it failed, and 4 if the Restore was not over in time. With 1 there was no drill. See docs/drills.md.`

const drillRunExample = `  # The whole backup
  ` + Name + ` drill run --from-schedule nightly

  # What the Restore in a file selects, maps or changes
  ` + Name + ` drill run --restore-file restore.yaml

  # Reports as files, and in the bucket of the backups
  ` + Name + ` drill run --from-schedule nightly --report-dir /reports --report-location default`

// A drillRun holds the flags of drill run and what it has found.
type drillRun struct {
	*options

	out             output
	schedule, file  string
	maxAge, timeout time.Duration
	// pause is the time between two looks, and gone how long to wait for deletions.
	pause, gone  time.Duration
	keep, strict bool
	dir          string
	bucket       storeFlags

	cluster *live.Cluster
	key     adoption.Key
	store   reportStore
	// template is the Restore to make; its name and backup are those of the drill.
	template *unstructured.Unstructured
	result   report.Drill
	problems []report.Problem
	// about is what the Event is about: the Restore, or the newest backup; nil if there is neither.
	about *unstructured.Unstructured
}

func newDrillRun(o *options) *cobra.Command {
	d := &drillRun{options: o, pause: drillInterval, gone: drillGone}
	c := &cobra.Command{
		Use:     "run --from-schedule NAME",
		Short:   "Restore the newest backup of a schedule into quarantine, check it, and remove it",
		Long:    drillRunLong,
		Example: drillRunExample,
		Args:    cobra.NoArgs,
		PreRunE: o.rejectDrillNamespace,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := d.prepare(); err != nil {
				return err
			}

			return o.inCluster(c, d.run)
		},
	}
	flags := c.Flags()
	flags.StringVar(&d.schedule, "from-schedule", "", "the schedule whose newest backup to restore")
	flags.StringVar(&d.file, "restore-file", "", "a Restore in YAML that says what to restore and how; its name and backup are replaced")
	flags.DurationVar(&d.maxAge, "max-age", defaultDrillAge, "restore nothing, and fail, if the newest backup began longer ago")
	flags.DurationVar(&d.timeout, "timeout", drillTimeout, "how long the Restore may take")
	flags.BoolVar(&d.keep, "keep", false, "leave what a drill that passed has restored; the next one removes it")
	flags.BoolVar(&d.strict, "strict", false, "also fail for warnings")
	flags.StringVar(&d.dir, "report-dir", "", "folder for the report as html, junit and json")
	d.bucket.addTo(c)
	_ = c.MarkFlagFilename("restore-file", "yaml", "yml", "json") // They fail only without the flag.
	_ = c.MarkFlagDirname("report-dir")
	// The metrics of drills are those of drill status.
	_ = d.out.addTo(c, slices.DeleteFunc(printer.Formats(), func(f string) bool { return f == string(printer.OpenMetrics) })...)

	return c
}

// prepare checks the flags and reads the file.
func (d *drillRun) prepare() error {
	if d.timeout <= 0 || d.maxAge <= 0 {
		return errors.New("cannot work with a --timeout or --max-age that is not positive")
	}
	d.template = &unstructured.Unstructured{Object: map[string]any{}}
	var err error
	if d.file != "" {
		if d.template, err = readRestore(d.file); err != nil {
			return err
		}
	}
	named, _, _ := unstructured.NestedString(d.template.Object, "spec", "scheduleName")
	d.schedule, err = scheduleOf(d.schedule, named)

	return err
}

func (d *drillRun) run(ctx context.Context, cluster *live.Cluster) error {
	d.cluster = cluster
	d.result = report.Drill{Schedule: d.schedule, Started: time.Now().UTC().Truncate(time.Second)}
	var err error
	if d.store, err = d.bucket.store(ctx, cluster, d.velero, true); err != nil {
		return drillRight(err)
	}
	if d.store != nil {
		defer d.store.Close()
	}
	if err := d.begin(ctx); err != nil {
		return drillRight(err)
	}
	rep, late, err := d.drill(ctx)
	if err != nil {
		return drillRight(err)
	}

	return d.finish(ctx, rep, late)
}

// begin makes sure that the drill can't do harm, and removes what earlier ones left.
func (d *drillRun) begin(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, drillAnswer)
	defer cancel()
	switch ok, err := d.cluster.HasPlugin(limited, d.velero, adoption.ActionAdopt); {
	case err != nil:
		return err
	case !ok:
		return reason.PluginMissing.Errorf("cannot drill: the Velero server in the namespace %s does not run this plugin, so nothing that it restores would be held",
			d.velero)
	}
	var err error
	if d.key, err = d.cluster.MarkKey(ctx, d.velero); err != nil {
		return err
	}
	if err := d.awaitEarlier(ctx); err != nil {
		return err
	}

	return d.clean(ctx)
}

// create creates the Restore. If a drill that began in the same second has the name, it takes that
// of the next second.
func (d *drillRun) create(ctx context.Context, backup *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for at := d.result.Started; ; at = at.Add(time.Second) {
		name := adoption.DrillName(d.schedule, at)
		u, err := d.cluster.CreateRestore(ctx, adoption.DrillRestore(d.template, d.velero, name, label.GetValidName(d.schedule), backup.GetName()))
		if !apierrors.IsAlreadyExists(err) {
			return u, err
		}
	}
}

// awaitEarlier waits until no Restore of an earlier drill is running.
func (d *drillRun) awaitEarlier(ctx context.Context) error {
	drills, err := d.cluster.Drills(ctx, d.velero, d.schedule)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	for _, u := range drills {
		if !diagnosis.IsUnderWay(phaseOf(u)) {
			continue
		}
		fmt.Fprintf(d.Err, "waiting for the Restore %s of an earlier drill, which is %s\n", u.GetName(), phaseOf(u))
		if _, err := d.cluster.AwaitRestore(limited, u, d.pause); err != nil && !apierrors.IsNotFound(err) {
			return reason.RestoreRunning.Errorf("cannot drill while the Restore %s of an earlier drill is running: %w", u.GetName(), err)
		}
	}

	return nil
}

func phaseOf(u *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")

	return phase
}

// drill restores and checks. late is set if the Restore was not over in time.
func (d *drillRun) drill(ctx context.Context) (rep *report.Report, late bool, err error) {
	rep = &report.Report{Kind: report.KindDrill, Source: d.cluster.Name(), Time: time.Now().UTC().Truncate(time.Second)}
	backup, err := d.cluster.NewestBackup(ctx, d.velero, d.schedule)
	if err != nil {
		return nil, false, err
	}
	if d.about = backup; d.isOverdue(backup) {
		return rep, false, nil
	}
	u, err := d.create(ctx, backup)
	if err != nil {
		return nil, false, err
	}
	name := u.GetName()
	d.about, d.result.Restore = u, name
	fmt.Fprintf(d.Err, "restoring the Backup %s into quarantine, as %s\n", backup.GetName(), name)
	limited, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	ended, err := d.cluster.AwaitRestore(limited, u, d.pause)
	switch {
	case ctx.Err() != nil:
		return nil, false, reason.Interrupted.Errorf("cannot continue: %w; the next drill removes what this one has restored", ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		d.problem(u, reason.TimedOut.Messagef("it is %s, and has not ended within %s", phaseOf(ended), d.timeout), describe(name))

		return rep, true, nil
	case apierrors.IsNotFound(err):
		d.about, d.result.Restore = backup, ""
		d.problem(u, reason.RestoreNotCompleted.Messagef("it was deleted before it was over"), "find out who deletes Restores, and run the drill again")

		return rep, false, nil
	case err != nil:
		return nil, false, err
	}
	d.about = ended

	return d.check(ctx, rep, ended, backup)
}

// isOverdue records the newest backup, and a problem if that is too old, or if there is none.
func (d *drillRun) isOverdue(backup *unstructured.Unstructured) bool {
	schedule := xp.Ref{APIVersion: "velero.io/v1", Kind: "Schedule", Namespace: d.velero, Name: d.schedule}
	const next = "see which backups there are: velero backup get"
	if backup == nil {
		d.problemOf(schedule, report.Error, reason.BackupOverdue.Messagef("there is no Completed backup of it here, so there was nothing to restore"), next)

		return true
	}
	at := adoption.BackupStarted(backup).UTC()
	d.result.Backup, d.result.BackedUp = backup.GetName(), &at
	if age := d.result.Started.Sub(at); age > d.maxAge {
		d.problemOf(schedule, report.Error, reason.BackupOverdue.Messagef(
			"its newest Completed backup %s began %s ago, which is longer than %s, so nothing was restored", backup.GetName(), age.Round(time.Second), d.maxAge), next)

		return true
	}

	return false
}

func (d *drillRun) problem(u *unstructured.Unstructured, why reason.Message, next string) {
	d.problemOf(xp.RefTo(u), report.Error, why, next)
}

func (d *drillRun) problemOf(of xp.Ref, s report.Severity, why reason.Message, next string) {
	d.problems = append(d.problems, report.Problem{Code: why.Code, Severity: s, Object: of, Reason: why.String(), Next: next})
}

func describe(restore string) string {
	return "see what it reports: " + xp.NewCommand("velero", "restore", "describe").Word("--details").On(restore).String()
}
