package adoption

import "github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"

// A planCache finds the Plans that would be the same again, so that they are not made again.
type planCache struct {
	// clock counts the changes since the first Plan. changed is the clock at the last change of
	// each object, all the clock at the last change that can affect any Plan.
	clock, all int
	changed    map[xp.ID]int
	// bases are the inputs of the latest Plan for each object.
	bases map[xp.ID]planInputs
	// reading means that a Plan is being made. reads are the objects that it has looked up,
	// existing or not.
	reading bool
	reads   []xp.ID
}

// planInputs are the objects that a Plan looked up, and the clock at that time.
type planInputs struct {
	at    int
	reads []xp.ID
}

// addRead records that the Plan looked up an object.
func (c *planCache) addRead(id xp.ID) {
	if c.reading {
		c.reads = append(c.reads, id)
	}
}

// anyObject stands for all objects.
var anyObject = xp.ID{} //nolint:gochecknoglobals // It is a constant.

// addReadOfAll records that the Plan looked through all objects.
func (c *planCache) addReadOfAll() { c.addRead(anyObject) }

// invalidate records a change of an object. A change of Crossplane's own kinds can affect any XR,
// since Plans find these objects by more than their names.
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

// invalidateAll records a change that can affect any Plan.
func (c *planCache) invalidateAll() {
	c.clock++
	c.all = c.clock
}

// begin starts a Plan for r, and returns the function that ends it.
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

// IsPlanCurrent reports whether Next would return the same Plan for r again, apart from times in
// the future. Use it only for a Plan without changes: Next does not know their results.
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
