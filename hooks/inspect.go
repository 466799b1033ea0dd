package hooks

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/cmd/util/flag"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

const inspectLong = `Inspect prints what is in a backup: the trees of claims, XRs and their composed resources, the order in which a restore with this plugin
creates them, and the problems of such a restore. It needs no cluster, and neither keeps nor prints values of Secrets.

With --against it reads the cluster of the current kubeconfig, and prints what a restore would do there with each item: create it, hold it, restore it as a
copy, update it, leave it because it exists, skip it because the control plane creates it again or the Restore does not select it, or refuse it. With
--restore it does what that Restore would do. It writes nothing.

BACKUP is a file from "velero backup download", or - for stdin.`

const inspectExample = `  # What is in a backup, and which problems does it have?
  velero backup download nightly -o nightly.tar.gz
  velero-plugin-for-crossplane inspect nightly.tar.gz

  # What would a restore into the cluster of the current kubeconfig do with each item?
  velero-plugin-for-crossplane inspect nightly.tar.gz --against

  # What would this Restore do?
  velero restore create team-a --from-backup nightly --include-namespaces team-a -o yaml > restore.yaml
  velero-plugin-for-crossplane inspect nightly.tar.gz --against --restore restore.yaml

  # Only the trees of one namespace, for a program
  velero-plugin-for-crossplane inspect nightly.tar.gz -n team-a -o json`

type inspect struct {
	*options

	out      output
	strict   bool
	against  bool
	mappings flag.Map
	// manifest is the file of the Restore.
	manifest string
	restore  *velerov1.Restore
}

func newInspection(o *options) *inspect {
	return &inspect{options: o, mappings: flag.NewMap().WithEntryDelimiter(',').WithKeyValueDelimiter(':')}
}

func newInspect(o *options) *cobra.Command {
	i := newInspection(o)
	c := &cobra.Command{
		Use:     "inspect BACKUP",
		Short:   "Print what is in a backup, and the problems of a restore",
		Long:    inspectLong,
		Example: inspectExample,
		Args:    oneBackup,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"tar.gz", "tgz"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(c *cobra.Command, args []string) error {
			return failed(i.run(c.Context(), args[0]))
		},
	}
	c.Flags().BoolVar(&i.strict, "strict", false, "also fail for warnings")
	c.Flags().BoolVar(&i.against, "against", false, "print what a restore into the current cluster would do; it writes nothing")
	c.Flags().Var(&i.mappings, "namespace-mappings", "those of the restore, as from:to,from:to; only with --against")
	c.Flags().StringVar(&i.manifest, "restore", "", "file with the Restore to make, whose filters and annotations apply; only with --against")
	_ = c.MarkFlagFilename("restore", "yaml", "yml", "json") // It fails only without the flag.
	i.out.addTreesTo(c)
	_ = i.out.addTo(c) // It fails only if the flag is there already.

	return c
}

// gcPercent lowers GOGC, which keeps an inspection of 100,000 objects below 300 MB. It costs little
// time: the collector mostly runs on another processor.
const gcPercent = 40

func (i *inspect) run(ctx context.Context, file string) error {
	if err := i.prepare(); err != nil {
		return err
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
		problems = ofSelected(problems, results)
		problems = append(problems, applyResults(r.DryRun, trees, results, problems)...)
	}
	all := trees
	if i.namespace != "" {
		trees, problems = inNamespace(slices.Clone(trees), problems, i.namespace)
	}
	if len(trees) == 0 {
		problems = append(problems, emptyProblems(backup, file, i.namespace, all)...)
	}
	r.Assemble(trees, slices.Concat(problems, diagnosis.Defects(diagnosis.Backup, objects.RanOn(), false), i.platformAgainst(ctx, results)))
	if err := i.print(r, i.out); err != nil {
		return err
	}

	return exitFor(r.Failing(i.strict))
}

// platformAgainst returns the known defects of the Crossplane version in the target cluster, and a
// warning if its Velero does not run this plugin; none of what can't be read.
func (i *inspect) platformAgainst(ctx context.Context, results []report.ItemResult) []report.Problem {
	if !i.against {
		return nil
	}
	cluster, err := i.cluster()
	if err != nil {
		return nil
	}
	problems := i.pluginMissing(ctx, cluster)
	found, err := cluster.Installation(ctx)
	if err != nil {
		return problems
	}

	unserved := slices.ContainsFunc(results, func(r report.ItemResult) bool { return r.Outcome.Code == reason.KindNotServed })

	return append(problems, diagnosis.Defects(diagnosis.Cluster, found, unserved)...)
}
