package hooks

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adopter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

const (
	releaseTimeout = 10 * time.Minute
	// releaseInterval is the time between two rounds without progress.
	releaseInterval = 2 * time.Second
	// releaseSettle is how long nothing may change before holds that need a user's action stay on.
	releaseSettle = 10 * time.Second
)

const releaseLong = `Release lifts the holds that nothing works on any more: those whose Restore is gone, has failed or has ended. It takes the same steps in
the same order as the restore, from the managed resources up to the claims. It lifts a hold only when all objects of the backup exist, so no external resource
is created again or deleted. A user's own pause, update policy and managementPolicies come back as they were.

It leaves alone, and lists, what a running Restore holds, objects in quarantine, copies of existing objects, and CronOperations and WatchOperations.
--restore names the Restore whose holds to lift, also if it seems to run or has put them in quarantine. A name also ends a quarantine, and lifts the hold of a
CronOperation or WatchOperation. Copies stay held.

It also leaves alone what the command hold holds, unless you name the objects, their namespace with -n, or the whole cluster with -A. It then asks first:
if another cluster has adopted them, both would manage the same external resources.

A mark counts only if the plugin of this cluster has signed it. With --trust-marks the marks of the named objects count too: for objects that Velero alone
restored from a backup in which they were held, and for objects that were held when the key was lost. Check these marks first: users who can write an object
can write its mark.

A hold that it can't lift stays, with the reason and the next step. The command ends when nothing has changed for a while.

--force then lifts these holds too. It first prints the risks of each, and asks. --dry-run prints what it would do, and changes nothing.

It exits with 0 if no requested object is held any more, 3 if one stays held, 4 if that is because of the timeout, and 2 if it can't ask: without a
terminal it needs --yes. See docs/validate.md.`

const releaseExample = `  # Which holds does no Restore work on, and what would release do?
  ` + Name + ` release --dry-run

  # Finish a Restore
  ` + Name + ` release --restore nightly-20261120

  # One claim with its tree
  ` + Name + ` release team-a/orders

  # Which risks has a release without the missing objects?
  ` + Name + ` release team-a/orders --force --dry-run

  # Objects that Velero restored held, without the plugin
  ` + Name + ` release team-a/orders --trust-marks

  # Go on with what the command hold holds, when no other cluster has adopted it
  ` + Name + ` release -n team-a

  # Let a CronOperation start Operations again
  ` + Name + ` release nightly-cleanup`

// A release holds the flags of release and its results.
type release struct {
	*options

	out                output
	restore            string
	names              []string
	dryRun, force, yes bool
	// trustMarks accepts marks that the plugin did not sign.
	trustMarks    bool
	timeout       time.Duration
	pause, settle time.Duration

	cluster *cluster.Cluster
	survey  *adopter.Survey
	adopter *adopter.Adopter
	// key verifies which marks the plugin wrote.
	key   hold.Key
	holds *holds
	// busy are the Restores under way. They may bring back what is missing.
	busy []string
}

func newRelease(o *options) *cobra.Command {
	r := &release{options: o, pause: releaseInterval, settle: releaseSettle}
	c := &cobra.Command{
		Use:     "release [NAMESPACE/NAME...]",
		Short:   "Lift the holds that a restore has left",
		Long:    releaseLong,
		Example: releaseExample,
		RunE: func(c *cobra.Command, args []string) error {
			if err := r.prepare(args); err != nil {
				return err
			}

			return o.inCluster(c, r.run)
		},
	}
	c.Flags().StringVar(&r.restore, "restore", "", "only the holds of this Restore, in any phase")
	c.Flags().BoolVar(&r.dryRun, "dry-run", false, "print what it would do, and change nothing")
	c.Flags().BoolVar(&r.force, "force", false, "also lift holds that it can't lift safely, after printing the risks")
	c.Flags().BoolVar(&r.trustMarks, "trust-marks", false, "accept marks of the named objects, or of --restore, that this cluster has not signed")
	c.Flags().BoolVarP(&r.yes, "yes", "y", false, "don't ask before lifting by force, or what the command hold holds")
	c.Flags().DurationVar(&r.timeout, "timeout", releaseTimeout, "how long to continue")
	r.out.addTo(c, resultFormats()...)

	return c
}

func (r *release) prepare(args []string) error {
	var err error
	if r.names, err = r.parseNames(args); err != nil {
		return err
	}
	if r.timeout < 0 {
		return fmt.Errorf("cannot continue for %s", r.timeout)
	}
	if r.restore != "" && !strings.Contains(r.restore, "/") {
		r.restore = r.velero + "/" + r.restore
	}
	if r.trustMarks && len(r.names) == 0 && r.restore == "" {
		return errors.New("cannot trust the marks of all objects: name the objects, or their Restore with --restore")
	}
	if r.force && !r.yes && !r.dryRun && !isTerminal(r.In) {
		return errors.New("cannot ask: stdin is no terminal; check the risks with --force --dry-run, then give --yes")
	}

	return nil
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)

	return ok && term.IsTerminal(int(f.Fd()))
}

func (r *release) run(ctx context.Context, cluster *cluster.Cluster) error {
	r.cluster = cluster
	if err := r.observe(ctx); err != nil {
		return err
	}
	if err := r.find(); err != nil {
		return err
	}
	if err := r.checkScope(ctx); err != nil {
		return err
	}
	var err error
	if r.key, err = r.readKey(ctx); err != nil {
		return err
	}
	if err := r.confirmUnmoved(ctx); err != nil {
		return err
	}
	if r.dryRun {
		err = r.preview(ctx)
	} else {
		err = r.lift(ctx)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}

	return r.printReport(err)
}

// readKey reads the key that verifies marks. Without one (Velero's namespace was created again) it
// returns a random key: no mark counts, and a hold is lifted only with --trust-marks or --force.
func (r *release) readKey(ctx context.Context) (hold.Key, error) {
	if r.trustMarks || len(r.holds.due()) == 0 {
		return hold.Unverified, nil
	}
	key, err := r.cluster.ReadMarkKey(ctx, r.velero)
	if !apierrors.IsNotFound(err) {
		return key, err
	}
	r.logf("warning: %s", reason.MarkKeyMissing.Messagef("the namespace %s has no Secret %s, so release can't verify marks. Give Velero's namespace with "+
		"--velero-namespace, or --trust-marks if you know what is held", r.velero, cluster.MarkKeySecret))
	key = make(hold.Key, hold.KeySize)
	_, _ = rand.Read(key) // It never fails.

	return key, nil
}

// confirmUnmoved asks before it releases what the command hold holds: nobody can see from here
// whether another cluster has adopted it. Without a confirmation these objects stay held.
func (r *release) confirmUnmoved(ctx context.Context) error {
	moved := slices.DeleteFunc(r.holds.due(), func(h *held) bool { return !h.hold.ByCommand })
	if len(moved) == 0 {
		return nil
	}
	r.logf("The command hold holds %s, so that another cluster can adopt them. If one has, it manages the same external resources, and a release here makes two "+
		"clusters change and delete them. This cluster can't find that out.", printer.Counted(len(moved), "object"))
	if r.dryRun {
		return nil
	}
	if !r.yes && !isTerminal(r.In) {
		return &exit{code: ExitUsage, err: errors.New("cannot ask: stdin is no terminal; make sure that no other cluster has adopted them, then give --yes")}
	}
	agreed, err := ask(ctx, r.options, r.yes, "Are you sure that no other cluster has adopted them?")
	if err != nil || agreed {
		return err
	}
	for _, h := range moved {
		h.excluded, h.Result = true, report.StillHeld
		h.because(reason.HeldByCommand.Messagef("you did not confirm that no other cluster has adopted it"))
		h.Next = "look for it in the other cluster, then run the same again"
	}

	return nil
}

// observe reads the cluster.
func (r *release) observe(ctx context.Context) (err error) {
	if r.survey, err = adopter.ReadSurvey(ctx, r.cluster, adopter.Scope{Namespace: r.namespace, Velero: r.velero}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.survey.Restores)) {
		if diagnosis.IsUnderWay(r.survey.Restores[name].Phase) {
			r.busy = append(r.busy, name)
		}
	}
	if r.namespace != "" {
		return nil
	}
	schedules, err := r.cluster.Schedules(ctx)
	for _, u := range schedules {
		r.survey.Add(u)
	}

	return err
}

func (r *release) printReport(timeout error) error {
	rep := &report.Report{Kind: report.KindRelease, Source: r.cluster.Name(), Time: time.Now().UTC().Truncate(time.Second), Releases: []report.Release{}}
	restores := sets.New[string]()
	if _, ok := r.survey.Restores[r.restore]; ok {
		restores.Insert(r.restore)
	}
	for _, h := range r.holds.all {
		h.addManagers()
		rep.Releases = append(rep.Releases, h.Release)
		restores.Insert(h.Restore)
	}
	rep.Restores = restoresNamed(r.survey, restores)
	rep.Assemble(nil, r.holds.problems())
	if err := r.print(rep, r.out); err != nil {
		return err
	}
	unfinished := func(h *held) bool { return h.Result == report.StillHeld || h.Result == report.Unproven }
	if timeout != nil && slices.ContainsFunc(r.holds.due(), unfinished) {
		return &exit{code: ExitTimeout, err: reason.TimedOut.Errorf("cannot wait longer than %s: check above what it waits for, then run it again", r.timeout)}
	}

	return exitFor(rep.Summary.Problems)
}

// logf prints a progress message on stderr.
func (r *release) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Err, format+"\n", args...) // The report repeats it.
}

// ask asks the user whether to go on, unless yes is set. Only "y" and "yes" count as agreement.
func ask(ctx context.Context, o *options, yes bool, question string) (bool, error) {
	if yes {
		return true, nil
	}
	_, _ = fmt.Fprint(o.Err, question+" [y/N] ") // A prompt that fails leaves the answer open.
	given := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(o.In).ReadString('\n') // Without an end of line it is an answer too.
		given <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case line := <-given:
		return line == "y" || line == "yes", nil
	}
}
