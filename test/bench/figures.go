package bench

import (
	"fmt"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/lab"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
)

const (
	megabyte = 1 << 20

	// flat is how much more memory something that does not grow may take at the larger size: a
	// garbage collector varies a little.
	flat = 1.25
	// slack is how much more than in proportion the cost may grow.
	slack = 1.1
)

// Figures returns all figures, measured or not: those with a target, in the order of the issue that
// set the targets, and some others of interest.
func (r *Results) Figures(s Sizes) []Figure {
	trees := fmt.Sprintf("%d XRs x %d MRs", s.XRs, s.MRs)

	return append([]Figure{
		ratioOfRestores("Restore, items phase, "+trees+": plugin / Velero alone", 1.15, r.Restores),
		ratioOfRestores("The same with all status restored on both sides", 1.05, r.Statuses),
		ratioOfRestores(fmt.Sprintf("The same with %d requests a second for Velero on both sides", lab.FastRate), 0, r.Fast),
		r.backup(),
		r.calls(),
		r.release(),
	}, append(append(r.poll(s), r.start()...), append(r.memory(s), append(r.inspect(s), r.peer()...)...)...)...)
}

func ratioOfRestores(name string, limit float64, pairs []Restores) Figure {
	f := Figure{Name: name, Limit: limit, Unit: "x"}
	if limit > 0 {
		f.Target = fmt.Sprintf("≤ %.2f", limit)
	}
	f.Values = each(pairs, func(p Restores) float64 { return p.Plugin.Seconds / p.Alone.Seconds })
	if len(pairs) > 0 {
		f.Detail = fmt.Sprintf("%d items; %s s / %s s; Velero's calls per item %s / %s", pairs[0].Plugin.Items,
			typical(pairs, func(p Restores) float64 { return p.Plugin.Seconds }),
			typical(pairs, func(p Restores) float64 { return p.Alone.Seconds }),
			typical(pairs, func(p Restores) float64 { return perItem(p.Plugin.Velero, p.Plugin.Items) }),
			typical(pairs, func(p Restores) float64 { return perItem(p.Alone.Velero, p.Alone.Items) }))
	}

	return f
}

func perItem(calls map[string]int, items int) float64 {
	return float64(lab.Calls(calls)) / float64(items)
}

func (r *Results) backup() Figure {
	f := Figure{Name: "Backup of the same namespace: plugin / Velero alone", Target: "≤ 1.05, same set of objects", Limit: 1.05, Unit: "x"}
	f.Values = each(r.Backups, func(b *lab.Backups) float64 { return b.Plugin.Seconds / b.Alone.Seconds })
	if len(r.Backups) > 0 {
		last := r.Backups[len(r.Backups)-1]
		f.Detail = fmt.Sprintf("%s s / %s s; %d / %d objects",
			typical(r.Backups, func(b *lab.Backups) float64 { return b.Plugin.Seconds }),
			typical(r.Backups, func(b *lab.Backups) float64 { return b.Alone.Seconds }), last.Plugin.Items, last.Alone.Items)
	}

	return f
}

func (r *Results) calls() Figure {
	f := Figure{Name: "The plugin's API calls per restored item", Target: "≤ 0.12", Limit: 0.12}
	f.Values = each(r.Restores, func(p Restores) float64 { return perItem(p.Plugin.Plugin, p.Plugin.Items) })
	if len(r.Restores) > 0 {
		last := r.Restores[len(r.Restores)-1].Plugin
		f.Detail = fmt.Sprintf("%d calls for %d items", lab.Calls(last.Plugin), last.Items)
	}
	if len(r.Releases) > 0 {
		last := r.Releases[len(r.Releases)-1]
		f.Detail += "; with all until the last XR is released " + number(perItem(last.Plugin, last.Restore.Items))
	}

	return f
}

func (r *Results) release() Figure {
	f := Figure{Name: "End of items to last XR released / Crossplane's one reconcile of all after a restart", Target: "≤ 1.5", Limit: 1.5, Unit: "x"}
	f.Values = each(r.Releases, func(p *lab.Release) float64 { return p.Seconds / p.Restart })
	if len(r.Releases) > 0 {
		f.Detail = fmt.Sprintf("%s s / %s s",
			typical(r.Releases, func(p *lab.Release) float64 { return p.Seconds }),
			typical(r.Releases, func(p *lab.Release) float64 { return p.Restart }))
	}

	return f
}

func (r *Results) poll(s Sizes) []Figure {
	seconds := Figure{Name: fmt.Sprintf("One Progress poll, %d held XRs", s.Held), Target: "≤ 1 s", Limit: 1, Unit: " s"}
	lists := Figure{Name: "LISTs per kind in such a poll", Target: "≤ 2", Limit: 2}
	if r.Held != nil {
		seconds.Values = each(r.Held.Polls, func(p lab.Poll) float64 { return p.Seconds })
		lists.Values = each(r.Held.Polls, func(p lab.Poll) float64 { return float64(p.Lists) })
		seconds.Detail = "the process of the poll, from start to end; between its first and last call " +
			typical(r.Held.Polls, func(p lab.Poll) float64 { return p.Asking }) + " s"
		lists.Detail = typical(r.Held.Polls, func(p lab.Poll) float64 { return float64(lab.Calls(p.Calls)) }) + " calls in all"
	}

	return []Figure{seconds, lists}
}

func (r *Results) start() []Figure {
	start := Figure{Name: "Process start to handshake", Target: "≤ 50 ms", Limit: 50, Unit: " ms"}
	size := Figure{Name: "Binary, stripped", Target: "≤ 60 MB", Limit: 60, Unit: " MB"}
	if r.Start != nil {
		start.Values = r.Start.Milliseconds
		size.Values = []float64{float64(r.Start.Bytes) / 1e6}
	}

	return []Figure{start, size}
}

func (r *Results) memory(s Sizes) []Figure {
	at := func(xrs int, g Growth) Figure {
		f := Figure{Name: fmt.Sprintf("Peak RSS of the plugin, %d items", s.Items(xrs)), Target: "≤ 100 MB", Limit: 100, Unit: " MB"}
		var details []string
		add := func(what string, peak int64) { details = append(details, what+" "+number(float64(peak)/megabyte)) }
		if g.Held != nil {
			f.Values = []float64{g.Peak() / megabyte}
			add("restoring", g.Held.Restore.Peak)
			add("polling", g.Held.PollPeak())
		}
		if g.Grown != nil {
			add("releasing", g.Grown.Release.PollPeak)
			add("backing up", g.Grown.Backup.Peak)
		}
		f.Detail = strings.Join(details, ", ")

		return f
	}
	same := Figure{Name: "The latter / the former", Target: fmt.Sprintf("flat: ≤ %.2f", flat), Limit: flat, Unit: "x"}
	if r.Base.Held != nil && r.Large.Held != nil {
		same.Values = []float64{r.Large.Peak() / r.Base.Peak()}
	}

	return []Figure{at(s.XRs, r.Base), at(s.Large, r.Large), same, r.velero(s), r.growth(s)}
}

// velero returns the memory of Velero's own process, which shares its Pod with the plugin.
func (r *Results) velero(s Sizes) Figure {
	f := Figure{Name: fmt.Sprintf("Peak RSS of Velero alone while it restores %d items", s.Items(s.Large)), Unit: " MB"}
	if r.LargeAlone != nil {
		f.Values = []float64{float64(r.LargeAlone.VeleroPeak) / megabyte}
	}
	if peaks := each(r.Restores, func(p Restores) float64 { return float64(p.Alone.VeleroPeak) / megabyte }); len(peaks) > 0 {
		f.Detail = fmt.Sprintf("%s MB at %d items", number(median(peaks)), s.Items(s.XRs))
	}

	return f
}

// growth returns the figure of the cost that has grown most.
func (r *Results) growth(s Sizes) Figure {
	limit := s.Factor() * slack
	f := Figure{
		Limit: limit, Unit: "x", Name: "Cost of everything above at " + number(s.Factor()) + " times the objects", Target: "≤ " + number(limit) + "x",
	}
	if r.Base.Held == nil || r.Large.Held == nil {
		return f
	}
	var details []string
	worst := 0.0
	add := func(what string, large, base, scale float64) {
		if base > 0 {
			grown := large / base * scale
			worst = max(worst, grown)
			details = append(details, what+" "+number(grown)+"x")
		}
	}
	polls := func(h *lab.Held) float64 { return median(each(h.Polls, func(p lab.Poll) float64 { return p.Seconds })) }
	large, base := r.Large.Held, r.Base.Held
	add("restore", large.Restore.Seconds, base.Restore.Seconds, 1)
	add("calls", float64(lab.Calls(large.Restore.Plugin)), float64(lab.Calls(base.Restore.Plugin)), 1)
	add("poll", polls(large), polls(base), 1)
	if r.Large.Grown != nil && r.Base.Grown != nil {
		add("release", r.Large.Grown.Release.Seconds, r.Base.Grown.Release.Seconds, 1)
		add("backup", r.Large.Grown.Backup.Seconds, r.Base.Grown.Backup.Seconds, 1)
	}
	if len(r.Inspections) > 0 && len(r.Tenth) > 0 {
		// One file has ten times as many objects as the other, for any factor.
		add("inspect", median(each(r.Inspections, func(i Inspections) float64 { return i.Inspect.Seconds })),
			median(each(r.Tenth, func(t *meter.Run) float64 { return t.Seconds })), s.Factor()/10)
	}
	f.Values = []float64{worst}
	if r.LargeAlone != nil && len(r.Restores) > 0 { // The plugin has no part in this cost.
		alone := median(each(r.Restores, func(p Restores) float64 { return p.Alone.Seconds }))
		details = append(details, "Velero alone "+number(r.LargeAlone.Seconds/alone)+"x")
	}
	f.Detail = strings.Join(details, ", ")

	return f
}

func (r *Results) inspect(s Sizes) []Figure {
	ratio := Figure{Name: fmt.Sprintf("inspect of a backup of %d objects / reading and decoding it", s.Objects), Target: "≤ 2", Limit: 2, Unit: "x"}
	memory := Figure{Name: "Peak RSS of inspect", Target: "≤ 300 MB", Limit: 300, Unit: " MB"}
	ratio.Values = each(r.Inspections, func(i Inspections) float64 { return i.Inspect.Seconds / i.Decode.Seconds })
	memory.Values = each(r.Inspections, func(i Inspections) float64 { return float64(i.Inspect.Peak) / megabyte })
	if len(r.Inspections) > 0 {
		ratio.Detail = fmt.Sprintf("%s s / %s s", typical(r.Inspections, func(i Inspections) float64 { return i.Inspect.Seconds }),
			typical(r.Inspections, func(i Inspections) float64 { return i.Decode.Seconds }))
	}

	return []Figure{ratio, memory}
}

// peer compares the whole job: from the beginning in one cluster to the end in the other.
func (r *Results) peer() []Figure {
	time := Figure{Name: "Backup, restore and adoption / export, apply and reconcile with a kubectl script", Target: "faster: < 1", Limit: 1, Unit: "x"}
	twice := Figure{Name: "Cloud resources made twice, with the plugin", Target: "0", Limit: 0}
	twice.Values = each(r.Releases, func(p *lab.Release) float64 { return float64(p.Created) })
	if r.Peer != nil {
		twice.Detail = fmt.Sprintf("with kubectl %d of %d; all Ready in the end: %v", r.Peer.Created, r.Peer.Objects, r.Peer.Ready)
	}
	if r.Peer == nil || len(r.Releases) == 0 || len(r.Backups) == 0 {
		return []Figure{time, twice}
	}
	backup := median(each(r.Backups, func(b *lab.Backups) float64 { return b.Plugin.Seconds }))
	theirs := r.Peer.Export + r.Peer.Apply + r.Peer.Settled
	time.Values = each(r.Releases, func(p *lab.Release) float64 { return (backup + p.Restore.Seconds + p.Seconds) / theirs })
	first := r.Releases[0]
	time.Detail = fmt.Sprintf("%s + %s + %s s / %s + %s + %s s, %d calls of kubectl", number(backup), number(first.Restore.Seconds), number(first.Seconds),
		number(r.Peer.Export), number(r.Peer.Apply), number(r.Peer.Settled), r.Peer.Requests)

	return []Figure{time, twice}
}
