package hooks

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// messages writes each Write as one line and strips control characters. Text from objects and
// backups is untrusted: it must not move the cursor or start a line of its own.
type messages struct{ to io.Writer }

// Write writes one message.
func (m messages) Write(b []byte) (int, error) {
	text, ended := strings.CutSuffix(string(b), "\n")
	text = reason.Clean(text)
	if ended {
		text += "\n"
	}
	if _, err := m.to.Write([]byte(text)); err != nil {
		return 0, err //nolint:wrapcheck // The writer's own error.
	}

	return len(b), nil
}

// rawWriter returns the underlying stream, for text that is clean already and has colours or
// redraws lines.
func rawWriter(w io.Writer) io.Writer {
	if m, ok := w.(messages); ok {
		return m.to
	}

	return w
}

// typedAs returns what a user types to run a program: "kubectl crossplane-restore" if the program
// is kubectl-crossplane_restore, and otherwise Name. In the name of a plugin of kubectl, "-"
// separates words and "_" stands for "-" (kubernetes.io, Extend kubectl with plugins).
func typedAs(program string) string {
	// A Windows path has backslashes on all systems.
	base := strings.TrimSuffix(filepath.Base(strings.ReplaceAll(program, `\`, "/")), ".exe")
	plugin, ok := strings.CutPrefix(base, "kubectl-")
	if !ok || plugin == "" {
		return Name
	}

	return "kubectl " + strings.NewReplacer("-", " ", "_", "-").Replace(plugin)
}

// A typed stream replaces Name by what the user types, in commands: Name before the name of a
// subcommand. Messages come from many places, also from objects in the cluster, so the stream is
// the one place that all of them pass. No command is written in two parts.
type typed struct {
	to       io.Writer
	name     string
	commands *regexp.Regexp
}

// newTyped returns the stream for the subcommands of root.
func newTyped(to io.Writer, name string, root *cobra.Command) typed {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, regexp.QuoteMeta(c.Name()))
	}
	// A slash before it makes it a path, such as that of the program in Velero's Pod.
	commands := regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(Name) + `(\s+(?:` + strings.Join(names, "|") + `)\b)`)

	return typed{to: to, name: name, commands: commands}
}

func (t typed) Write(b []byte) (int, error) {
	if _, err := t.to.Write(t.commands.ReplaceAll(b, []byte("${1}"+t.name+"${2}"))); err != nil {
		return 0, err //nolint:wrapcheck // The writer's own error.
	}

	return len(b), nil
}

// sayAsTyped lets all output of a plugin of kubectl name the commands as the user types them. Its
// completion is another one, because a shell completes kubectl.
func (o *options) sayAsTyped(root *cobra.Command) {
	name := typedAs(o.Path)
	if name == Name {
		return
	}
	root.AddCommand(newKubectlCompletion(name))
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	out, err := newTyped(rawWriter(o.Out), name, root), newTyped(rawWriter(o.Err), name, root)
	o.Out, o.Err = messages{out}, messages{err}
	root.SetOut(out)
	root.SetErr(err)
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
