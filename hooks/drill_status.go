package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/metrics"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/objectstore"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

type drillStatus struct {
	*options

	out      output
	schedule string
	within   time.Duration
	bucket   storeFlags
}

func newDrillStatus(o *options) *cobra.Command {
	d := &drillStatus{options: o}
	c := &cobra.Command{
		Use:   "status --from-schedule NAME",
		Short: "Print when a drill last passed, and fail if that is too long ago",
		Long: `Drill status prints the last drill of a schedule and the last one that passed. It reads the Restores of the drills in this cluster, or, with
--report-location, the bucket: so it also works in the cluster that is backed up, and when the cluster of the drills is gone.

It exits with 3 if no drill has passed within --within, and changes nothing.`,
		Example: `  # In the cluster of the drills
  ` + Name + ` drill status --from-schedule nightly

  # In another one that shares the bucket
  ` + Name + ` drill status --from-schedule nightly --report-location default --within 26h`,
		Args:    cobra.NoArgs,
		PreRunE: o.rejectDrillNamespace,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := scheduleOf(d.schedule, ""); err != nil {
				return err
			}
			if d.within <= 0 {
				return fmt.Errorf("cannot look for a drill within %s", d.within)
			}

			return o.inCluster(c, d.run)
		},
	}
	c.Flags().StringVar(&d.schedule, "from-schedule", "", "the schedule of the drills")
	c.Flags().DurationVar(&d.within, "within", defaultDrillAge, "how long ago a drill may have passed")
	d.bucket.addTo(c)
	// It fails only if the flag is there already.
	_ = d.out.addTo(c, append(dataFormats(), string(printer.OpenMetrics))...)

	return c
}

func (d *drillStatus) run(ctx context.Context, cluster *live.Cluster) error {
	s := &drillState{Schedule: d.schedule, now: time.Now()}
	store, err := d.bucket.store(ctx, cluster, d.velero, false)
	switch {
	case err != nil:
		return drillRight(err)
	case store != nil:
		defer store.Close()
		err = s.readFrom(store)
	default:
		err = s.readIn(ctx, cluster, d.velero)
	}
	if err != nil {
		return drillRight(err)
	}
	s.Overdue = s.Passed == nil || s.now.Sub(s.Passed.Ended) > d.within
	if err := d.printData("the drills", s, d.out.format); err != nil {
		return err
	}
	if s.Overdue {
		return &exit{code: ExitProblems, err: reason.DrillOverdue.Errorf("no drill of the schedule %s has passed within %s", d.schedule, d.within)}
	}

	return nil
}

// A drillState is what is known of the drills of a schedule.
type drillState struct {
	Schedule string `json:"schedule"`
	// Overdue is true if none has passed in time.
	Overdue bool `json:"overdue"`
	// Last is the last drill, and Passed the last one that passed; null if there is none.
	Last   *report.Drill `json:"last"`
	Passed *report.Drill `json:"passed"`

	now time.Time
}

// readFrom reads the bucket.
func (s *drillState) readFrom(store reportStore) error {
	for name, into := range map[string]**report.Drill{latestDrill: &s.Last, passedDrill: &s.Passed} {
		b, err := store.Get(drillFile(s.Schedule, name))
		if errors.Is(err, objectstore.ErrNotFound) {
			continue
		}
		if err == nil {
			*into = &report.Drill{}
			err = json.Unmarshal(b, *into)
		}
		if err != nil {
			return reason.ReportNotStored.Errorf("cannot read the result of the last drill: %w", err)
		}
	}

	return nil
}

// readIn reads the Restores of a cluster.
func (s *drillState) readIn(ctx context.Context, cluster *live.Cluster, velero string) error {
	restores, err := cluster.Drills(ctx, velero, s.Schedule)
	if err != nil {
		return err
	}
	for _, u := range restores {
		one, ok := drillOf(u, s.Schedule)
		if !ok {
			continue
		}
		if s.Last == nil || one.Ended.After(s.Last.Ended) {
			s.Last = &one
		}
		if one.Passed && (s.Passed == nil || one.Ended.After(s.Passed.Ended)) {
			s.Passed = &one
		}
	}

	return nil
}

// drillOf returns the drill of a Restore; ok is false if the drill has no result.
func drillOf(u *unstructured.Unstructured, schedule string) (one report.Drill, ok bool) {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, path...)

		return s
	}
	ended, err := time.Parse(time.RFC3339, text("status", "completionTimestamp"))
	result := xp.Label(u, adoption.LabelDrillResult)

	return report.Drill{
		Schedule: schedule, Restore: u.GetName(), Backup: text("spec", "backupName"), Started: u.GetCreationTimestamp().UTC(), Ended: ended.UTC(),
		Passed: result == adoption.DrillPassed,
	}, err == nil && result != ""
}

func (s *drillState) metrics() ([]byte, error) {
	return metrics.Drills(s.Schedule, s.now, s.Overdue, s.Last, s.Passed)
}

func (s *drillState) table() []byte {
	var b bytes.Buffer
	line := func(what string, one *report.Drill) {
		if one == nil {
			fmt.Fprintf(&b, "%s: none\n", what)

			return
		}
		result := "failed"
		if one.Passed {
			result = "passed"
		}
		fmt.Fprintf(&b, "%s: %s, %s %s ago", what, reason.Clean(one.Restore), result, duration.HumanDuration(s.now.Sub(one.Ended)))
		if one.Backup != "" {
			fmt.Fprintf(&b, ", of the Backup %s", reason.Clean(one.Backup))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "Schedule: %s\n", s.Schedule)
	line("Last drill", s.Last)
	line("Last that passed", s.Passed)

	return b.Bytes()
}
