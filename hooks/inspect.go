package hooks

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/vmware-tanzu/velero/pkg/cmd/util/flag"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

const inspectLong = `Inspect prints what is in a backup: the trees of claims, XRs and their composed resources, the order in which a restore with this plugin
creates them, and the problems of such a restore. It needs no cluster, and neither keeps nor prints values of Secrets.

With --against it reads the cluster of the current kubeconfig, and prints what a restore would do there with each item: create it, hold it, restore it as a
copy, leave it because it exists, skip it because the control plane creates it again, or refuse it. It writes nothing.

BACKUP is a file from "velero backup download", or - for stdin.`

const inspectExample = `  # What is in a backup, and which problems does it have?
  velero backup download nightly -o nightly.tar.gz
  velero-plugin-for-crossplane inspect nightly.tar.gz

  # What would a restore into the cluster of the current kubeconfig do with each item?
  velero-plugin-for-crossplane inspect nightly.tar.gz --against

  # Only the trees of one namespace, for a program
  velero-plugin-for-crossplane inspect nightly.tar.gz -n team-a -o json`

type inspect struct {
	*options

	out      output
	strict   bool
	against  bool
	mappings flag.Map
}

func newInspect(o *options) *cobra.Command {
	i := &inspect{options: o, mappings: flag.NewMap().WithEntryDelimiter(',').WithKeyValueDelimiter(':')}
	c := &cobra.Command{
		Use:     "inspect BACKUP",
		Short:   "Print what is in a backup, and the problems of a restore",
		Long:    inspectLong,
		Example: inspectExample,
		Args:    oneBackup,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"tar.gz", "tgz"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(c *cobra.Command, args []string) error { return failed(i.run(c.Context(), args[0])) },
	}
	c.Flags().BoolVar(&i.strict, "strict", false, "also fail for warnings")
	c.Flags().BoolVar(&i.against, "against", false, "print what a restore into the current cluster would do; it writes nothing")
	c.Flags().Var(&i.mappings, "namespace-mappings", "those of the restore, as from:to,from:to; only with --against")
	i.out.addProblemsOnlyTo(c)
	_ = i.out.addTo(c) // It fails only if the flag is there already.

	return c
}

// gcPercent lowers GOGC, which keeps an inspection of 100,000 objects below 300 MB. It costs little
// time: the collector mostly runs on another processor.
const gcPercent = 40

func (i *inspect) run(ctx context.Context, file string) error {
	if len(i.mappings.Data()) > 0 && !i.against {
		return &exit{code: ExitUsage, err: errors.New("cannot use --namespace-mappings without --against")}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	backup, err := i.read(ctx, file)
	if err != nil {
		return err
	}
	r := &report.Report{Kind: report.KindInspection, Source: source(file), Time: time.Now().UTC()}
	var results []report.ItemResult
	// The dry run comes first, so that its memory is free before objectsOf builds the trees.
	if r.Order, r.DryRun, results, err = i.dryRun(ctx, backup); err != nil {
		return err
	}
	objects := objectsOf(backup)
	r.Versions = versionsOf(backup, objects)
	trees, problems := objects.Trees(), append(diagnosis.Inspect(objects), formatOf(backup, file)...)
	if r.DryRun != nil {
		problems = append(problems, applyResults(r.DryRun, trees, results, problems)...)
	}
	all := trees
	if i.namespace != "" {
		trees, problems = inNamespace(slices.Clone(trees), problems, i.namespace)
	}
	if len(trees) == 0 {
		problems = append(problems, emptyProblems(backup, file, i.namespace, all)...)
	}
	r.Assemble(trees, slices.Concat(problems, diagnosis.Defects(diagnosis.Backup, objects.RanOn()), i.defectsAgainst(ctx)))
	if err := i.print(r, i.out); err != nil {
		return err
	}

	return exitFor(r.Failing(i.strict))
}

// defectsAgainst returns the known defects of the Crossplane version in the target cluster; none if
// the version is not known.
func (i *inspect) defectsAgainst(ctx context.Context) []report.Problem {
	if !i.against {
		return nil
	}
	cluster, err := i.cluster()
	if err != nil {
		return nil
	}
	found, err := cluster.Installation(ctx)
	if err != nil {
		return nil
	}

	return diagnosis.Defects(diagnosis.Cluster, found)
}

// read reads a backup from a file, or from stdin if the name is "-".
func (o *options) read(ctx context.Context, file string) (*archive.Backup, error) {
	from := o.In
	if file == "-" {
		if isTerminal(from) {
			return nil, errors.New("cannot read a backup from the terminal: give a file, or pipe one into stdin")
		}
	} else {
		f, err := os.Open(file) //nolint:gosec // The user names the file.
		if err != nil {
			return nil, reason.BackupUnreadable.Errorf(`cannot read the backup: %w; "velero backup download NAME -o FILE" writes one`, err)
		}
		defer f.Close() //nolint:errcheck // The file is only read.
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, reason.BackupUnreadable.Errorf(`cannot read the backup: %s is a directory; "velero backup download NAME -o FILE" writes the file`, file)
		}
		from = f
	}
	if c, ok := from.(io.Closer); ok {
		// Closing is the only way to interrupt a read from an idle pipe.
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	}
	backup, err := archive.Read(ctx, from, archive.Default())
	if err != nil {
		err = cmp.Or(ctx.Err(), err)
		code := cmp.Or(messageOf(err).Code, reason.BackupUnreadable)

		return nil, code.Errorf("cannot read the backup %s: %w", source(file), err)
	}

	return backup, nil
}
