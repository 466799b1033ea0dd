package adoption

import (
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A planCache finds the Plans that would be the same again, so that they are not made again.
type planCache struct {
	// clock counts the changes since the first Plan. changed is the clock at the last change of
	// each object, all the clock at the last change that can affect any Plan.
	clock, all int
	changed    map[xp.ID]int
	// plans are the inputs of the latest Plan for each object. current is that of the Plan which is
	// being made; nil if none is.
	plans   map[xp.ID]*planInputs
	current *planInputs
}

// planInputs are the objects that a Plan has looked up, existing or not, and the clock at that time.
type planInputs struct {
	at    int
	reads []xp.ID
}

// addRead records that the Plan looked up an object; the zero ID stands for all objects.
func (c *planCache) addRead(id xp.ID) {
	if c.current != nil {
		c.current.reads = append(c.current.reads, id)
	}
}

// invalidate records a change of an object. A change of Crossplane's own kinds can affect any XR,
// since Plans find these objects by more than their names.
func (c *planCache) invalidate(id xp.ID) {
	if c.changed == nil {
		return
	}
	c.clock++
	c.changed[id], c.changed[xp.ID{}] = c.clock, c.clock
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
		c.changed, c.plans = map[xp.ID]int{}, map[xp.ID]*planInputs{}
	}
	c.current = &planInputs{at: c.clock}
	c.plans[r.ID()] = c.current

	return func() { c.current = nil }
}

// IsPlanCurrent reports whether Next would return the same Plan for r again, apart from times in
// the future. Use it only for a Plan without changes: Next does not know their results.
func (s *Snapshot) IsPlanCurrent(r xp.Ref) bool {
	p := s.plans[r.ID()]

	return p != nil && p.at >= s.all && !slices.ContainsFunc(p.reads, func(id xp.ID) bool { return s.changed[id] > p.at })
}
