package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Name is the program's name.
const Name = xp.Program

// defaultVelero is Velero's usual namespace.
const defaultVelero = "velero"

// Streams are a command's input and outputs. Results go to Out, progress and errors to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// System returns the Streams of the process.
func System() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// options are the flags that all commands share.
type options struct {
	Streams

	kubeconfig, context, namespace, velero string
	// all is set if the user names all namespaces.
	all bool

	dryRunner DryRunner
	version   string
	// typed is what the user types to run the program.
	typed string
}

// An Option passes in what this package must not import.
type Option func(*options)

// WithDryRunner sets what inspect uses to compute the effect of a restore.
func WithDryRunner(r DryRunner) Option { return func(o *options) { o.dryRunner = r } }

// WithVersion sets the output of --version.
func WithVersion(v string) Option { return func(o *options) { o.version = v } }

// Run runs the command that the arguments name and returns its exit code.
func Run(ctx context.Context, args []string, s Streams, with ...Option) int {
	klog.SetLogger(logr.Discard()) // client-go also logs the errors that it returns, with a time and a line of its source.
	o := newOptions(s)
	for _, option := range with {
		option(o)
	}
	root := newRoot(o) //nolint:contextcheck // Cobra passes the context to each command.
	addCompletion(root, o.typed)
	defer o.sayAsTyped(root)()
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	err = withRights(c.Name(), err)
	o.printError(err)
	if codeOf(err) == ExitUsage {
		if c.Name() == "help" {
			c = root
		}
		fmt.Fprintf(o.Err, "See %q.\n", c.CommandPath()+" --help")
	}

	return codeOf(err)
}

// printError prints why a command failed and its code, unless its output shows that already.
func (o *options) printError(err error) {
	var e *exit
	switch {
	case err == nil, errors.As(err, &e) && e.err == nil:
	case errors.As(err, &e):
		fmt.Fprintln(o.Err, "Error:", messageOf(e.err))
		for _, line := range e.list {
			fmt.Fprintln(o.Err, "  "+line)
		}
	default:
		fmt.Fprintln(o.Err, "Error:", messageOf(err))
	}
}

// messageOf returns the message of an error. An error of the API server without a code gets the one
// for missing rights, or for a timeout.
func messageOf(err error) reason.Message {
	m := reason.ErrorMessage(err)
	switch {
	case m.Code != "":
	case apierrors.IsForbidden(err):
		m.Code = reason.RightMissing
	case errors.Is(err, context.DeadlineExceeded):
		m.Code = reason.TimedOut
	case errors.Is(err, context.Canceled):
		m.Code = reason.Interrupted
	}

	return m
}

func newRoot(o *options) *cobra.Command {
	root := &cobra.Command{
		Use:   Name,
		Short: "Inspect backups of Crossplane, validate restores, and finish them",
		Long: `Velero starts this program as a plugin. On the command line it inspects backups, validates a cluster after a restore, waits until restored objects
are adopted, holds live objects, lifts holds, and prints the settings in effect. In its image it installs itself for Velero.

Results go to stdout, progress and errors to stderr. A message ends with a code: the command explain prints what it means and what to do.
Exit codes: 0 no problem, 1 the command failed, 2 wrong usage, 3 problems, 4 timeout.`,
		Version:       cmp.Or(o.version, "of unknown version"),
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
	flags.StringVar(&o.velero, "velero-namespace", cmp.Or(os.Getenv("VELERO_NAMESPACE"), defaultVelero), "namespace of Velero; VELERO_NAMESPACE sets the default")
	root.AddCommand(newInspect(o))
	root.AddCommand(newValidate(o), newRelease(o), newWait(o), newSettings(o), newExplain(o), newHold(o))
	root.AddCommand(newInstall(o), newVersion(root))
	root.SetHelpCommand(newHelp())
	for _, c := range root.Commands() {
		if c.Flags().Lookup("restore") != nil {
			_ = c.RegisterFlagCompletionFunc("restore", o.completeRestore)
		}
	}
	_ = root.RegisterFlagCompletionFunc("context", o.completeContext) // It fails only without the flag.

	return root
}

// cluster connects to the cluster that the flags name.
func (o *options) cluster() (*live.Cluster, error) {
	c, err := live.Connect(o.kubeconfig, o.context)
	if err != nil {
		return nil, reason.NoCluster.Errorf("%w", err)
	}

	return c.FailFast(), nil
}

// inCluster runs a command in the cluster that the flags name. The command has begun then, so none
// of its errors is a usage error.
func (o *options) inCluster(c *cobra.Command, run func(ctx context.Context, cluster *live.Cluster) error) error {
	cluster, err := o.cluster()
	if err == nil {
		err = run(c.Context(), cluster)
	}

	return failed(err)
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
