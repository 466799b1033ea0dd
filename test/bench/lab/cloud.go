package lab

import (
	"context"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/copies"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
)

// external is a cloud resource of the i-th copy, with its own name.
type external struct {
	copied int
	of     copies.External
}

// stock creates the cloud resources of the copies, and returns the names that the cloud gave them.
func (l *Lab) stock(ctx context.Context, trees int) (map[external]string, error) {
	names := map[external]string{}
	for _, e := range l.template.Externals() {
		model, err := l.cloud.Get(ctx, api.Kind(e.Kind), e.Name)
		if err != nil {
			return nil, err
		}
		for i := range trees {
			id, chosen := e.Renamed(i)
			if !chosen {
				id = ""
			}
			r, err := l.cloud.Create(ctx, model.Kind, id, model.Spec)
			if chosen && api.IsConflict(err) { // An earlier backup has the same resource.
				r, err = l.cloud.Get(ctx, model.Kind, id)
			}
			if err != nil {
				return nil, err
			}
			names[external{i, e}] = r.ID
		}
	}

	return names, nil
}

// count remembers the resources of the cloud after it has created those for a backup of that many
// trees.
func (l *Lab) count(ctx context.Context, trees int) (err error) {
	if _, err = l.backup(ctx, trees); err != nil {
		return err
	}
	l.cloudHad, err = l.inCloud(ctx)

	return err
}

// created returns how many resources the cloud has beyond the counted ones.
func (l *Lab) created(ctx context.Context) (int, error) {
	now, err := l.inCloud(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for id := range now {
		if !l.cloudHad[id] {
			n++
		}
	}

	return n, nil
}

func (l *Lab) inCloud(ctx context.Context) (map[string]bool, error) {
	resources, err := l.cloud.List(ctx)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, r := range resources {
		ids[string(r.Kind)+" "+r.ID] = true
	}

	return ids, nil
}
