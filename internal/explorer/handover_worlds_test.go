package explorer

import "testing"

// In a handed world a source cluster runs an XR with an MR, hands it over to the target, or goes on.
func handed(r rules) *world {
	return &world{name: "handed over", rules: r, parent: []node{-1, 0}, xrs: 1, handover: &handover{}}
}

// composing makes the source compose its last MR during the handover.
var (
	composing = variant{"while composed", func(w *world) { w.handover = &handover{later: with(len(w.parent) - 1), again: w.handover.again} }}
	andAgain  = variant{"and again", func(w *world) { w.handover = &handover{later: w.handover.later, again: true} }}
)

func TestExploreHandovers(t *testing.T) {
	t.Parallel()
	worlds := []*world{handed(v23).vary()}
	if *isLarge {
		worlds = append(worlds, handed(v23).vary(composing), handed(v120).vary(composing), handed(v23).vary(andAgain))
	}
	exploreAll(t, worlds)
}

// TestExplorerFindsTwoWriters removes a safeguard of a handover, or a rule that its operator
// follows, and expects the explorer to find the damage.
func TestExplorerFindsTwoWriters(t *testing.T) {
	t.Parallel()
	findAll(t, []mutationCase{
		{mutation{name: "without the hold", without: safeHold}, "A source that is not held goes on.", handed(v23).vary(), bothWrite},
		{mutation{name: "what is not quiet comes back", without: safeQuiet}, "A provider can still write to it.", handed(v23).vary(), bothWrite},
		{mutation{name: "aborted after adoption", without: safeReceipt}, "Only the receipt shows the source that it is adopted.", handed(v23).vary(), bothWrite},
		{mutation{name: "aborted without a record", without: safeRecord}, "The backup can still be restored.", handed(v23).vary(), bothWrite},
		{mutation{name: "looked for receipts first", without: safeOrder}, "A restore can begin in between.", handed(v23).vary(), bothWrite},
		{mutation{name: "an abort during the restore is not noticed", without: safeLook}, "It looked before it left its receipt.", handed(v23).vary(), bothWrite},
		{mutation{name: "retired without a report", without: safeReport}, "What is not adopted has no MR any more.", handed(v23).vary(), lost},
		{
			mutation{name: "an old report of a pause counts", without: safeStale},
			"A reconcile goes on that began before the new pause.",
			handed(v23).vary(andAgain), bothWrite,
		},
	})
}
