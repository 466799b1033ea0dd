package bench

import (
	"fmt"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/lab"
)

// standby returns the figures of docs/standby.md: what a refresh costs, and how long a promotion
// takes.
func (r *Results) standby() []Figure {
	refresh := Figure{Name: "Refresh of a standby without changes / the restore that filled it", Target: "≤ 1.3", Limit: 1.3, Unit: "x"}
	promotion := Figure{Name: "Promotion of a standby / Crossplane's one reconcile of all after a restart", Target: "≤ 1.5", Limit: 1.5, Unit: "x"}
	bare := Figure{Name: "Promotion of a standby / unpausing all of it without the plugin and without a check", Unit: "x"}
	refresh.Values = each(r.Standbys, func(s lab.Standby) float64 { return s.Refresh.Seconds / s.First.Seconds })
	promotion.Values = each(r.Standbys, func(s lab.Standby) float64 { return s.Promotion / s.Restart })
	bare.Values = each(r.Standbys, func(s lab.Standby) float64 { return s.Promotion / s.Unpause })
	if len(r.Standbys) == 0 {
		return []Figure{refresh, promotion, bare}
	}
	middle := func(value func(s lab.Standby) float64) string { return number(median(each(r.Standbys, value))) }
	refresh.Detail = fmt.Sprintf("%s s / %s s",
		middle(func(s lab.Standby) float64 { return s.Refresh.Seconds }), middle(func(s lab.Standby) float64 { return s.First.Seconds }))
	promotion.Detail = fmt.Sprintf("%s s / %s s; %s calls of the plugin, %s cloud resources created twice",
		middle(func(s lab.Standby) float64 { return s.Promotion }), middle(func(s lab.Standby) float64 { return s.Restart }),
		middle(func(s lab.Standby) float64 { return float64(lab.Calls(s.Plugin)) }), middle(func(s lab.Standby) float64 { return float64(s.Created) }))
	bare.Detail = fmt.Sprintf("%s s / %s s",
		middle(func(s lab.Standby) float64 { return s.Promotion }), middle(func(s lab.Standby) float64 { return s.Unpause }))

	return []Figure{refresh, promotion, bare}
}
