package adoption

import "github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"

// A planCache tells which Plans would be the same if they were made again, so that of thousands
// only those are that can be others.
type planCache struct {
	// clock counts the changes since the first Plan, changed says when each object has changed
	// last, and all when something has that any Plan can depend on.
	clock, all int
	changed    map[xp.ID]int
	// bases are what the latest Plan for each was made of.
	bases map[xp.ID]planInputs
	// reading says that a Plan is being made, and reads is what was looked for meanwhile, whether
	// it was there or not.
	reading bool
	reads   []xp.ID
}

// A planInputs is what a Plan was made of: what was looked for, and when.
type planInputs struct {
	at    int
	reads []xp.ID
}

// addRead says that somebody has looked for an object.
func (c *planCache) addRead(id xp.ID) {
	if c.reading {
		c.reads = append(c.reads, id)
	}
}

// anyObject stands for whatever there is.
var anyObject = xp.ID{} //nolint:gochecknoglobals // It is a constant.

// addReadOfAll says that somebody has looked through all that there is.
func (c *planCache) addReadOfAll() { c.addRead(anyObject) }

// invalidate says that an object is not what it was. What Crossplane has itself can matter for any
// XR, since it is found by more than its name.
func (c *planCache) invalidate(id xp.ID) {
	if c.changed == nil {
		return
	}
	c.clock++
	c.changed[id], c.changed[anyObject] = c.clock, c.clock
	if xp.IsCrossplaneGroup(id.Group) {
		c.all = c.clock
	}
}

// invalidateAll says that something has changed that any Plan can depend on.
func (c *planCache) invalidateAll() {
	c.clock++
	c.all = c.clock
}

// begin begins a Plan for what r names, and returns what ends it.
func (c *planCache) begin(r xp.Ref) (end func()) {
	if c.changed == nil {
		c.changed, c.bases = map[xp.ID]int{}, map[xp.ID]planInputs{}
	}
	at := c.clock
	c.reading, c.reads = true, make([]xp.ID, 0, len(c.bases[r.ID()].reads))

	return func() {
		c.bases[r.ID()] = planInputs{at: at, reads: c.reads}
		c.reading, c.reads = false, nil
	}
}

// IsPlanCurrent reports whether Next, if it is called again for what r names, returns what it did
// the last time, but for times of the future that an object or the Plan has. It is for Plans that
// change nothing: Next does not know what has come of a change.
func (s *Snapshot) IsPlanCurrent(r xp.Ref) bool {
	b, planned := s.bases[r.ID()]
	if !planned || b.at < s.all {
		return false
	}
	for _, id := range b.reads {
		if s.changed[id] > b.at {
			return false
		}
	}

	return true
}
