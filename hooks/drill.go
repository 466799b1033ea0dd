package hooks

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// defaultDrillAge is a day, and two hours for the backup or the drill itself.
const defaultDrillAge = 26 * time.Hour

func newDrill(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "drill run|status",
		Short: "Prove that the newest backup of a schedule can be restored",
		Long: `A drill restores the newest backup of a schedule into quarantine, where nothing is reconciled, checks what has come back, writes a report, and
removes it again. Run it in a cluster of its own, for example each night. example/drill has the manifests.`,
		Example: `  # The drill of the schedule nightly, with its report in the bucket of the backups
  ` + Name + ` drill run --from-schedule nightly --report-location default

  # Has one passed since yesterday?
  ` + Name + ` drill status --from-schedule nightly`,
		Args: knownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newDrillRun(o), newDrillStatus(o))

	return c
}

// rejectDrillNamespace fails if --namespace is given: a drill is about a backup.
func (o *options) rejectDrillNamespace(*cobra.Command, []string) error {
	if o.namespace != "" {
		return errors.New("cannot limit a drill to a namespace with -n: give --restore-file with includedNamespaces")
	}

	return nil
}

// drillFile returns the name of a file of a schedule's drills in the store.
func drillFile(schedule, name string) string { return "drills/" + schedule + "/" + name }

// Files with the result of the last drill, and of the last one that passed.
const (
	latestDrill = "latest.json"
	passedDrill = "passed.json"
)

// drillRight adds the file with the rights for a drill to an error about a missing right.
func drillRight(err error) error {
	if apierrors.IsForbidden(err) {
		return reason.RightMissing.Errorf("%w; example/drill/rights.yaml has the rights for this command", err)
	}

	return err
}

// scheduleOf returns the schedule of a drill: that of the flag, or that of the file.
func scheduleOf(flag, file string) (string, error) {
	switch {
	case flag != "" && file != "" && flag != file:
		return "", fmt.Errorf("cannot tell which schedule the drill is of: --from-schedule is %s, and the file has scheduleName %s", flag, file)
	case flag == "" && file == "":
		return "", errors.New("cannot tell which backups the drill is of: give their schedule with --from-schedule")
	default:
		return cmp.Or(flag, file), nil
	}
}
