package live

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// investigate makes the Snapshot judge requested objects that another writer may have released.
func (p *poll) investigate(o *observer) {
	if o.requester.Restore == "" {
		return
	}
	_, label, _ := strings.Cut(o.selector, "=")
	o.snapshot.Investigate(adoption.Investigation{
		Requester: o.requester, Label: label, Requested: o.isRequested,
		Listed: func(r xp.Ref) bool {
			return isListed(o.labelled, r.GroupVersionKind(), r.Namespace) || isListed(o.whole, r.GroupVersionKind(), r.Namespace)
		},
		Whole: func(r xp.Ref) bool { return isListed(o.whole, r.GroupVersionKind(), r.Namespace) },
		Released: func(uid types.UID) bool {
			// Crossplane may have been reconciling the object when its hold was put on again. Then
			// the new hold is for what Crossplane was about to create.
			return p.hasTaken(uid, stepRelease) && !p.hasTaken(uid, adoption.StepAgain)
		},
		Unmarked: func(uid types.UID) bool { return p.hasTaken(uid, adoption.StepAgain) },
	})
}

// isRequested reports whether there is an operation for an object.
func (o *observer) isRequested(id xp.ID) bool {
	return slices.ContainsFunc(o.refs, func(r xp.Ref) bool { return r.ID() == id })
}

// keepLosses keeps the plans of objects that have lost something failed until the poll ends.
func (p *poll) keepLosses() {
	for id, plan := range p.plans {
		if plan.Lost {
			p.failed[id] = plan
		} else if before, lost := p.failed[id]; lost {
			plan.Lost, plan.Done, plan.Failed = true, false, before.Failed
			p.plans[id] = plan
		}
	}
}

// reportLost reports, once for each requested object, what it has lost since its hold was removed,
// and what a deleted MR has left behind.
func (p *poll) reportLost(ctx context.Context, o *observer) {
	losses := slices.DeleteFunc(adoption.Losses(o.snapshot, p.plans), func(n adoption.Notice) bool { return !o.isRequested(xp.RefTo(n.Target).ID()) })
	for _, n := range append(losses, o.snapshot.LeftBehind()...) {
		if _, seen := p.reportedLosses.LoadOrStore(n.Target.GetUID(), true); seen {
			continue
		}
		p.log.WithFields(logrus.Fields{
			"kind": n.Target.GetKind(), "namespace": n.Target.GetNamespace(), "name": n.Target.GetName(),
			"reason": cmp.Or(p.plans[xp.RefTo(n.Target).ID()].Failed.Code, reason.DeletedWhileObserved), // An XR's composed MR has no Plan.
		}).Error("Not adopted: " + n.Message)
		p.recordEvent(ctx, n)
	}
}
