package hooks

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

const explainLong = `Explain prints what a code in a message or report means, why it happens and what to do. Without a code it lists all
codes, grouped by where you see them.

It needs no cluster.`

// docsLink is a link in the Markdown of a reason, which a terminal can't follow.
var docsLink = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)

func newExplain(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "explain [CODE]",
		Short:   "Explain a code in a message or report",
		Long:    explainLong,
		Example: "  " + Name + " explain Orphaned",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var codes []string
			for _, r := range reason.All() {
				codes = append(codes, string(r.Code))
			}

			return codes, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			out := rawWriter(o.Out) // All of it is this program's own text.
			if len(args) == 0 {
				listReasons(out)

				return nil
			}

			return explain(out, args[0])
		},
	}
}

// listReasons prints the codes under a heading for each group, in the order of reasons.yaml.
func listReasons(out io.Writer) {
	longest := 0
	for _, r := range reason.All() {
		longest = max(longest, len(r.Code))
	}
	var group reason.Group
	for _, r := range reason.All() {
		if r.Group != group {
			if group != "" {
				fmt.Fprintln(out)
			}
			group = r.Group
			fmt.Fprintln(out, strings.ToUpper(group.Place()))
		}
		first, _, _ := strings.Cut(plain(r.Meaning), ". ")
		fmt.Fprintf(out, "  %-*s  %s\n", longest, r.Code, text.Snip(first, explainWidth-longest, "…"))
	}
}

// explainWidth is the width of the texts, in columns.
const explainWidth = 100

func explain(out io.Writer, code string) error {
	r, similar, ok := reason.Find(code)
	if !ok {
		hint := fmt.Sprintf("%q lists all", Name+" explain")
		if len(similar) > 0 {
			hint = "did you mean " + strings.Join(similar, " or ") + "?"
		}

		return fmt.Errorf("unknown code %q; %s", code, hint)
	}
	seen := r.Group.Place()
	if r.ReportedBy != "" {
		seen += ": " + plain(r.ReportedBy)
	}
	fmt.Fprintf(out, "CODE  %s\nSEEN  %s\n", r.Code, seen)
	for _, part := range []struct{ title, text string }{{"MEANING", r.Meaning}, {"CAUSE", r.Cause}, {"CURE", r.Cure}} {
		fmt.Fprintf(out, "\n%s\n%s\n", part.title, indented(plain(part.text)))
	}

	return nil
}

// plain returns Markdown as a terminal shows it: without backquotes, and with the file that a link
// leads to in place of the link.
func plain(markdown string) string {
	markdown = docsLink.ReplaceAllStringFunc(markdown, func(link string) string {
		m := docsLink.FindStringSubmatch(link)
		if m[1] == m[2] || strings.HasPrefix(m[2], m[1]+"#") {
			return "docs/" + m[2]
		}

		return m[1] + " (docs/" + m[2] + ")"
	})

	return strings.ReplaceAll(markdown, "`", "")
}

// indented returns a text in lines of explainWidth, each behind two spaces.
func indented(t string) string {
	var b strings.Builder
	for line := range strings.Lines(text.WrapSoft(t, explainWidth)) {
		b.WriteString("  " + strings.TrimRight(line, " \n") + "\n")
	}

	return strings.TrimRight(b.String(), "\n")
}
