package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// An Outcome compares a namespace's instances after a restore with those before.
type Outcome struct {
	// Creates and Deletes count the calls since before that changed the cloud.
	Creates, Deletes int
	// Duplicates are external resources beyond one for each slot.
	Duplicates int
	// Orphans are external resources from before that belong to no XR any more.
	Orphans int
	// Adopted of Total slots have the same composite, MR and external resource as before, and their
	// controller is the live XR.
	Adopted, Total int
	// Holds counts the XRs and claims that the plugin still holds.
	Holds int
}

// Sound reports whether no resource was lost and none was created again.
func (o Outcome) Sound() bool {
	return o == Outcome{Adopted: o.Total, Total: o.Total} && o.Total > 0
}

// Compare compares the current state with an earlier record.
func (p Platform) Compare(ctx context.Context, c *stack.Cluster, cloud *api.Client, before *Record) (Outcome, error) {
	o := Outcome{Total: len(before.Slots)}
	now, err := p.Record(ctx, c, cloud)
	if err != nil {
		return o, err
	}
	reached := map[string]bool{}
	for slot, holder := range now.Slots {
		reached[holder.ExternalName] = true
		if before.Slots[slot] == holder {
			o.Adopted++
		}
	}
	for id := range before.External {
		if now.External[id] && !reached[id] {
			o.Orphans++
		}
	}
	entries, err := cloud.Journal(ctx, before.Seq, api.Create, api.Delete)
	if err != nil {
		return o, fmt.Errorf("cannot read the cloud's journal: %w", err)
	}
	// Crossplane removes the labels of resources that it garbage-collects, so a deletion is known
	// by its ID only.
	mine := maps.Clone(before.External)
	for _, e := range entries {
		switch {
		case e.Status >= http.StatusBadRequest:
		case e.Op == api.Create && p.caused(e.Caller):
			mine[e.ID] = true
			o.Creates++
		case e.Op == api.Delete && mine[e.ID]:
			o.Deletes++
		}
	}
	if o.Duplicates, err = p.duplicates(ctx, cloud); err != nil {
		return o, err
	}
	o.Holds, err = p.holds(ctx, c)

	return o, err
}

func (p Platform) duplicates(ctx context.Context, cloud *api.Client) (int, error) {
	resources, err := cloud.List(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot list what the cloud has: %w", err)
	}
	count := map[Slot]int{}
	duplicates := 0
	for _, r := range resources {
		if !p.caused(r.CreatedBy) {
			continue
		}
		slot := Slot{Instance: p.instanceOf(r.CreatedBy.Composite), Resource: r.CreatedBy.CompositionResourceName}
		count[slot]++
		if count[slot] > 1 {
			duplicates++
		}
	}

	return duplicates, nil
}

func (p Platform) holds(ctx context.Context, c *stack.Cluster) (int, error) {
	instances, err := p.Instances(ctx, c)
	if err != nil {
		return 0, err
	}
	if p.v1() {
		xrs, err := p.Composites(ctx, c)
		if err != nil {
			return 0, err
		}
		instances = append(instances, xrs...)
	}
	holds := 0
	for _, u := range instances {
		if Held(&u) {
			holds++
		}
	}

	return holds, nil
}

// Held reports whether an object has a mark of its own from the plugin. A Composition can copy an
// XR's mark onto a composed resource.
func Held(u *unstructured.Unstructured) bool {
	for annotation, value := range u.GetAnnotations() {
		if strings.HasPrefix(annotation, "velero.crossplane.") && !isCopied(value, u.GetName()) {
			return true
		}
	}

	return false
}

// isCopied reports whether a mark was written for an object of another name.
func isCopied(mark, name string) bool {
	var m struct {
		Of string `json:"of"`
	}

	return json.Unmarshal([]byte(mark), &m) == nil && m.Of != "" && !strings.HasSuffix(m.Of, "/"+name)
}

// AwaitReads waits until the provider has asked the cloud for every external resource of the record
// since an entry of its journal: each MR has then been reconciled once more.
func (p Platform) AwaitReads(ctx context.Context, c *stack.Cluster, cloud *api.Client, record *Record, since int64) error {
	return c.Wait(ctx, stepTimeout, "every MR in "+p.Namespace+" to be reconciled once more", func(ctx context.Context) error {
		entries, err := cloud.Journal(ctx, since, api.Read)
		if err != nil {
			return err
		}
		read := map[string]bool{}
		for _, e := range entries {
			read[e.ID] = true
		}
		missing := 0
		for _, h := range record.Slots {
			if !read[h.ExternalName] {
				missing++
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d of %d were not", missing, len(record.Slots))
		}

		return nil
	})
}
