package hooks

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A scope is what the command hold is about.
type scope struct {
	survey *live.Survey
	// levels are the claims, the XRs from the roots down, the schedules, and the MRs.
	levels [][]*unstructured.Unstructured
	// usages are the composed Usages by their XR.
	usages map[xp.ID][]*unstructured.Unstructured
	// others are the composed objects that no hold can stop, one of each kind.
	others []xp.Ref
	// unread are the kinds that could not be read, with the reason.
	unread map[string]string
}

func (sc *scope) all() []*unstructured.Unstructured { return slices.Concat(sc.levels...) }

// scopeOf reads the trees in the namespace, or all. It fails if there are none.
func (o *options) scopeOf(ctx context.Context, cluster *live.Cluster) (*scope, error) {
	sc, err := o.readScope(ctx, cluster)
	if err == nil && sc.isEmpty() {
		return nil, o.noScope()
	}

	return sc, err
}

func (sc *scope) isEmpty() bool { return len(sc.all()) == 0 && len(sc.unread) == 0 }

func (o *options) noScope() error {
	where := "this cluster"
	if o.namespace != "" {
		where = "the namespace " + o.namespace
	}

	return reason.NotFound.Errorf("cannot find a claim, an XR or a managed resource in %s; check -n and --context", where)
}

// readScope reads the trees in the namespace, or all.
func (o *options) readScope(ctx context.Context, cluster *live.Cluster) (*scope, error) {
	s, err := cluster.Survey(ctx, live.Scope{Namespace: o.namespace, Velero: o.velero})
	if err != nil {
		return nil, err
	}
	w := &scopeWalk{
		scope: &scope{survey: s, unread: map[string]string{}, usages: map[xp.ID][]*unstructured.Unstructured{}},
		xrs:   map[int][]*unstructured.Unstructured{}, seen: map[xp.ID]bool{},
	}
	for _, root := range s.Trees() {
		w.visit(root, xp.ID{}, 0)
	}
	for _, u := range s.All() {
		if _, isComposed := xp.Controller(u); xp.IsUntouched(u) && !isComposed {
			w.managed = append(w.managed, u) // Nothing shows yet that it is a tree of its own.
		}
	}
	var schedules []*unstructured.Unstructured
	if o.namespace == "" {
		if schedules, err = cluster.Schedules(ctx); err != nil {
			return nil, err
		}
	}
	for gk, why := range s.UnreadKinds() {
		w.scope.unread[gk.String()] = why
	}
	w.scope.levels = [][]*unstructured.Unstructured{w.claims}
	for _, depth := range slices.Sorted(maps.Keys(w.xrs)) {
		w.scope.levels = append(w.scope.levels, w.xrs[depth])
	}
	w.scope.levels = append(w.scope.levels, schedules, w.managed)

	return w.scope, nil
}

// A scopeWalk collects the objects of trees.
type scopeWalk struct {
	scope           *scope
	claims, managed []*unstructured.Unstructured
	xrs             map[int][]*unstructured.Unstructured
	seen            map[xp.ID]bool
	kinds           map[string]bool
}

func (w *scopeWalk) visit(n *report.Node, parent xp.ID, depth int) {
	u := w.scope.survey.Get(n.Ref)
	if u == nil || n.State == report.Foreign || w.seen[n.ID()] {
		return
	}
	w.seen[n.ID()] = true
	switch gk := n.GroupVersionKind().GroupKind(); {
	case xp.IsClaim(u):
		w.claims = append(w.claims, u)
	case xp.IsComposite(u):
		w.xrs[depth] = append(w.xrs[depth], u)
	case xp.IsManaged(u), xp.IsUntouched(u):
		w.managed = append(w.managed, u)
	case xp.IsUsage(u):
		w.scope.usages[parent] = append(w.scope.usages[parent], u)
	case xp.IsCustomGroup(gk.Group) && !xp.IsCrossplaneGroup(gk.Group) && !w.kinds[gk.String()]:
		if w.kinds == nil {
			w.kinds = map[string]bool{}
		}
		w.kinds[gk.String()] = true
		w.scope.others = append(w.scope.others, n.Ref)
	}
	for _, child := range n.Children {
		w.visit(child, n.ID(), depth+1)
	}
}

// problems returns what could not be read, and the kinds whose controllers go on.
func (sc *scope) problems() []report.Problem {
	var problems []report.Problem
	for _, kind := range slices.Sorted(maps.Keys(sc.unread)) {
		problems = append(problems, report.Problem{
			Code: reason.NotRead, Severity: report.Error, Object: xp.Ref{Kind: kind},
			Reason: reason.NotRead.Messagef("objects of this kind can't be read, so some can go on: %s", sc.unread[kind]).String(),
			Next:   "give the rights in example/rbac/hold.yaml, or repair what serves the kind",
		})
	}
	for _, r := range sc.others {
		problems = append(problems, report.Problem{
			Code: reason.OthersCompose, Severity: report.Warning, Object: r,
			Reason: reason.OthersCompose.Messagef("an XR composes it and others of its kind, and neither Crossplane nor a provider reconciles them; a hold does not " +
				"stop their controller").String(),
			Next: "if that controller writes to the cloud, stop it during the move",
		})
	}

	return problems
}
