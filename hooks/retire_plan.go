package hooks

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// plan returns the objects to delete: Usages, which protect others, then composed objects before
// their XRs. It records those that stay.
func (r *retire) plan(sc *scope, other *report.Report) []*unstructured.Unstructured {
	var usages, plan []*unstructured.Unstructured
	all := sc.all()
	busy := r.busyAbove(all)
	slices.Reverse(all) // MRs, schedules, XRs from the deepest up, claims.
	for _, u := range all {
		id := xp.RefTo(u).ID()
		why := cmp.Or(r.whyStays(u, other), busy[id], r.stayingBelow(id))
		if why.IsZero() {
			usages, plan = append(usages, sc.usages[id]...), append(plan, u)
		} else {
			r.keep(u, why, "see what the other cluster reports about it, make a new report there, and run retire again")
		}
	}

	return append(usages, plan...)
}

// busyAbove returns why objects stay because something above them is not quiet: it would compose
// them again, and their providers would create their external resources again. all has claims
// first, then XRs, then what these compose.
func (r *retire) busyAbove(all []*unstructured.Unstructured) map[xp.ID]reason.Message {
	busy := map[xp.ID]reason.Message{}
	var visit func(above xp.Ref, why reason.Message)
	visit = func(above xp.Ref, why reason.Message) {
		for _, child := range r.below[above.ID()] {
			if busy[child.ID()].IsZero() {
				busy[child.ID()] = reason.NotHandedOver.Messagef("%s would compose it again, and is not quiet: %s", above, why.Text)
				visit(child, why)
			}
		}
	}
	for _, u := range all {
		if why := r.key.WhyNotQuiet(u); !why.IsZero() {
			visit(xp.RefTo(u), why)
		}
	}

	return busy
}

// keep records that an object stays.
func (r *retire) keep(u *unstructured.Unstructured, why reason.Message, next string) {
	ref := xp.RefTo(u)
	r.stays[ref.ID()] = true
	r.results = append(r.results, report.Release{Object: ref, Result: report.StillHeld, Code: why.Code, Reason: why.String(), Next: next})
}

// stayingBelow returns why an object stays because something that it composes does.
func (r *retire) stayingBelow(id xp.ID) reason.Message {
	for _, child := range r.below[id] {
		if r.stays[child.ID()] {
			return reason.NotAdoptedThere.Messagef("%s stays", child)
		}
	}

	return reason.Message{}
}

// childrenOf returns what each object in the trees composes or binds.
func childrenOf(trees []*report.Node) map[xp.ID][]xp.Ref {
	below := map[xp.ID][]xp.Ref{}
	var visit func(n *report.Node)
	visit = func(n *report.Node) {
		for _, child := range n.Children {
			if child.State != report.Foreign {
				below[n.ID()] = append(below[n.ID()], child.Ref)
			}
			visit(child)
		}
	}
	for _, root := range trees {
		visit(root)
	}

	return below
}

// whyStays returns why an object must stay in this cluster; zero if it may be deleted.
func (r *retire) whyStays(u *unstructured.Unstructured, other *report.Report) reason.Message {
	if why := r.key.WhyNotQuiet(u); !why.IsZero() {
		return why
	}
	h, err := r.key.HoldOf(u)
	if err != nil || !h.IsHandover() {
		return reason.NotHandedOver.Messagef("a Restore holds it, and not the command hold")
	}
	if since, err := time.Parse(time.RFC3339, h.Since); err != nil || other.Time.Before(since) {
		return reason.ReportUnusable.Messagef("the report is older than the handover, which began at %s", h.Since)
	}
	if xp.IsSchedule(u) {
		return reason.Message{} // It has no external resource.
	}

	return r.whyNotAdopted(u)
}

// whyNotAdopted returns why the other cluster's report does not prove that it has adopted an object.
func (r *retire) whyNotAdopted(u *unstructured.Unstructured) reason.Message {
	ref := xp.RefTo(u)
	if there, ok := r.namespaces[ref.Namespace]; ok {
		ref.Namespace = there
	}
	n := r.adopted[ref.ID()]
	switch {
	case n == nil:
		return reason.NotAdoptedThere.Messagef("the report does not have it")
	case n.Hold != nil || n.State == report.Held:
		return reason.NotAdoptedThere.Messagef("it is still held there")
	case n.State != report.Adopted && n.State != report.Alone:
		return reason.NotAdoptedThere.Messagef("it is %s there", n.State)
	case xp.IsManaged(u) && n.ExternalName != xp.Annotation(u, xp.AnnotationExternalName):
		return reason.NotAdoptedThere.Messagef("its external-name is %q here and %q there", xp.Annotation(u, xp.AnnotationExternalName), n.ExternalName)
	default:
		return reason.Message{}
	}
}
