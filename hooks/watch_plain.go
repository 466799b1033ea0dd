package hooks

import (
	"fmt"
	"io"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// A plainView writes a line for a log whenever something has changed.
type plainView struct {
	out io.Writer
	// last is the last progress line or error.
	last     string
	reported map[reportedProblem]string
}

func (v *plainView) show(r *report.Report) {
	if line := progressText(r); line != v.last {
		v.writeLine(line)
		v.last = line
	}
	order, lines := reportable(r)
	for _, t := range order {
		before, known := v.reported[t]
		v.reported[t] = lines[t]
		// Only a hold's cause is worth a line when it changes. Reasons of other problems contain
		// times.
		if !known || isHold(t.code) && before != lines[t] {
			v.writeLine(string(t.code) + ": " + t.object + ": " + lines[t])
		}
	}
	for t := range v.reported {
		if _, still := lines[t]; !still {
			delete(v.reported, t)
			v.writeLine("no longer " + string(t.code) + ": " + t.object)
		}
	}
}

func (v *plainView) failed(err error) {
	if line := "trying again: " + reason.Clean(err.Error()); line != v.last {
		v.writeLine(line)
		v.last = line
	}
}

func (*plainView) close() {}

func (v *plainView) writeLine(line string) {
	fmt.Fprintln(v.out, time.Now().UTC().Format(time.RFC3339), line)
}
