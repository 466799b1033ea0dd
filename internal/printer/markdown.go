package printer

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// mostFolded is how many bytes of trees a Markdown report has at most. GitHub takes comments of
// 65,536 characters.
const mostFolded = 40_000

// mostBullets is how many findings a Markdown report has at most, with mostShown objects each.
const mostBullets = 50

// markdown returns a report as Markdown, for a comment on a pull request or the summary of a job:
// the verdict, the findings with a link for each code, and the trees, folded. No text of an object
// can become an element, a link or a mention.
func markdown(r *report.Report) []byte {
	s := newTextReport(r, false, Options{})
	what, next := conclusion(r)
	parts := []string{"**" + escapedMarkdown(what) + "**"}
	if next != "" {
		parts[0] += " Next: " + step(next)
	}
	if len(r.Trees) > 0 {
		parts = append(parts, escapedMarkdown(counts(r)))
	}
	all := findings(r.Problems)
	var bullets []string
	for _, f := range all[:min(len(all), mostBullets)] {
		bullets = append(bullets, bullet(f))
	}
	if more := len(all) - len(bullets); more > 0 {
		bullets = append(bullets, "- … and "+number(more)+" more: see `-o json`")
	}
	parts = append(parts, strings.Join(bullets, "\n"), folded("Releases", s.releases()), folded("Trees", s.trees()), folded("Dry run", s.dryRun()))

	var filled []string
	for _, part := range parts {
		if part != "" {
			filled = append(filled, part)
		}
	}

	return []byte(strings.Join(filled, "\n\n") + "\n")
}

func bullet(f *finding) string {
	code := inCode(string(f.Code))
	if about, _, ok := reason.Find(string(f.Code)); ok {
		code = "[" + code + "](" + about.URL() + ")"
	}
	shown := make([]string, 0, mostShown)
	for _, o := range f.objects[:min(len(f.objects), mostShown)] {
		shown = append(shown, inCode(o.String()))
	}
	objects := strings.Join(shown, ", ")
	if more := len(f.objects) - len(shown); more > 0 {
		objects += " and " + number(more) + " more"
	}

	return fmt.Sprintf("- **%s** %s %s: %s. Next: %s", f.Severity, code, objects, escapedMarkdown(strings.TrimSuffix(f.Reason, ".")), step(f.Next))
}

// step returns a next step with the command at its end as code.
func step(next string) string {
	text, command, rest := splitStep(next)
	if command == "" {
		return escapedMarkdown(text)
	}

	return escapedMarkdown(text) + " " + inCode(command) + escapedMarkdown(rest)
}

// folded returns a text as it is on a terminal, which a reader opens; "" for none.
func folded(title, text string) string {
	if text == "" {
		return ""
	}
	if len(text) > mostFolded {
		return title + ": too many to show here, see `-o html`."
	}
	fence := "``" + strings.Repeat("`", longestRun(text)+1)

	return "<details><summary>" + title + "</summary>\n\n" + fence + "text\n" + text + "\n" + fence + "\n\n</details>"
}

var (
	// punctuation matches what has a meaning in Markdown.
	punctuation = regexp.MustCompile("[\\\\`*_{}\\[\\]<>#|~&$]")
	spaces      = regexp.MustCompile(`\s+`)
)

// escapedMarkdown returns a text as Markdown that shows the same. An empty comment in front of an @
// and in an URL keeps a code host from making a mention or a link of it.
func escapedMarkdown(t string) string {
	t = punctuation.ReplaceAllString(spaces.ReplaceAllString(t, " "), `\$0`)

	return strings.NewReplacer("@", "<!-- -->@", "://", ":<!-- -->//", "www.", "www<!-- -->.").Replace(t)
}

// inCode returns a text as a code span.
func inCode(t string) string {
	t = spaces.ReplaceAllString(t, " ")
	fence := strings.Repeat("`", longestRun(t)+1)
	if strings.HasPrefix(t, "`") || strings.HasSuffix(t, "`") || t == "" {
		t = " " + t + " "
	}

	return fence + t + fence
}

// longestRun returns the length of the longest run of backticks.
func longestRun(t string) int {
	longest, run := 0, 0
	for _, c := range t {
		run++
		if c != '`' {
			run = 0
		}
		longest = max(longest, run)
	}

	return longest
}
