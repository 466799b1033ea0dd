package adoption

import "github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"

// A planCache tells which Plans would be the same if they were made again, so that of thousands only those are that can be others.
type planCache struct {
	// clock counts the changes since the first Plan, changed says when each object has changed last, and all when something has that any Plan can depend on.
	clock, all int
	changed    map[xp.ID]int
	// bases are what the latest Plan for each was made of.
	bases map[xp.ID]planInputs
	// reading says that a Plan is being made, and reads is what was looked for meanwhile, whether it was there or not.
	reading bool
	reads   []xp.ID
}

// A planInputs is what a Plan was made of: what was looked for, and when.
type planInputs struct {
	at    int
	reads []xp.ID
}

// addRead says that somebody has looked for an object.
func (j *planCache) addRead(id xp.ID) {
	if j.reading {
		j.reads = append(j.reads, id)
	}
}

// anyObject stands for whatever there is.
var anyObject = xp.ID{} //nolint:gochecknoglobals // It is a constant.

// addReadOfAll says that somebody has looked through all that there is.
func (j *planCache) addReadOfAll() { j.addRead(anyObject) }

// invalidate says that an object is not what it was. What Crossplane has itself can matter for any XR, since it is found by more than its name.
func (j *planCache) invalidate(id xp.ID) {
	if j.changed == nil {
		return
	}
	j.clock++
	j.changed[id], j.changed[anyObject] = j.clock, j.clock
	if xp.IsCrossplaneGroup(id.Group) {
		j.all = j.clock
	}
}

// invalidateAll says that something has changed that any Plan can depend on.
func (j *planCache) invalidateAll() {
	j.clock++
	j.all = j.clock
}

// begin begins a Plan for what r names, and returns what ends it.
func (j *planCache) begin(r xp.Ref) (end func()) {
	if j.changed == nil {
		j.changed, j.bases = map[xp.ID]int{}, map[xp.ID]planInputs{}
	}
	at := j.clock
	j.reading, j.reads = true, make([]xp.ID, 0, len(j.bases[r.ID()].reads))

	return func() {
		j.bases[r.ID()] = planInputs{at: at, reads: j.reads}
		j.reading, j.reads = false, nil
	}
}

// IsPlanCurrent reports whether Next, if it is called again for what r names, returns what it did the last time, but for times of the future that an object
// or the Plan has. It is for Plans that change nothing: Next does not know what has come of a change.
func (w *Snapshot) IsPlanCurrent(r xp.Ref) bool {
	b, planned := w.bases[r.ID()]
	if !planned || b.at < w.all {
		return false
	}
	for _, id := range b.reads {
		if w.changed[id] > b.at {
			return false
		}
	}

	return true
}
