package compat

import (
	"fmt"
	"strings"
	"time"
)

// Section returns the table of the cells for docs/compatibility.md.
func Section(results map[Case]Result, machine string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", written(results, fmt.Sprint(len(Cells()), " cells"), machine, now))
	b.WriteString("| Velero | Crossplane |")
	for _, k := range kubernetes() {
		fmt.Fprintf(&b, " Kubernetes %s |", kubernetes().exact(k.minor))
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(kubernetes())) + "\n")
	for _, v := range veleros() {
		for _, x := range crossplanes() {
			fmt.Fprintf(&b, "| %s | %s |", veleros().exact(v.minor), crossplanes().exact(x.minor))
			for _, k := range kubernetes() {
				r, ok := results[cell(Side{Velero: v.minor, Crossplane: x.minor, Kubernetes: k.minor})]
				b.WriteString(" " + describe(r, ok) + " |")
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")

	return b.String()
}

// PairSection returns the table of the pairs for docs/compatibility.md, with a row for each target
// version.
func PairSection(results map[Case]Result, machine string, now time.Time) string {
	var b strings.Builder
	b.WriteString(written(results, fmt.Sprint(len(Pairs()), " pairs"), machine, now))
	for _, of := range []struct {
		what     string
		versions versions
	}{{"Crossplane", crossplanes()}, {"Velero", veleros()}, {"Kubernetes", kubernetes()}} {
		b.WriteString("\n| restored into |")
		for _, v := range of.versions {
			b.WriteString(" backup of " + of.what + " " + of.versions.exact(v.minor) + " |")
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(of.versions)) + "\n")
		for _, to := range of.versions {
			b.WriteString("| " + of.what + " " + of.versions.exact(to.minor) + " |")
			for _, from := range of.versions {
				b.WriteString(" " + describePair(results, from.minor, to.minor) + " |")
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n| Velero alone | created again | deleted | twice in the cloud | objects as they were | |\n|---|---|---|---|---|---|\n")
	for _, p := range Controls() {
		r, ok := results[p]
		b.WriteString("| " + describeControl(p, r, ok) + " |\n")
	}
	b.WriteString("\n")

	return b.String()
}

// written says when a table was written, and how many results of how many are good.
func written(results map[Case]Result, all, machine string, now time.Time) string {
	sound := 0
	for c, r := range results {
		if r.Failed == "" && !c.Alone {
			sound++
		}
	}

	return fmt.Sprintf("\nWritten by `make compat` on %s: %d of %s are as they should be. The machine: %s.\n",
		now.UTC().Format(time.DateOnly), sound, all, machine)
}

// describeControl returns the row of a control.
func describeControl(p Case, r Result, ran bool) string {
	from, to := p.step()
	counts, when := " |  |  | ", "not run"
	if ran && r.Recovery != nil {
		counts = fmt.Sprintf("%d | %d | %d | %d of %d", r.Recovery.Creates, r.Recovery.Deletes, r.Recovery.Duplicates, r.Recovery.Adopted, r.Recovery.Total)
	}
	if ran {
		when = r.when()
	}
	if r.Failed != "" {
		when += ": " + flat(r.Failed)
	}

	return fmt.Sprintf("%s to %s | %s | %s", from, to, counts, when)
}

func describePair(results map[Case]Result, from, to string) string {
	if from == to {
		return "the matrix above"
	}
	pairs, err := OnlyPairs([]string{from + "-" + to})
	if err != nil {
		return "no upgrade"
	}
	r, ok := results[pairs[0]]
	text := describe(r, ok)
	if ok && r.Failed == "" && pairs[0].old() {
		text += "; native Compositions held until they were converted"
	}

	return text
}

func describe(r Result, ran bool) string {
	switch {
	case !ran:
		return "not run"
	case r.Failed == "":
		return fmt.Sprintf("%d of %d adopted in %.0f s, %s", r.Recovery.Adopted, r.Recovery.Total, r.Recovery.Seconds, r.when())
	case r.Recovery == nil:
		return fmt.Sprintf("could not be run, %s: %s", r.when(), flat(r.Failed))
	default:
		return fmt.Sprintf("**broken**, %s: %s", r.when(), flat(r.Failed))
	}
}

// when returns the date of a result, and the plugin's commit.
func (r Result) when() string {
	when := r.At.Format(time.DateOnly)
	if r.Commit != "" {
		when += " (" + r.Commit + ")"
	}

	return when
}

// flat makes a text fit into a table's cell: one line, escaped and cut.
func flat(text string) string {
	const most = 300
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
	if len(text) > most {
		text = text[:most] + " …"
	}

	return text
}
