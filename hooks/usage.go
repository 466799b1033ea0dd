package hooks

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// knownCommand fails on an unknown command and suggests similar ones. It takes no other arguments.
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

// newHelp returns the command help, which fails on an unknown command.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if of, _, err := c.Root().Find(args); err == nil {
				for _, sub := range of.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, sub.Name()+"\t"+sub.Short)
					}
				}
			}

			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			if err != nil {
				return err //nolint:wrapcheck // The error is complete.
			}
			if err := knownCommand(of, rest); err != nil {
				return err
			}
			of.InitDefaultHelpFlag()

			return of.Help()
		},
	}
}

// addCompletion adds cobra's command completion, which fails on an unknown shell here. A plugin of
// kubectl has another one, because a shell completes kubectl.
func addCompletion(root *cobra.Command, typed string) {
	if typed != Name {
		root.AddCommand(newKubectlCompletion(typed))

		return
	}
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Args, c.RunE = knownCommand, func(c *cobra.Command, _ []string) error { return c.Help() }
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
