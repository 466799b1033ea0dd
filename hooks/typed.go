package hooks

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// kubectlPrefix begins the names of programs that kubectl runs as its plugins. In the rest of such a
// name, "-" separates words and "_" stands for "-" (kubernetes.io, Extend kubectl with plugins).
const kubectlPrefix = "kubectl-"

// typedAs returns what a user types to run a program: "kubectl crossplane-restore" if the program
// is kubectl-crossplane_restore, and otherwise Name.
func typedAs(program string) string {
	// A Windows path has backslashes on all systems.
	base := strings.TrimSuffix(filepath.Base(strings.ReplaceAll(program, `\`, "/")), ".exe")
	plugin, ok := strings.CutPrefix(base, kubectlPrefix)
	if !ok || plugin == "" {
		return Name
	}

	return "kubectl " + strings.NewReplacer("-", " ", "_", "-").Replace(plugin)
}

// WithProgram sets the path by which the program was started. Started as a plugin of kubectl, it
// says so in help and messages.
func WithProgram(path string) Option { return func(o *options) { o.typed = typedAs(path) } }

// A typed stream replaces Name by what the user types, in commands: Name before the name of a
// subcommand. Messages come from many places, also from objects in the cluster, so the stream is
// the one place that all of them pass.
type typed struct {
	to       io.Writer
	name     string
	commands *regexp.Regexp
	// last is the last byte before rest, or none. rest is held back, since more of it may follow.
	last, rest []byte
}

// unfinished matches text that ends in Name, or in Name and the beginning of a subcommand.
var unfinished = regexp.MustCompile(regexp.QuoteMeta(Name) + `\s*[a-z-]*$`)

// newTyped returns the stream for the subcommands of root.
func newTyped(to io.Writer, name string, root *cobra.Command) *typed {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, regexp.QuoteMeta(c.Name()))
	}
	// A slash before it makes it a path, such as that of the program in Velero's Pod.
	commands := regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(Name) + `(\s+(?:` + strings.Join(names, "|") + `)\b)`)

	return &typed{to: to, name: name, commands: commands}
}

// Write writes all that can be decided.
func (t *typed) Write(b []byte) (int, error) {
	text := append(slices.Clone(t.rest), b...)
	end := len(text)
	if at := unfinished.FindIndex(text); at != nil {
		end = at[0]
	} else {
		end -= beginning(text)
	}
	t.rest = slices.Clone(text[end:])
	if err := t.write(text[:end]); err != nil {
		return 0, err
	}

	return len(b), nil
}

// beginning returns how many bytes at the end of a text are the beginning of Name.
func beginning(text []byte) int {
	for n := min(len(text), len(Name)-1); n > 0; n-- {
		if string(text[len(text)-n:]) == Name[:n] {
			return n
		}
	}

	return 0
}

// flush writes the rest.
func (t *typed) flush() error {
	text := t.rest
	t.rest = nil

	return t.write(text)
}

func (t *typed) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	said := t.commands.ReplaceAll(append(slices.Clone(t.last), text...), []byte("${1}"+t.name+"${2}"))
	if _, err := t.to.Write(said[len(t.last):]); err != nil {
		return err //nolint:wrapcheck // The writer's own error.
	}
	t.last = slices.Clone(text[len(text)-1:])

	return nil
}

// sayAsTyped lets all output name the commands as the user types them. The function that it returns
// ends that.
func (o *options) sayAsTyped(root *cobra.Command) (end func()) {
	if o.typed == Name {
		return func() {}
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: o.typed}
	out, err := newTyped(rawWriter(o.Out), o.typed, root), newTyped(rawWriter(o.Err), o.typed, root)
	o.Out, o.Err = messages{out}, messages{err}
	root.SetOut(out)
	root.SetErr(err)

	return func() { _, _ = out.flush(), err.flush() }
}

// kubectlCompletion is what a program needs by which kubectl completes the command line of its plugin.
const kubectlCompletion = `Completion prints a script by which kubectl (1.26 or newer) completes the words that follow %[1]q in any shell, once kubectl's own
completion is set up. Make it a program with the name %[2]s in a folder of the PATH.`

// newKubectlCompletion returns the command completion of a plugin of kubectl.
func newKubectlCompletion(name string) *cobra.Command {
	file := "kubectl_complete-" + strings.NewReplacer(" ", "-", "-", "_").Replace(strings.TrimPrefix(name, "kubectl "))

	return &cobra.Command{
		Use:     "completion",
		Short:   "Print a script for completion by kubectl",
		Long:    fmt.Sprintf(kubectlCompletion, name, file),
		Example: "  " + name + " completion > " + file + " && chmod +x " + file + " && sudo mv " + file + " /usr/local/bin",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "#!/bin/sh\nexec %s __complete \"$@\"\n", name)

			return err //nolint:wrapcheck // The writer's own error.
		},
	}
}
