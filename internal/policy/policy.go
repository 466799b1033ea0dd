// Package policy reads the filters in Velero's resource policies (velero internal/resourcepolicies).
// It has no client.
package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	"github.com/vmware-tanzu/velero/pkg/util/collections"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Policies are the filters in a ConfigMap of resource policies.
type Policies struct {
	Version string `json:"version"`
	// IncludeExclude are further resource filters of a Backup.
	IncludeExclude *Resources `json:"includeExcludePolicy"`
	Cluster        *Scope     `json:"clusterScopedFilterPolicy"`
	Namespaced     []Scope    `json:"namespacedFilterPolicies"`
	// Volumes are only for Backups.
	Volumes []any `json:"volumePolicies"`
}

// Resources are filters by resource.
type Resources struct {
	ExcludedClusterScoped   []string `json:"excludedClusterScopedResources"`
	IncludedNamespaceScoped []string `json:"includedNamespaceScopedResources"`
	ExcludedNamespaceScoped []string `json:"excludedNamespaceScopedResources"`
}

// A Scope has the filters for cluster-scoped objects, or those for namespaces, of which each can be a
// glob. In namespaces Velero finds only those kinds for which there is a filter.
type Scope struct {
	Namespaces []string `json:"namespaces"`
	Filters    []Filter `json:"resourceFilters"`
}

// A Filter selects objects of some kinds; without kinds, of those that have no other filter.
type Filter struct {
	Kinds            []string                `json:"kinds"`
	LabelSelector    *metav1.LabelSelector   `json:"labelSelector"`
	OrLabelSelectors []*metav1.LabelSelector `json:"orLabelSelectors"`
	Names            []string                `json:"names"`
	ExcludedNames    []string                `json:"excludedNames"`
}

// An Object is what filters ask of one.
type Object struct {
	Resource        schema.GroupResource
	Namespace, Name string
	// Kind is "" if it is not known, and Labels are asked for only if they matter.
	Kind   string
	Labels func() map[string]string
}

// Parse reads the policies in a ConfigMap.
func Parse(data map[string]string) (*Policies, error) {
	if len(data) != 1 {
		return nil, fmt.Errorf("it has %d keys, and Velero takes one", len(data))
	}
	p := &Policies{}
	for _, text := range data {
		if err := yaml.Unmarshal([]byte(text), p); err != nil {
			return nil, err //nolint:wrapcheck // It is all that there is to say.
		}
	}

	return p, nil
}

// scopes returns the filters by scope, those for cluster-scoped objects first.
func (p *Policies) scopes() []Scope {
	if p.Cluster == nil {
		return p.Namespaced
	}

	return append([]Scope{*p.Cluster}, p.Namespaced...)
}

// Filters returns all filters.
func (p *Policies) Filters() []*Filter {
	var all []*Filter
	for _, scope := range p.scopes() {
		for i := range scope.Filters {
			all = append(all, &scope.Filters[i])
		}
	}

	return all
}

// CheckRestore returns why Velero refuses a Restore with these policies
// (velero internal/resourcepolicies, ValidateForRestore).
func (p *Policies) CheckRestore() error {
	var errs []error
	check := func(refused bool, why string) {
		if refused {
			errs = append(errs, errors.New(why))
		}
	}
	check(p.Version != "v1", fmt.Sprintf("its version is %q, and Velero takes v1", p.Version))
	check(len(p.Volumes) > 0, "volumePolicies are for Backups only")
	check(p.IncludeExclude != nil, "includeExcludePolicy is for Backups only")
	check(p.Cluster != nil && slices.ContainsFunc(p.Cluster.Filters, Filter.isCatchAll), "a filter of clusterScopedFilterPolicy has no kinds")
	for _, n := range p.Namespaced {
		check(len(n.Namespaces) == 0, "a policy of namespacedFilterPolicies has no namespaces")
	}
	for _, scope := range p.scopes() {
		check(len(scope.Filters) == 0, "a policy has no resourceFilters")
	}
	for _, f := range p.Filters() {
		check(isPresent(f.LabelSelector) && len(f.OrLabelSelectors) > 0, "a filter has both labelSelector and orLabelSelectors")
		check(f.isCatchAll() && len(f.Names)+len(f.ExcludedNames) > 0, "a filter without kinds has names")
		for _, selector := range f.selectors() {
			_, err := metav1.LabelSelectorAsSelector(selector)
			errs = append(errs, err)
		}
	}

	return errors.Join(errs...)
}

// Selects reports whether Velero finds an object by itself. It returns false for applies if the
// policies say nothing of the object, so that the label selectors of the Backup or Restore count
// (velero pkg/restore/restore.go, getSelectedRestoreableItems, and pkg/backup/item_collector.go).
func (p *Policies) Selects(o Object) (selected, applies bool) {
	f, applies := p.filterOf(o)
	if f == nil {
		return false, applies
	}

	return f.admits(o.Name) && f.matches(o), true
}

// Admits reports whether Velero puts an object into a backup that an action requests. Of filters
// only the names count then (velero pkg/backup/item_backupper.go, itemInclusionChecks).
func (p *Policies) Admits(o Object) bool {
	f, _ := p.filterOf(o)

	return f == nil || f.admits(o.Name)
}

// filterOf returns the filter for an object; nil if it has none. applies means that Velero then
// does not find it.
func (p *Policies) filterOf(o Object) (f *Filter, applies bool) {
	scope := p.Cluster
	if o.Namespace != "" {
		scope = p.of(o.Namespace)
	}
	if scope == nil {
		return nil, false
	}
	isKind := func(kind string) bool { return strings.EqualFold(kind, o.Kind) }
	i := slices.IndexFunc(scope.Filters, func(f Filter) bool {
		return !f.isCatchAll() && (xp.MatchesResource(f.Kinds, o.Resource) || slices.ContainsFunc(f.Kinds, isKind))
	})
	if i < 0 {
		i = slices.IndexFunc(scope.Filters, Filter.isCatchAll)
	}
	if i < 0 {
		return nil, o.Namespace != ""
	}

	return &scope.Filters[i], true
}

// of returns the filters of a namespace: those of its name, else those of the first glob that
// matches.
func (p *Policies) of(namespace string) *Scope {
	i := slices.IndexFunc(p.Namespaced, func(n Scope) bool { return slices.Contains(n.Namespaces, namespace) })
	if i < 0 {
		i = slices.IndexFunc(p.Namespaced, func(n Scope) bool {
			return slices.ContainsFunc(n.Namespaces, func(pattern string) bool {
				g, err := glob.Compile(pattern)

				return err == nil && strings.ContainsAny(pattern, "*?[") && g.Match(namespace)
			})
		})
	}
	if i < 0 {
		return nil
	}

	return &p.Namespaced[i]
}

func (f Filter) isCatchAll() bool { return len(f.Kinds) == 0 || len(f.Kinds) == 1 && f.Kinds[0] == "*" }

func (f Filter) admits(name string) bool {
	return collections.NewIncludesExcludes().Includes(f.Names...).Excludes(f.ExcludedNames...).ShouldInclude(name)
}

// selectors returns the label selectors, of which one must match. Velero ignores an empty one.
func (f Filter) selectors() []*metav1.LabelSelector {
	all := append([]*metav1.LabelSelector{f.LabelSelector}, f.OrLabelSelectors...)

	return slices.DeleteFunc(all, func(s *metav1.LabelSelector) bool { return !isPresent(s) })
}

func isPresent(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}

func (f Filter) matches(o Object) bool {
	selectors := f.selectors()

	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(s *metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(s)

		return err == nil && selector.Matches(labels.Set(o.Labels()))
	})
}
