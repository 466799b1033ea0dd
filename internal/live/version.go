package live

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// inServed returns refs with the versions in which their objects can be read: the version of the
// ref, else one in which the kind is served.
func (o *observer) inServed(refs []xp.Ref) ([]xp.Ref, error) {
	for n, r := range refs {
		gvk := r.GroupVersionKind()
		if o.cluster.isKnown(gvk) {
			continue
		}
		other, looked := o.servedVersions[gvk]
		if !looked {
			if err := o.discover(gvk); err != nil {
				return nil, err
			}
			if !o.cluster.isKnown(gvk) {
				var err error
				if other, err = o.otherVersion(gvk); err != nil {
					return nil, err
				}
			}
			o.servedVersions[gvk] = other
		}
		if !other.Empty() {
			o.snapshot.AddRetired(gvk, other)
			refs[n].APIVersion = other.GroupVersion().String()
		}
	}

	return refs, nil
}

// otherVersion returns a kind in another version in which it is served. It returns an empty one if
// the kind is served in the given version or in none. It skips versions that do not answer.
func (o *observer) otherVersion(gvk schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	groups, err := o.cluster.groupList()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	for _, version := range versionsOf(groups, gvk.Group) {
		other := gvk.GroupKind().WithVersion(version)
		gv := other.GroupVersion()
		if o.unanswered[gv] != nil {
			continue
		}
		list, err := o.cluster.kindsOf(gv)
		if err != nil {
			o.unanswered[gv] = err

			continue
		}
		if _, ok := find(list, gvk.Kind); !ok {
			continue
		}
		if other == gvk {
			return schema.GroupVersionKind{}, nil
		}

		return other, nil
	}

	return schema.GroupVersionKind{}, nil
}
