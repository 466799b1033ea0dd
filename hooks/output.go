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
func (out *output) addTo(c *cobra.Command, formats ...string) error {
	out.format, out.formats = printer.Table, formats
	if len(formats) == 0 {
		out.formats = printer.Formats()
	}
	c.Flags().VarP(out, "output", "o", "one of "+strings.Join(out.formats, ", "))

	return c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(out.formats, cobra.ShellCompDirectiveNoFileComp)) //nolint:wrapcheck // Ours.
}

// addOptionalTo adds the flag --output to a command that prints a report only with it.
func (out *output) addOptionalTo(c *cobra.Command, what string) {
	_ = out.addTo(c) // It fails only if the flag is there already.
	out.format = ""
	f := c.Flags().Lookup("output")
	f.DefValue, f.Usage = "", what+", as "+f.Usage
}

// dataFormats are the formats of what is no report.
func dataFormats() []string {
	return []string{string(printer.Table), string(printer.JSON), string(printer.YAML)}
}

// resultFormats are the formats of what a command has done with objects.
func resultFormats() []string {
	return []string{string(printer.Table), string(printer.Wide), string(printer.JSON), string(printer.YAML), string(printer.Name)}
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

	return printer.Print(rawWriter(o.Out), r, out.format, printer.Options{Width: width, Colour: terminal && isColourful()})
}

// printData prints what is no report, as a table or, for a program, as JSON or YAML.
func (o *options) printData(what string, data interface{ table() []byte }, f printer.Format) error {
	b, err := data.table(), error(nil)
	if f != printer.Table {
		b, err = printer.Encode(data, f)
	}
	if err == nil {
		_, err = rawWriter(o.Out).Write(b)
	}
	if err != nil {
		return fmt.Errorf("cannot print %s as %s: %w", what, f, err)
	}

	return nil
}

// hasProblem reports whether an object in a tree has a problem or a warning.
func hasProblem(n *report.Node) bool {
	return n != nil && (len(n.Problems) > 0 || slices.ContainsFunc(n.Children, hasProblem))
}

// isColourful reports whether the environment allows colours on a terminal (no-color.org).
func isColourful() bool {
	return os.Getenv("NO_COLOR") == "" && !isDumb()
}

// isDumb reports whether the terminal shows text only.
func isDumb() bool { return os.Getenv("TERM") == "dumb" }

// widthOf returns the columns of the terminal that w writes to. ok is false if w is no terminal;
// width is 0 if it is not known.
func widthOf(w io.Writer) (width int, ok bool) {
	w = rawWriter(w)
	if t, ok := w.(*typed); ok {
		w = t.to
	}
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, true
	}

	return width, true
}
