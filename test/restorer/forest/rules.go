package forest

import (
	"slices"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"github.com/vmware-tanzu/velero/pkg/util/collections"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// rules select the items of an action, with Velero's own code.
type rules struct {
	resources *collections.IncludesExcludes
	labels    labels.Selector
	// known caches results: globs are slow.
	known map[schema.GroupResource]bool
}

func rulesOf(s velero.ResourceSelector) rules {
	selector, err := labels.Parse(s.LabelSelector)
	if err != nil {
		panic(err) // The plugin's own tests would have found it.
	}

	return rules{
		resources: collections.NewIncludesExcludes().Includes(s.IncludedResources...).Excludes(s.ExcludedResources...), labels: selector,
		known: map[schema.GroupResource]bool{},
	}
}

func (r rules) apply(i xp.Item, u *unstructured.Unstructured) bool {
	applies, ok := r.known[i.GroupResource]
	if !ok {
		applies = r.resources.ShouldInclude(i.GroupResource.String())
		r.known[i.GroupResource] = applies
	}

	return applies && r.labels.Matches(labels.Set(u.GetLabels()))
}

func included(in, out []string, name string) bool {
	return (len(in) == 0 || slices.Contains(in, name)) && !slices.Contains(out, name)
}

func selects(s *metav1.LabelSelector, u *unstructured.Unstructured) bool {
	return labels.SelectorFromSet(s.MatchLabels).Matches(labels.Set(u.GetLabels()))
}

func isTrue(b *bool) bool  { return b != nil && *b }
func isFalse(b *bool) bool { return b != nil && !*b }
