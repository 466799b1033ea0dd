package hooks

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

const (
	// maxShown limits the lines of a live view: those above the terminal's top cannot be redrawn.
	maxShown = 8
	barWidth = 30
)

// view returns a function that shows on stderr how far the wait is: a live view on a terminal, and
// a plain one otherwise.
func (w *wait) view() func(f findings) {
	if _, ok := widthOf(w.Err); ok && !isDumb() {
		return (&liveView{out: rawWriter(w.Err), began: time.Now()}).show
	}

	return (&plainView{out: w.Err, written: map[string]string{}}).show
}

// A viewLine is what a view shows about something.
type viewLine struct{ about, text string }

// lines returns what is waited for, and what is left out.
func (f *findings) lines() []viewLine {
	lines := make([]viewLine, 0, len(f.pending)+len(f.left))
	for _, p := range f.pending {
		lines = append(lines, viewLine{about: p.what, text: "waiting for " + p.String()})
	}

	return append(lines, f.left...)
}

// progress returns how many claims and XRs are adopted, and of how many.
func (f *findings) progress() (line string, adopted, all int) {
	adopted, all = len(f.adopted), len(f.adopted)+f.roots

	return fmt.Sprintf("%d of %d claims and XRs adopted", adopted, all), adopted, all
}

// A plainView writes a line for a log whenever something has changed.
type plainView struct {
	out io.Writer
	// written is the last line about each object.
	written map[string]string
}

func (v *plainView) show(f findings) {
	lines := f.lines()
	if line, _, all := f.progress(); all > 0 {
		lines = append([]viewLine{{text: line}}, lines...)
	}
	for _, l := range lines {
		if v.written[l.about] != l.text {
			v.written[l.about] = l.text
			fmt.Fprintln(v.out, time.Now().UTC().Format(time.RFC3339), l.text)
		}
	}
}

// A liveView redraws what is waited for, and a progress bar, in place.
type liveView struct {
	out   io.Writer
	began time.Time
	// drawn is how many lines the last drawing has.
	drawn int
}

func (v *liveView) show(f findings) {
	var lines []string
	for n, l := range f.lines() {
		if n == maxShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(f.pending)+len(f.left)-n))

			break
		}
		lines = append(lines, reason.Clean(l.text))
	}
	line, adopted, all := f.progress()
	full := adopted * barWidth / max(all, 1)
	bar := strings.Repeat("#", full) + strings.Repeat(".", barWidth-full)
	lines = append(lines, fmt.Sprintf("%s  [%s]  %s", line, bar, time.Since(v.began).Round(time.Second)))

	var frame strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&frame, "\x1b[%dA\x1b[J", v.drawn) // Up to the first line, and erase what follows.
	}
	width, _ := widthOf(v.out)
	for _, line := range lines {
		if width > 0 {
			line = text.Snip(line, width-1, "…") // A wrapped line would break the redraw.
		}
		frame.WriteString(line + "\n")
	}
	v.drawn = len(lines)
	_, _ = io.WriteString(v.out, frame.String()) // What can't be shown is not missed.
}
