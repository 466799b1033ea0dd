package hooks

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// An output is how a command shows its report.
type output struct {
	format printer.Format
	// formats are those that there are.
	formats []string
	// problemsOnly leaves out trees in which nothing is wrong.
	problemsOnly bool
}

// String, Set and Type make it a flag.
func (out *output) String() string { return string(out.format) }

// Set takes the name of a format. It fails with those that there are.
func (out *output) Set(name string) error {
	format := strings.ToLower(name)
	if !slices.Contains(out.formats, format) {
		return fmt.Errorf("unknown output format; use one of %s", strings.Join(out.formats, ", "))
	}
	out.format = printer.Format(format)

	return nil
}

// Type says what the flag takes.
func (*output) Type() string { return "format" }

// addTo gives a command the flag --output, for all formats unless it names its own.
func (out *output) addTo(c *cobra.Command, formats ...string) error {
	out.format, out.formats = printer.Table, formats
	if len(formats) == 0 {
		out.formats = printer.Formats()
	}
	c.Flags().VarP(out, "output", "o", "one of "+strings.Join(out.formats, ", "))

	return c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(out.formats, cobra.ShellCompDirectiveNoFileComp)) //nolint:wrapcheck // Ours.
}

// addProblemsOnlyTo gives a command the flag --problems-only.
func (out *output) addProblemsOnlyTo(c *cobra.Command) {
	c.Flags().BoolVar(&out.problemsOnly, "problems-only", false, "leave out the trees in which nothing is wrong; what is counted stays the same")
}

// print shows a report on stdout.
func (o *options) print(r *report.Report, out output) error {
	if out.problemsOnly {
		fewer := *r
		fewer.Trees = slices.DeleteFunc(slices.Clone(r.Trees), func(n *report.Node) bool { return !hasProblem(n) })
		r = &fewer
	}
	width, terminal := widthOf(o.Out)

	return printer.Print(rawWriter(o.Out), r, out.format, printer.Options{Width: width, Colour: terminal && isColourful()})
}

// hasProblem reports whether anything in a tree has a problem or a warning.
func hasProblem(n *report.Node) bool {
	return n != nil && (len(n.Problems) > 0 || slices.ContainsFunc(n.Children, hasProblem))
}

// isColourful reports whether the user's environment allows colours on a terminal (no-color.org).
func isColourful() bool {
	return os.Getenv("NO_COLOR") == "" && !isDumb()
}

// isDumb reports whether the terminal shows nothing but text.
func isDumb() bool { return os.Getenv("TERM") == "dumb" }

// widthOf returns how many columns the terminal has that a stream writes to; ok is false if it
// writes to none.
func widthOf(w io.Writer) (width int, ok bool) {
	f, isFile := rawWriter(w).(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, true
	}

	return width, true
}
