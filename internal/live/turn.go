package live

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// turns is how many XRs Crossplane is let reconcile at a time. It reconciles a hundred at once and reads from a cache: the more change at the same time, the
// further that falls behind, and the more often Crossplane reconciles each of them again.
const turns = 256

// A round is what is planned for what was seen at one look.
type round struct {
	world   *adoption.World
	plans   map[xp.ID]adoption.Plan
	changed map[xp.ID]bool
	tasks   []*task
}

// plan plans for what refs name, and returns what is to be done of that now. Who is adopted stays so as long as the poll lasts, and for who waits for a turn it
// plans again when there is one: there are many looks at thousands, and each is to take no longer than what can have moved since the last.
func (p *poll) plan(w *adoption.World, refs []xp.Ref) (map[xp.ID]adoption.Plan, []*task) {
	now := round{world: w, plans: make(map[xp.ID]adoption.Plan, len(refs)), changed: map[xp.ID]bool{}}
	var line []xp.Ref
	for _, r := range refs {
		id := r.ID()
		if _, ok := now.plans[id]; ok {
			continue
		}
		last := p.plans[id]
		if p.queued[id] {
			line = append(line, r)
		}
		if last.Done || p.queued[id] {
			now.plans[id] = last

			continue
		}
		now.next(r)
	}
	free := p.inTurn(&now)
	for _, r := range line {
		if free <= 0 {
			break
		}
		delete(p.queued, r.ID())
		free -= now.next(r)
	}

	return now.plans, now.tasks
}

// next plans for what ref names, and returns how many XRs Crossplane is to be let reconcile by that.
func (n *round) next(ref xp.Ref) (begun int) {
	plan := adoption.Next(n.world, ref)
	n.plans[ref.ID()] = plan
	for _, change := range append(plan.Also, plan.Change) {
		// The plan of a claim is that of its XR.
		if change.Patch == nil || n.changed[xp.RefTo(change.Target).ID()] {
			continue
		}
		n.changed[xp.RefTo(change.Target).ID()] = true
		n.tasks = append(n.tasks, &task{Change: change, ref: ref})
		if change.Begins {
			begun++
		}
	}

	return begun
}

// inTurn leaves of what is to be done that for which there is time now, and says in the plans of the others what they wait for. It returns how many more XRs
// Crossplane can be let reconcile.
func (p *poll) inTurn(n *round) (free int) {
	free = p.turns - len(p.underWay(n.plans))
	due := n.tasks
	n.tasks = make([]*task, 0, len(due))
	for _, t := range due {
		if t.Begins {
			free--
		}
		if !t.Begins || free >= 0 {
			n.tasks = append(n.tasks, t)

			continue
		}
		plan := n.plans[t.ref.ID()]
		plan.Waiting = append(plan.Waiting, fmt.Sprintf("its turn: Crossplane is let reconcile %d XRs at a time", p.turns))
		plan.Moving = true
		n.plans[t.ref.ID()] = plan
		p.queued[t.ref.ID()] = true
	}

	return free
}

// underWay returns the XRs of which nothing but Crossplane's word is waited for. A claim has the plan of its XR.
func (p *poll) underWay(plans map[xp.ID]adoption.Plan) map[types.UID]bool {
	on := map[types.UID]bool{}
	for _, plan := range plans {
		if p.isUnderWay(plan) {
			on[plan.Silent[0].Target.GetUID()] = true
		}
	}

	return on
}
