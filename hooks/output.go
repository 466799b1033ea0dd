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

// An output is how a command prints its report.
type output struct {
	format printer.Format
	// formats are the allowed ones.
	formats []string
	// problemsOnly leaves out trees without problems.
	problemsOnly bool
}

// String, Set and Type implement pflag.Value.
func (out *output) String() string { return string(out.format) }

// Set sets the format. The error lists the allowed formats.
func (out *output) Set(name string) error {
	format := strings.ToLower(name)
	if !slices.Contains(out.formats, format) {
		return fmt.Errorf("unknown output format; use one of %s", strings.Join(out.formats, ", "))
	}
	out.format = printer.Format(format)

	return nil
}

// Type returns the flag's type for the help text.
func (*output) Type() string { return "format" }

// addTo adds the flag --output. Without formats, all formats are allowed.
func (out *output) addTo(c *cobra.Command, formats ...printer.Format) {
	out.format, out.formats = printer.Table, printer.Formats()
	if len(formats) > 0 {
		out.formats = nil
	}
	for _, f := range formats {
		out.formats = append(out.formats, string(f))
	}
	c.Flags().VarP(out, "output", "o", "one of "+strings.Join(out.formats, ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(out.formats, cobra.ShellCompDirectiveNoFileComp)) // It fails only without the flag.
}

// resultFormats are the formats of what a command has done with objects.
func resultFormats() []printer.Format {
	return []printer.Format{printer.Table, printer.Wide, printer.JSON, printer.YAML, printer.Name}
}

// addTreesTo adds the flag that selects trees.
func (out *output) addTreesTo(c *cobra.Command) {
	c.Flags().BoolVar(&out.problemsOnly, "problems-only", false, "leave out trees without problems; the counts stay the same")
}

func (o *options) print(r *report.Report, out output) error {
	if out.problemsOnly {
		fewer := *r
		fewer.Trees = slices.DeleteFunc(slices.Clone(r.Trees), func(n *report.Node) bool { return !hasProblem(n) })
		r = &fewer
	}
	width, terminal := widthOf(o.Out)
	isColourful := terminal && os.Getenv("NO_COLOR") == "" && !isDumb() // See no-color.org.

	return printer.Print(rawWriter(o.Out), r, out.format, printer.Options{Width: width, Colour: isColourful})
}

// hasProblem reports whether an object in a tree has a problem or a warning.
func hasProblem(n *report.Node) bool {
	return len(n.Problems) > 0 || slices.ContainsFunc(n.Children, hasProblem)
}

// isDumb reports whether the terminal shows text only.
func isDumb() bool { return os.Getenv("TERM") == "dumb" }

// widthOf returns the columns of the terminal that w writes to. ok is false if w is no terminal;
// width is 0 if it is not known.
func widthOf(w io.Writer) (width int, ok bool) {
	w = rawWriter(w)
	if t, ok := w.(typed); ok {
		w = t.to
	}
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, _ = term.GetSize(int(f.Fd()))

	return max(width, 0), true
}
