package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Requests returns a table for docs/dev/performance.md with the requests of each client during the
// items phase, with the plugin and without.
func (r *Results) Requests() string {
	if len(r.Restores) == 0 {
		return ""
	}
	last := r.Restores[len(r.Restores)-1]
	var b strings.Builder
	fmt.Fprintf(&b, "\nRequests while %d items were restored:\n\n", last.Plugin.Items)
	b.WriteString("| request | Velero alone | Velero with the plugin | the plugin |\n|---|---|---|---|\n")
	total := func(what string) int {
		return last.Alone.Velero[what] + last.Plugin.Velero[what] + last.Plugin.Plugin[what]
	}
	kinds := map[string]bool{}
	for _, counts := range []map[string]int{last.Alone.Velero, last.Plugin.Velero, last.Plugin.Plugin} {
		for what := range counts {
			kinds[what] = true
		}
	}
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return cmp.Or(total(b)-total(a), strings.Compare(a, b)) })
	const most = 12
	for _, what := range names[:min(most, len(names))] {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", what, last.Alone.Velero[what], last.Plugin.Velero[what], last.Plugin.Plugin[what])
	}
	if len(names) > most {
		alone, with, plugin := 0, 0, 0
		for _, what := range names[most:] {
			alone, with, plugin = alone+last.Alone.Velero[what], with+last.Plugin.Velero[what], plugin+last.Plugin.Plugin[what]
		}
		fmt.Fprintf(&b, "| %d others | %d | %d | %d |\n", len(names)-most, alone, with, plugin)
	}

	return b.String()
}
