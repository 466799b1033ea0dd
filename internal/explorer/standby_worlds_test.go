package explorer

import "testing"

// In a standby world each backup of a source cluster, which runs an XR with two MRs, refreshes the
// target.
func standby(r rules) *world {
	return &world{name: "standby", rules: r, parent: []node{-1, 0, 0}, xrs: 1, handover: &handover{standby: true}}
}

// growing makes the source compose its last MR at any time. shrinking makes its user take that out
// of the spec of the XR.
var (
	growing   = variant{"growing", func(w *world) { w.handover = &handover{standby: true, later: with(2)} }}
	shrinking = variant{"shrinking", func(w *world) { w.handover = &handover{standby: true, droppable: with(2)} }}
	changing  = variant{"growing and shrinking", func(w *world) { w.handover = &handover{standby: true, later: with(2), droppable: with(2)} }}
	// byAJob lets restores go on during the promotion, which docs/standby.md says to avoid. The user
	// releases what each of them holds.
	byAJob = variant{"by a job that goes on", func(w *world) { w.without |= safeJob }}
)

func TestExploreStandbys(t *testing.T) {
	t.Parallel()
	worlds := []*world{standby(v23).vary(growing), standby(v23).vary(shrinking), standby(v120).vary(shrinking), standby(v23).vary(statusFirst), standby(v23).vary(byAJob)}
	if *isLarge {
		worlds = append(worlds, standby(v23).vary(changing), standby(v120).vary(changing), standby(after7627).vary(changing), standby(v23).vary(growing, statusFirst),
			standby(v23).vary(growing, byAJob))
	}
	exploreAll(t, worlds)
}

// TestExplorerFindsStandbyDamage removes a safeguard of a standby, or a rule that its operator
// follows, and expects the explorer to find the damage.
func TestExplorerFindsStandbyDamage(t *testing.T) {
	t.Parallel()
	cases := []mutationCase{
		{mutation{name: "promoted while the source lives", without: safeLoss}, "Both clusters reconcile.", standby(v23).vary(), bothWrite},
		{mutation{name: "what the backup has is removed", without: safeBackedUp}, "A restore that could not refresh it must leave it.", standby(v23).vary(growing), lost},
		{
			mutation{name: "a missing status does not count", without: safeStatus},
			"Velero was killed between the creation and the status.",
			standby(v23).vary(statusFirst), unsettled,
		},
	}
	if *isLarge {
		cases = append(cases, mutationCase{
			mutation{name: "what has left the quarantine is refreshed", without: safeJob | safeOutdated},
			"It is released already, or about to be.",
			standby(v23).vary(growing), unproven,
		})
	}
	findAll(t, cases)
}
