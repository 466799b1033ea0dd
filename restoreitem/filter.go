package restoreitem

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// inFilters leaves out what the restore's filters do, which Velero would drop without a word, and names it; left is "" if they leave nothing out. What they
// leave out by resource is asked for all the same: short names are known to Velero alone.
func (o *Order) inFilters(item *unstructured.Unstructured, first []xp.Item, restore *velerov1.Restore) (in []xp.Item, left string) {
	var out []string
	for _, i := range first {
		if !xp.CanExist(i.Namespace, i.Name) {
			o.log.WithFields(logrus.Fields{"object": xp.String(item), "item": i.String()}).Warn("Not restored first: " + xp.String(item) + " names " +
				strconv.Quote(i.Name) + ", and nothing can be called that; find out who has written it")

			continue
		}
		if !inScope(i, restore) {
			out = append(out, i.String())

			continue
		}
		in = append(in, i)
	}
	for _, i := range slices.Concat(in, o.unasked(item, restore)) {
		if !isFiltered(i, restore) {
			continue
		}
		// Thousands can run on the same, a claim lists what its XR does, and each MR can publish in a Secret.
		key, named := i, i.String()
		if isSecret := i.GroupResource == (schema.GroupResource{Resource: "secrets"}); isSecret {
			key, named = xp.Item{GroupResource: i.GroupResource}, named+", as all Secrets"
		}
		if _, told := o.told.LoadOrStore(key, true); !told {
			out = append(out, named)
		}
	}
	if len(out) == 0 {
		return in, ""
	}
	const few = 10
	left = "The filters of the restore leave out what " + xp.String(item) + " belongs with; if it isn't in the cluster, restore again without " +
		"--include-cluster-resources=false and with the namespaces and the resources of these"
	fields := logrus.Fields{"object": xp.String(item), "items": out}
	o.log.WithFields(fields).Warn(left)
	if more := len(out) - few; more > 0 {
		out = append(out[:few:few], fmt.Sprintf("and %d more", more))
	}

	return in, withFields(logrus.Fields{"items": strings.Join(out, ", ")}, left)
}

// unasked returns what an item is to come back with and does not ask for, if the filters could leave it out by resource: what an XR composes, without which
// it is held, and the Secret that an item publishes in, in whose place its provider makes another.
func (o *Order) unasked(item *unstructured.Unstructured, restore *velerov1.Restore) []xp.Item {
	if len(restore.Spec.IncludedResources) == 0 && len(restore.Spec.ExcludedResources) == 0 {
		return nil
	}
	var items []xp.Item
	if r, publishes := xp.SecretRef(item); publishes {
		items = append(items, xp.Item{GroupResource: schema.GroupResource{Resource: "secrets"}, Namespace: r.Namespace, Name: r.Name})
	}
	if !isXR(item) {
		return items
	}
	composed, err := xp.CompositeFrom(item).SavedRefs()
	if err != nil {
		return items // The XR is refused.
	}
	for _, r := range composed {
		gvr, namespaced, err := o.mapper.Resource(r.GroupVersionKind())
		if err != nil {
			continue // The adoption says so.
		}
		if !namespaced {
			r.Namespace = ""
		}
		items = append(items, xp.Item{GroupResource: gvr.GroupResource(), Namespace: r.Namespace, Name: r.Name})
	}

	return items
}

// inScope tells whether a restore takes what is in an item's namespace, or in none.
func inScope(i xp.Item, restore *velerov1.Restore) bool {
	if i.Namespace == "" {
		return ptr.Deref(restore.Spec.IncludeClusterResources, true)
	}

	return included(restore, i.Namespace)
}

// isFiltered tells whether a restore's filters by resource leave an item out.
func isFiltered(i xp.Item, restore *velerov1.Restore) bool {
	in, out := restore.Spec.IncludedResources, restore.Spec.ExcludedResources

	return xp.MatchesResource(out, i.GroupResource) || len(in) > 0 && !xp.MatchesResource(in, i.GroupResource)
}
