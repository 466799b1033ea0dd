// Command stack runs the real stack on this machine for manual use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

const usage = `Usage:
  stack up [flags]     start clusters in the background and wait until they are ready
  stack plugin [flags] [FILE]
                       give Velero the plugin as it is in this repository, or FILE, and restart Velero
  stack down [flags]   destroy them and all they had
  stack build [NAME…]  build the programs that are not in the cache

Flags of up, plugin and down:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "stack:", err)
		}
		os.Exit(1) //nolint:gocritic // The signal handler needs no cleanup when the process ends.
	}
}

// settings are the values of the flags.
type settings struct {
	name       string
	clusters   string
	crossplane string
	plugin     bool
	foreground bool
}

func run(ctx context.Context, args []string) error {
	var s settings
	flags := flag.NewFlagSet("stack", flag.ContinueOnError)
	flags.StringVar(&s.name, "name", "default", "name of the stack; each has an S3 server and a cloud of its own")
	flags.StringVar(&s.clusters, "clusters", "source", "names of the clusters, with commas between them")
	flags.StringVar(&s.crossplane, "crossplane", "v2", "version of Crossplane: v2, v2.0, v2.4, v1.20 or none")
	flags.BoolVar(&s.plugin, "plugin", true, "give Velero the plugin of this repository")
	flags.BoolVar(&s.foreground, "foreground", false, "stay in the foreground; the stack ends with the command")
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if len(args) == 0 {
		flags.Usage()

		return flag.ErrHelp
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	dir, err := stateDir(s.name)
	if err != nil {
		return err
	}
	command := args[0]
	if surplus := flags.NArg() - map[string]int{"plugin": 1}[command]; command != "build" && surplus > 0 {
		return fmt.Errorf("cannot understand %q", flags.Arg(flags.NArg()-surplus))
	}
	switch command {
	case "up":
		if _, err := s.options(); err != nil {
			return err
		}
		if s.foreground {
			return foreground(ctx, dir, s)
		}

		return background(ctx, dir, args)
	case "plugin":
		return exchange(ctx, dir, s.name, flags.Arg(0))
	case "down":
		return down(ctx, dir, s.name)
	case "build":
		_, err := build.Ensure(ctx, os.Stderr, flags.Args()...)

		return err
	default:
		flags.Usage()

		return fmt.Errorf("cannot understand command %q", command)
	}
}

func (s settings) options() ([]stack.Options, error) {
	versions := map[string]stack.Version{
		"v2": stack.V2, "v1": stack.V1, "v1.20": stack.V1, "v2.0": stack.V20, "v2.1": stack.V21, "v2.2": stack.V22, "v2.4": stack.V24, "none": stack.None,
	}
	version, ok := versions[s.crossplane]
	if !ok {
		return nil, fmt.Errorf("cannot run Crossplane %q: choose v2, v2.0, v2.1, v2.2, v2.4, v1.20 or none", s.crossplane)
	}
	var all []stack.Options
	for name := range strings.SplitSeq(s.clusters, ",") {
		all = append(all, stack.Options{Name: name, Crossplane: version, Plugin: s.plugin})
	}

	return all, nil
}
