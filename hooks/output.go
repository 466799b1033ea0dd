package hooks

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// An output is how a command shows its report.
type output struct {
	format printer.Format
}

// String, Set and Type make it a flag.
func (out *output) String() string { return string(out.format) }

// Set takes the name of a format. It fails with those that there are.
func (out *output) Set(name string) error {
	f, err := printer.Parse(name)
	if err == nil {
		out.format = f
	}

	return err
}

// Type says what the flag takes.
func (*output) Type() string { return "format" }

// addTo gives a command the flag --output.
func (out *output) addTo(c *cobra.Command) error {
	out.format = printer.Table
	c.Flags().VarP(out, "output", "o", "one of "+strings.Join(printer.Formats(), ", "))

	return c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(printer.Formats(), cobra.ShellCompDirectiveNoFileComp)) //nolint:wrapcheck // Ours.
}

// print shows a report on stdout.
func (o *options) print(r *report.Report, out output) error {
	width, terminal := widthOf(o.Out)

	return printer.Print(o.Out, r, out.format, printer.Options{Width: width, Colour: terminal && isColourful()})
}

// isColourful tells whether the user's environment allows colours on a terminal (no-color.org).
func isColourful() bool {
	return os.Getenv("NO_COLOR") == "" && !isDumb()
}

// isDumb tells whether the terminal shows nothing but text.
func isDumb() bool { return os.Getenv("TERM") == "dumb" }

// widthOf returns how many columns the terminal has that a stream writes to; ok is false if it writes to none.
func widthOf(w io.Writer) (width int, ok bool) {
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
