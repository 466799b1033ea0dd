package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/cmd/util/flag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
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

func newInspect(o *options) *cobra.Command {
	i := &inspect{options: o, mappings: flag.NewMap().WithEntryDelimiter(',').WithKeyValueDelimiter(':')}
	c := &cobra.Command{
		Use:     "inspect BACKUP",
		Short:   "Print what is in a backup, and the problems of a restore",
		Long:    inspectLong,
		Example: inspectExample,
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"tar.gz", "tgz"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(c *cobra.Command, args []string) error {
			if !i.against && (i.manifest != "" || len(i.mappings.Data()) > 0) {
				return errors.New("cannot use --restore or --namespace-mappings without --against")
			}

			return failed(withRights(c.Name(), i.run(c.Context(), args[0])))
		},
	}
	c.Flags().BoolVar(&i.strict, "strict", false, "also fail for warnings")
	c.Flags().BoolVar(&i.against, "against", false, "print what a restore into the current cluster would do; it writes nothing")
	c.Flags().Var(&i.mappings, "namespace-mappings", "those of the restore, as from:to,from:to; only with --against")
	c.Flags().StringVar(&i.manifest, "restore", "", "file with the Restore to make, whose filters and annotations apply; only with --against")
	_ = c.MarkFlagFilename("restore", "yaml", "yml", "json") // It fails only without the flag.
	i.out.addTreesTo(c)
	i.out.addTo(c)

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
	var cluster *cluster.Cluster
	if i.against {
		if cluster, err = i.cluster(); err != nil {
			return err
		}
	}
	r := &report.Report{Kind: report.KindInspection, Source: source(file), Time: time.Now().UTC()}
	// The dry run comes first, so that its memory is free before objectsOf builds the trees.
	results, err := i.dryRun(ctx, backup, cluster, r)
	if err != nil {
		return err
	}
	objects := objectsOf(backup)
	r.Versions = append([]report.Version{{Name: "backup format", Version: cmp.Or(backup.Format, "unknown")}}, objects.Versions()...)
	trees, problems := objects.Trees(), append(diagnosis.Inspect(objects), formatOf(backup, file)...)
	if r.DryRun != nil {
		problems = applyResults(r.DryRun, trees, results, problems)
	}
	all := trees
	if i.namespace != "" {
		trees, problems = inNamespace(slices.Clone(trees), problems, i.namespace)
	}
	if len(trees) == 0 {
		problems = append(problems, emptyProblems(backup, file, i.namespace, all)...)
	}
	problems = append(problems, diagnosis.Defects(diagnosis.Backup, objects.RanOn(), false)...)
	if i.against {
		problems = append(problems, i.platformOf(ctx, cluster, results)...)
	}
	r.Assemble(trees, problems)
	if err := i.print(r, i.out); err != nil {
		return err
	}

	return exitFor(r.Failing(i.strict))
}

// platformOf returns the known defects of the Crossplane version in the target cluster, and a
// warning if its Velero does not run this plugin; none of what can't be read.
func (i *inspect) platformOf(ctx context.Context, cluster *cluster.Cluster, results []report.ItemResult) []report.Problem {
	problems := i.pluginMissing(ctx, cluster)
	found, err := cluster.Installation(ctx)
	if err != nil {
		return problems
	}
	unserved := slices.ContainsFunc(results, func(r report.ItemResult) bool { return r.Outcome.Code == reason.KindNotServed })

	return append(problems, diagnosis.Defects(diagnosis.Cluster, found, unserved)...)
}

// prepare sets the Restore of the dry run.
func (i *inspect) prepare() error {
	i.restore = &velerov1.Restore{}
	if i.manifest != "" {
		if err := i.readManifest(); err != nil {
			return err
		}
	}
	// A Restore of the file can have generateName.
	i.restore.Namespace, i.restore.Name = i.velero, cmp.Or(i.restore.Name, "rehearsal")
	if len(i.mappings.Data()) > 0 {
		if i.restore.Spec.NamespaceMapping == nil {
			i.restore.Spec.NamespaceMapping = map[string]string{}
		}
		maps.Copy(i.restore.Spec.NamespaceMapping, i.mappings.Data())
	}

	return nil
}

// readManifest reads the Restore. It refuses fields that the Restore of this Velero version does not
// have: a misspelled filter would select everything.
func (i *inspect) readManifest() error {
	b, err := os.ReadFile(i.manifest)
	if err != nil {
		return fmt.Errorf("cannot read the Restore: %w", err)
	}
	fields := map[string]any{}
	if err := yaml.UnmarshalStrict(b, &fields); err != nil {
		return fmt.Errorf("cannot read the Restore in %s: %w", i.manifest, err)
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, i.restore, true)
	if i.restore.GroupVersionKind().GroupKind() != cluster.KindRestore.GroupKind() {
		err = errors.New("it is no Restore of velero.io")
	}
	if err != nil {
		return fmt.Errorf("cannot use the Restore in %s: %w", i.manifest, err)
	}

	return nil
}

// read reads a backup from a file, or from stdin if the name is "-".
func (o *options) read(ctx context.Context, file string) (*archive.Backup, error) {
	from := o.In
	if file != "-" {
		f, err := os.Open(file) //nolint:gosec // The user names the file.
		if err != nil {
			return nil, reason.BackupUnreadable.Errorf(`cannot read the backup: %w; "velero backup download NAME -o FILE" writes one`, err)
		}
		defer f.Close() //nolint:errcheck // The file is only read.
		from = f
	} else if isTerminal(from) {
		return nil, errors.New("cannot read a backup from the terminal: give a file, or pipe one into stdin")
	}
	if c, ok := from.(io.Closer); ok {
		// Closing is the only way to interrupt a read from an idle pipe.
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	}
	backup, err := archive.Read(ctx, from, archive.Default())
	if err != nil {
		err = cmp.Or(ctx.Err(), err)

		return nil, cmp.Or(messageOf(err).Code, reason.BackupUnreadable).Errorf("cannot read the backup %s: %w", source(file), err)
	}

	return backup, nil
}

// source returns the display name of a backup file.
func source(file string) string {
	if file == "-" {
		return "stdin"
	}

	return filepath.Base(file)
}

// objectsOf returns the objects in a backup. Files that cannot be read are recorded as malformed.
func objectsOf(b *archive.Backup) *diagnosis.Objects {
	o := diagnosis.NewObjects()
	for n := range b.Items {
		o.AddFrom(&b.Items[n])
	}
	kinds := kindsOf(b, o)
	for _, f := range b.Flaws {
		r := xp.Ref{Kind: "File", Name: f.Path}
		if f.Item.Name != "" {
			gvk, ok := kinds[f.Item.GroupResource]
			if !ok {
				gvk = schema.GroupVersionKind{Group: f.Item.Group, Version: b.Versions[f.Item.GroupResource], Kind: f.Item.GroupResource.String()}
			}
			r = xp.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: f.Item.Namespace, Name: f.Item.Name}
		}
		severity, next := report.Error, "a restore can't restore it; back up again, or download the backup again if you lost the source cluster"
		if f.Ignored {
			severity, next = report.Warning, "Velero ignores it; if you did not add it, find out who did"
		}
		o.AddMalformed(r, severity, "the file "+f.Path+" can't be used: "+f.Why, next)
	}

	return o
}

// kindsOf returns the kinds of the resources in a backup, as far as they are known. A resource
// without a readable item can lack a kind.
func kindsOf(b *archive.Backup, o *diagnosis.Objects) map[schema.GroupResource]schema.GroupVersionKind {
	kinds := map[schema.GroupResource]schema.GroupVersionKind{}
	for _, gvk := range o.Composed() {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		kinds[plural.GroupResource()] = gvk
	}
	for _, i := range b.Items {
		kinds[i.GroupResource] = i.Ref().GroupVersionKind()
	}

	return kinds
}

// knownFormat is the major version of the backup layout that this plugin reads (velero
// pkg/backup/backup.go, BackupFormatVersion).
const knownFormat = 1

// formatOf returns a warning if the backup's format is not the known one.
func formatOf(b *archive.Backup, file string) []report.Problem {
	major, _, _ := strings.Cut(b.Format, ".")
	if n, err := strconv.Atoi(major); err == nil && n == knownFormat {
		return nil
	}

	return []report.Problem{{
		Code: reason.FormatUnknown, Severity: report.Warning, Object: xp.Ref{Kind: "Backup", Name: source(file)},
		Reason: fmt.Sprintf("its format is %q, and this program knows %d", b.Format, knownFormat),
		Next:   "this report can be wrong; use a newer version of this program, and compare with: velero backup describe",
	}}
}

// emptyProblems returns a problem for a backup without trees, or without trees in the namespace if
// one is given: the name can be wrong, or the file the wrong one. A backup of the platform alone
// has no trees and no problem. all are the trees of all namespaces.
func emptyProblems(b *archive.Backup, file, namespace string, all []*report.Node) []report.Problem {
	p := report.Problem{
		Code: reason.NotFound, Severity: report.Error, Object: xp.Ref{Kind: "Backup", Name: source(file)},
		Reason: "it has no claim, XR, managed resource or XRD",
		Next:   "check the file, and which namespaces and resources the backup includes: velero backup describe",
	}
	switch {
	case namespace != "" && len(all) > 0:
		p.Object = xp.Ref{APIVersion: "v1", Kind: "Namespace", Name: namespace}
		p.Reason, p.Next = "the backup has no claim, XR or managed resource in it", "check the name: without -n the report has all namespaces"
	case slices.ContainsFunc(b.Items, func(i archive.Item) bool { return xp.IsCrossplaneGroup(i.Group) }):
		return nil
	}

	return []report.Problem{p}
}

// inNamespace returns the trees with an object in the namespace. It keeps the problems of objects
// in these trees or in the namespace.
func inNamespace(trees []*report.Node, problems []report.Problem, namespace string) ([]*report.Node, []report.Problem) {
	mine := sets.New[xp.ID]()
	trees = slices.DeleteFunc(trees, func(root *report.Node) bool {
		all := slices.Collect(report.All(root))
		if !slices.ContainsFunc(all, func(n *report.Node) bool { return n.Namespace == namespace }) {
			return true
		}
		for _, n := range all {
			mine.Insert(n.ID())
		}

		return false
	})
	problems = slices.DeleteFunc(problems, func(p report.Problem) bool { return p.Object.Namespace != namespace && !mine.Has(p.Object.ID()) })

	return trees, problems
}
