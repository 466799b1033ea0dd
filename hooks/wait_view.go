package hooks

import (
	"fmt"
	"io"
	"time"
)

// A view shows on stderr how far a wait is.
type view interface {
	show(f findings)
	close()
}

// view returns a live view on a terminal, and a plain one otherwise.
func (w *wait) view() view { //nolint:ireturn // It depends on where stderr goes.
	if _, ok := widthOf(w.Err); ok && !isDumb() {
		return newLiveView(w.Err)
	}

	return &plainView{out: w.Err, written: map[string]string{}}
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

func progressText(adopted, all int) string {
	return fmt.Sprintf("%d of %d claims and XRs adopted", adopted, all)
}

// A plainView writes a line for a log whenever something has changed.
type plainView struct {
	out io.Writer
	// written is the last line about each object.
	written map[string]string
}

func (v *plainView) show(f findings) {
	if all := len(f.adopted) + f.roots; all > 0 {
		v.write(viewLine{text: progressText(len(f.adopted), all)})
	}
	for _, l := range f.lines() {
		v.write(l)
	}
}

func (v *plainView) write(l viewLine) {
	if v.written[l.about] != l.text {
		v.written[l.about] = l.text
		fmt.Fprintln(v.out, time.Now().UTC().Format(time.RFC3339), l.text)
	}
}

func (*plainView) close() {}
