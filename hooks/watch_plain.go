package hooks

import (
	"fmt"
	"io"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// A plainView writes lines for a log, each when something has changed.
type plainView struct {
	out io.Writer
	// last is the last line of how far it is, or the last error.
	last string
	told map[reportedProblem]string
}

func (v *plainView) show(r *report.Report) {
	if line := progressText(r); line != v.last {
		v.say(line)
		v.last = line
	}
	order, lines := reportable(r)
	for _, t := range order {
		before, known := v.told[t]
		v.told[t] = lines[t]
		// What is waited for is worth a line when it changes; the reasons of other problems have
		// times in them.
		waits := t.code == report.HeldBack || t.code == report.LeakedHold
		if !known || waits && before != lines[t] {
			v.say(string(t.code) + ": " + t.object + ": " + lines[t])
		}
	}
	for t := range v.told {
		if _, still := lines[t]; !still {
			delete(v.told, t)
			v.say("no longer " + string(t.code) + ": " + t.object)
		}
	}
}

func (v *plainView) failed(err error) {
	if line := "trying again: " + printer.Clean(err.Error()); line != v.last {
		v.say(line)
		v.last = line
	}
}

func (*plainView) close() {}

func (v *plainView) say(line string) {
	fmt.Fprintln(v.out, time.Now().UTC().Format(time.RFC3339), line)
}
