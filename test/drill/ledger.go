package drill

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A Ledger has the cloud's resources of a scene at one time.
type Ledger struct {
	// External are the resources, as kind and ID.
	External map[string]bool
	// Seq is the last entry of the cloud's journal.
	Seq int64
}

// Ledger returns what the cloud has for the scene now.
func (s Scene) Ledger(ctx context.Context, cloud *api.Client) (*Ledger, error) {
	l := &Ledger{External: map[string]bool{}}
	resources, err := cloud.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range resources {
		if s.caused(r.CreatedBy) {
			l.External[string(r.Kind)+" "+r.ID] = true
		}
	}
	journal, err := cloud.Journal(ctx, 0)
	if err != nil {
		return nil, err
	}
	if len(journal) > 0 {
		l.Seq = journal[len(journal)-1].Seq
	}

	return l, nil
}

// caused reports whether a call was made for an object of this scene. The provider sends the MR
// that it calls for, as version, kind, name and UID.
func (s Scene) caused(by api.Caller) bool {
	parts := strings.Split(by.ManagedBy, ", ")
	if len(parts) != 4 {
		return strings.HasPrefix(by.Composite, s.prefix())
	}
	if namespace, _, ok := strings.Cut(parts[2], "/"); ok {
		return slices.Contains(s.namespaces(), namespace)
	}

	return strings.HasPrefix(parts[2], s.prefix()) || strings.HasPrefix(by.Composite, s.prefix())
}

// Changes returns the creations for the scene, and the deletions of its resources or of the given
// ones, after an entry of the cloud's journal. Crossplane removes the labels of resources that it
// garbage-collects.
func (s Scene) Changes(ctx context.Context, cloud *api.Client, since int64, external map[string]bool) ([]api.Entry, error) {
	entries, err := cloud.Journal(ctx, since, api.Create, api.Delete)
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(entries, func(e api.Entry) bool {
		return e.Status >= http.StatusBadRequest || !s.caused(e.Caller) && !external[string(e.Kind)+" "+e.ID]
	}), nil
}

// AwaitReads waits until each MR of the scene has been reconciled after an entry of the cloud's
// journal, so that damage is visible.
func (s Scene) AwaitReads(ctx context.Context, c *stack.Cluster, cloud *api.Client, since int64) error {
	all, err := s.objects(ctx, c)
	if err != nil {
		return err
	}

	return c.Wait(ctx, stepTimeout, "every MR of "+s.Name+" to be reconciled once more", func(ctx context.Context) error {
		entries, err := cloud.Journal(ctx, since, api.Read)
		if err != nil {
			return err
		}
		read := map[string]bool{}
		for _, e := range entries {
			read[string(e.Kind)+" "+e.ID] = true
		}
		var missing []error
		for id, u := range all.objects {
			external := u.GetAnnotations()["crossplane.io/external-name"]
			if strings.HasPrefix(id.Group, "cloud.") && !isPausedByUser(u) && !read[id.Kind+" "+external] {
				missing = append(missing, fmt.Errorf("%s (%s) was not", id, external))
			}
		}

		return summarize(missing)
	})
}
