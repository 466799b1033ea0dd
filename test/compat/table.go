package compat

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Section returns the table of the cells for docs/compatibility.md.
func Section(results map[Cell]Result, machine string, now time.Time) string {
	var b strings.Builder
	sound := 0
	for _, r := range results {
		if r.Failed == "" {
			sound++
		}
	}
	fmt.Fprintf(&b, "\nWritten by `make compat` on %s: %d of %d cells are as they should be. The machine: %s.\n\n",
		now.UTC().Format(time.DateOnly), sound, len(Cells()), machine)
	b.WriteString("| Velero | Crossplane |")
	for _, k := range kubernetes() {
		fmt.Fprintf(&b, " Kubernetes %s |", exact(kubernetes(), k.minor))
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(kubernetes())) + "\n")
	for _, v := range veleros() {
		for _, x := range crossplanes() {
			fmt.Fprintf(&b, "| %s | %s |", exact(veleros(), v.minor), exact(crossplanes(), x.minor))
			for _, k := range kubernetes() {
				r, ok := results[Cell{Velero: v.minor, Crossplane: x.minor, Kubernetes: k.minor}]
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
func PairSection(results map[Pair]Result, machine string, now time.Time) string {
	var b strings.Builder
	sound := 0
	for p, r := range results {
		if r.Failed == "" && !p.Alone {
			sound++
		}
	}
	fmt.Fprintf(&b, "\nWritten by `make compat` on %s: %d of %d pairs are as they should be. The machine: %s.\n",
		now.UTC().Format(time.DateOnly), sound, len(Pairs()), machine)
	for _, of := range []struct {
		what     string
		versions []version
	}{{"Crossplane", crossplanes()}, {"Velero", veleros()}, {"Kubernetes", kubernetes()}} {
		fmt.Fprintf(&b, "\n| restored into | backup of %s ", of.what)
		b.WriteString(strings.Join(exacts(of.versions), " | backup of "+of.what+" ") + " |\n|---|" + strings.Repeat("---|", len(of.versions)) + "\n")
		for _, to := range of.versions {
			b.WriteString("| " + of.what + " " + exact(of.versions, to.minor) + " |")
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

// describeControl returns the row of a control.
func describeControl(p Pair, r Result, ran bool) string {
	from, to := p.step()
	cells := []string{from + " to " + to, "", "", "", ""}
	if ran && r.Recovery != nil {
		cells = []string{
			cells[0], strconv.Itoa(r.Recovery.Creates), strconv.Itoa(r.Recovery.Deletes), strconv.Itoa(r.Recovery.Duplicates),
			fmt.Sprintf("%d of %d", r.Recovery.Adopted, r.Recovery.Total),
		}
	}
	when := "not run"
	if ran {
		when = r.when()
	}
	if r.Failed != "" {
		when += ": " + flat(r.Failed)
	}

	return strings.Join(append(cells, when), " | ")
}

func exacts(of []version) []string {
	var all []string
	for _, v := range of {
		all = append(all, exact(of, v.minor))
	}

	return all
}

func describePair(results map[Pair]Result, from, to string) string {
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
