package adopter

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
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
			return isListed(o.labelled, collectionOf(r)) || isListed(o.whole, collectionOf(r))
		},
		Whole: func(r xp.Ref) bool { return isListed(o.whole, collectionOf(r)) },
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
		p.record(ctx, n)
	}
}

// withCauses returns a Plan with the probable causes of reconciles that have been pending for at
// least the time after.
func withCauses(c *cluster.Cluster, plan adoption.Plan, w *adoption.Snapshot, after time.Duration, installed func() adoption.Installation) adoption.Plan {
	for _, s := range plan.Pending {
		if c.ServerNow().Sub(s.Since) >= after {
			plan = plan.Named(s, adoption.Stuck(w.Get(s.Ref), installed()))
		}
	}

	return plan
}

// installationOnce returns a function that reads Crossplane's Deployment on its first call. An
// installation that can't be read is not read again.
func installationOnce(ctx context.Context, c *cluster.Cluster, onError func(error)) func() adoption.Installation {
	return sync.OnceValue(func() adoption.Installation {
		i, err := c.Installation(ctx)
		if err != nil {
			i.Hidden = true
			onError(err)
		}

		return i
	})
}

// mostRefused is how many XRs a poll reads the Events of.
const mostRefused = 10

// explainRefused adds to plans of XRs why the API server refuses what they compose. Crossplane says
// that only in Events.
func (p *poll) explainRefused(ctx context.Context, w *adoption.Snapshot) {
	read := 0
	for id, plan := range p.plans {
		n := slices.IndexFunc(plan.Waiting, adoption.IsRefused)
		u := w.Get(xp.Ref{APIVersion: schema.GroupVersion{Group: id.Group, Version: "v1"}.String(), Kind: id.Kind, Namespace: id.Namespace, Name: id.Name})
		if n < 0 || u == nil || !xp.IsComposite(u) || read == mostRefused {
			continue
		}
		read++
		said, err := p.cluster.RefusalOf(ctx, u)
		if err != nil {
			p.log.WithField("object", xp.String(u)).WithError(err).Info("Cannot read why the API server refuses what it composes")
		}
		if said == "" {
			continue
		}
		plan.Waiting = slices.Clone(plan.Waiting)
		plan.Waiting[n] = adoption.WhyRefused(u, said)
		p.plans[id] = plan
	}
}

// reportLeftovers adds to the Plans the Usages that adopted XRs have left behind, and writes an
// Event about each XR that was adopted in this poll. It lists Usages once, and XRs only if an XR
// composed any of the Usages. It only logs errors, since these adoptions are complete.
func (p *poll) reportLeftovers(ctx context.Context, o *observer) {
	adopted := map[xp.ID]schema.GroupVersionKind{}
	for _, r := range o.snapshot.Subjects() {
		if u := o.snapshot.Get(r); u != nil && xp.IsComposite(u) && p.plans[r.ID()].Done {
			adopted[r.ID()] = u.GroupVersionKind()
		}
	}
	if len(adopted) == 0 {
		return
	}
	namespaces := usageNamespaces(adopted)
	var err error
	if o.usagesRead == nil || !slices.Equal(o.usagesRead, namespaces) {
		// A namespaced XR composes no ClusterUsage.
		o.usages, err = p.cluster.ListServed(ctx, xp.UsageKinds(), namespaces, metav1.ListOptions{LabelSelector: xp.LabelComposite})
		if err == nil {
			o.usagesRead = namespaces
		}
	}
	if err == nil && len(o.usages) > 0 {
		err = p.reportUsages(ctx, o, adopted)
	}
	if err != nil {
		p.log.WithError(err).Warn("Usages that were left behind are not reported")
	}
}

func (p *poll) reportUsages(ctx context.Context, o *observer, adopted map[xp.ID]schema.GroupVersionKind) error {
	var xrs []*unstructured.Unstructured
	byID := map[xp.ID]*unstructured.Unstructured{}
	for gvk := range sets.New(slices.Collect(maps.Values(adopted))...) {
		for _, namespace := range o.usagesRead {
			found, err := o.allOf(ctx, gvk, namespace)
			if err != nil {
				return err
			}
			for _, u := range found {
				if id := xp.RefTo(u).ID(); xp.IsComposite(u) && byID[id] == nil {
					xrs, byID[id] = append(xrs, u), u
				}
			}
		}
	}
	remarks := map[xp.ID][]reason.Message{}
	for _, left := range adoption.Leftovers(o.usages, xrs) {
		id := xp.RefTo(left.XR).ID()
		remarks[id] = append(remarks[id], left.Message())
	}
	for id, of := range remarks {
		if _, ok := adopted[id]; !ok {
			continue
		}
		plan := p.plans[id]
		plan.Remarks = append(plan.Remarks, of...)
		p.plans[id] = plan
		if !p.unfinished[id] {
			continue
		}
		if err := p.cluster.Warn(ctx, byID[id], adoption.EventLeftBehind, strings.Join(reason.Strings(of), "\n")); err != nil {
			return err
		}
	}

	return nil
}

// usageNamespaces returns the namespaces in which the adopted XRs can have left Usages: a namespaced
// XR composes only objects of its namespace. It returns "" for all namespaces if an XR is
// cluster-scoped or there are many namespaces.
func usageNamespaces(adopted map[xp.ID]schema.GroupVersionKind) []string {
	in := sets.New[string]()
	for id := range adopted {
		in.Insert(id.Namespace)
	}
	if in.Has("") || in.Len() > maxNamespaces {
		return []string{""}
	}

	return sets.List(in)
}

// allOf returns all objects of a kind, in a namespace or everywhere.
func (o *observer) allOf(ctx context.Context, gvk schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	if o.whole[cluster.Collection{GroupVersionKind: gvk}] {
		return o.snapshot.All(gvk.GroupKind(), nil), nil
	}

	return o.cluster.List(ctx, gvk, namespace, metav1.ListOptions{})
}
