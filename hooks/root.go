// Package hooks holds the commands of the program, such as inspect, validate, wait and release,
// which users, Jobs and Velero's restore hooks run. Only main imports it. It must not import the
// plugin's actions: main passes in what needs them (Program). Start reading in root.go; each command
// has a file of its name.
package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Name is the program's name.
const Name = xp.Program

// A Program is what main knows: the streams, and what this package must not import. Results go to
// Out, progress and errors to Err.
type Program struct {
	In       io.Reader
	Out, Err io.Writer
	// DryRunner computes the effect of a restore for inspect.
	DryRunner DryRunner
	// Version is the output of --version.
	Version string
	// Path is by which the program was started. Started as a plugin of kubectl, it says so in help
	// and messages.
	Path string
}

// options are the flags that all commands share.
type options struct {
	Program

	kubeconfig, context, namespace, velero string
	// all is set if the user names all namespaces.
	all bool
}

// newOptions returns options whose output streams are messages.
func newOptions(p Program) *options {
	p.Out, p.Err = messages{p.Out}, messages{p.Err}

	return &options{Program: p}
}

// Run runs the command that the arguments name and returns its exit code.
func Run(ctx context.Context, args []string, p Program) int {
	klog.SetLogger(logr.Discard()) // client-go also logs the errors that it returns, with a time and a line of its source.
	o := newOptions(p)
	root := newRoot(o) //nolint:contextcheck // Cobra passes the context to each command.
	o.sayAsTyped(root)
	refuseUnknown(root)
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	o.printError(err)
	if codeOf(err) == ExitUsage {
		fmt.Fprintf(o.Err, "See %q.\n", c.CommandPath()+" --help")
	}

	return codeOf(err)
}

// printError prints why a command failed and its code, unless its output shows that already.
func (o *options) printError(err error) {
	e := &exit{err: err}
	errors.As(err, &e)
	if e.err == nil {
		return
	}
	fmt.Fprintln(o.Err, "Error:", messageOf(e.err))
	for _, line := range e.list {
		fmt.Fprintln(o.Err, "  "+line)
	}
}

func newRoot(o *options) *cobra.Command {
	root := &cobra.Command{
		Use:   Name,
		Short: "Inspect backups of Crossplane, validate restores, and finish them",
		Long: `Velero starts this program as a plugin. On the command line it inspects backups, validates a cluster after a restore, waits until restored objects
are adopted, holds live objects, lifts holds, and prints the settings in effect. In its image it installs itself for Velero.

Results go to stdout, progress and errors to stderr. A message ends with a code: the command explain prints what it means and what to do.
Exit codes: 0 no problem, 1 the command failed, 2 wrong usage, 3 problems, 4 timeout.`,
		Version:       cmp.Or(o.Version, "of unknown version"),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			return c.Help()
		},
		Args: knownCommand,
	}
	root.SetIn(o.In)
	root.SetOut(rawWriter(o.Out)) // Cobra writes help and scripts, nothing from a cluster.
	root.SetErr(rawWriter(o.Err))
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version and what it was built from")
	flags := root.PersistentFlags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: KUBECONFIG, ~/.kube/config, or the Pod's ServiceAccount)")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig file")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "only objects in this namespace")
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "objects in all namespaces, as without --namespace")
	root.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	flags.StringVar(&o.velero, "velero-namespace", cmp.Or(os.Getenv("VELERO_NAMESPACE"), "velero"), "namespace of Velero; VELERO_NAMESPACE sets the default")
	root.AddCommand(newInspect(o), newValidate(o), newRelease(o), newWait(o), newSettings(o), newExplain(o), newHold(o), newInstall(o), newVersion(root))
	for _, c := range root.Commands() {
		if c.Flags().Lookup("restore") != nil {
			_ = c.RegisterFlagCompletionFunc("restore", o.completeRestore)
		}
	}
	_ = root.RegisterFlagCompletionFunc("context", o.completeContext) // It fails only without the flag.

	return root
}

// knownCommand fails on an unknown command and suggests similar ones.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2
	like := c.SuggestionsFor(args[0])
	if len(like) == 0 {
		return fmt.Errorf("unknown command %q", args[0])
	}

	return fmt.Errorf("unknown command %q; did you mean %s?", args[0], strings.Join(like, " or "))
}

// refuseUnknown makes cobra's commands help and completion fail on a command or shell that they do not
// know.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch {
		case c.Name() == "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				of, rest, err := root.Find(args)
				if err != nil {
					return err //nolint:wrapcheck // The error is complete.
				}

				return knownCommand(of, rest)
			}
		case !c.Runnable():
			c.Args, c.RunE = knownCommand, root.RunE
		}
	}
}

// newVersion returns the command version, the same as the root's flag --version.
func newVersion(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and what it was built from",
		Long:    `Version prints the version of this program, its commit, its version of Go and its platform. The flag --version does the same.`,
		Example: `  ` + Name + ` version`,
		Args:    cobra.NoArgs,
		Run:     func(*cobra.Command, []string) { fmt.Fprintln(root.OutOrStdout(), Name, root.Version) },
	}
}

// cluster connects to the cluster that the flags name.
func (o *options) cluster() (*cluster.Cluster, error) {
	c, err := cluster.Connect(o.kubeconfig, o.context)
	if err != nil {
		return nil, reason.NoCluster.Errorf("%w", err)
	}

	return c.FailFast(), nil
}

// inCluster runs a command in the cluster that the flags name. The command has begun then, so none
// of its errors is a usage error.
func (o *options) inCluster(c *cobra.Command, run func(ctx context.Context, cluster *cluster.Cluster) error) error {
	cluster, err := o.cluster()
	if err == nil {
		err = run(c.Context(), cluster)
	}

	return failed(withRights(c.Name(), err))
}

// sleep waits for a while. It returns the context's error if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// completionTimeout limits a completion that reads the cluster: the user's shell waits for it.
const completionTimeout = 5 * time.Second

// completeContext returns the contexts of the kubeconfig.
func (o *options) completeContext(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names, _ := cluster.Contexts(o.kubeconfig) // What can't be read is not completed.

	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeRestore returns the names of the Restores in Velero's namespace.
func (o *options) completeRestore(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	var names []string
	if from, err := o.cluster(); err == nil {
		_ = from.Each(ctx, cluster.KindRestore, o.velero, metav1.ListOptions{}, func(u *unstructured.Unstructured) { names = append(names, u.GetName()) })
	}

	return names, cobra.ShellCompDirectiveNoFileComp
}
