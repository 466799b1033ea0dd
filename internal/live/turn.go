package live

import (
	"fmt"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// turns is how many XRs Crossplane is let reconcile at a time. It reconciles a hundred at once and reads from a cache: the more change at the same time, the
// further that falls behind, and the more often Crossplane reconciles each of them again.
const turns = 256

// inTurn returns those tasks for which there is time now, and says in the plans of the others what they wait for.
func (p *poll) inTurn(tasks []*task, plans map[xp.ID]adoption.Plan) []*task {
	free := p.turns
	for _, plan := range plans {
		if p.isUnderWay(plan) {
			free--
		}
	}
	now := make([]*task, 0, len(tasks))
	for _, t := range tasks {
		if t.Begins {
			free--
		}
		if !t.Begins || free >= 0 {
			now = append(now, t)

			continue
		}
		plan := plans[t.ref.ID()]
		plan.Waiting = append(plan.Waiting, fmt.Sprintf("its turn: Crossplane is let reconcile %d XRs at a time", p.turns))
		plan.Moving = true
		plans[t.ref.ID()] = plan
	}

	return now
}
