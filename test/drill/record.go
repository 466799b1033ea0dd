package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A Slot is the place of one composed resource: its instance, and its name in the Composition.
type Slot struct {
	Instance string
	Resource string
}

// A Holder is the resource in a Slot.
type Holder struct {
	Composite    string
	Kind         string
	Name         string
	ExternalName string
}

// A Record has a namespace's instances at one time.
type Record struct {
	Slots map[Slot]Holder
	// External are the IDs of the resources that the cloud had for them.
	External map[string]bool
	// Seq is the last entry of the cloud's journal.
	Seq int64
}

var generated = regexp.MustCompile(`-[a-z0-9]{5}$`)

// instanceOf returns the name of the instance of an XR. On v1 an XR has the name of its claim and a
// random suffix.
func (p Platform) instanceOf(composite string) string {
	if p.v1() {
		return generated.ReplaceAllString(composite, "")
	}

	return composite
}

// Record records the current state. A slot counts only if the XR references the MR and the MR's
// controller is the live XR.
func (p Platform) Record(ctx context.Context, c *stack.Cluster, cloud *api.Client) (*Record, error) {
	r := &Record{Slots: map[Slot]Holder{}, External: map[string]bool{}}
	mrs, err := p.Managed(ctx, c)
	if err != nil {
		return nil, err
	}
	xrs, err := p.Composites(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, xr := range xrs {
		listed := map[string]bool{}
		for _, ref := range p.Refs(&xr) {
			listed[ref] = true
		}
		for _, mr := range mrs {
			if !listed[mr.GetKind()+"/"+mr.GetName()] || controller(&mr) != xr.GetUID() {
				continue
			}
			slot := Slot{Instance: p.instanceOf(xr.GetName()), Resource: mr.GetAnnotations()["crossplane.io/composition-resource-name"]}
			r.Slots[slot] = Holder{
				Composite: xr.GetName(), Kind: mr.GetKind(), Name: mr.GetName(), ExternalName: mr.GetAnnotations()["crossplane.io/external-name"],
			}
		}
	}
	resources, err := cloud.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot list what the cloud has: %w", err)
	}
	for _, res := range resources {
		if p.caused(res.CreatedBy) {
			r.External[res.ID] = true
		}
	}
	r.Seq, err = LastEntry(ctx, cloud)

	return r, err
}

// LastEntry returns the number of the last entry of the cloud's journal; 0 if there is none.
func LastEntry(ctx context.Context, cloud *api.Client) (int64, error) {
	journal, err := cloud.Journal(ctx, 0)
	if err != nil {
		return 0, fmt.Errorf("cannot read the cloud's journal: %w", err)
	}
	if len(journal) == 0 {
		return 0, nil
	}

	return journal[len(journal)-1].Seq, nil
}

// caused reports whether a call to the cloud was made for this namespace's instances.
func (p Platform) caused(by api.Caller) bool {
	return strings.HasPrefix(by.Composite, p.prefix()+"-")
}

// Refs returns the resource references of an XR, as Kind/name.
func (p Platform) Refs(xr *unstructured.Unstructured) []string {
	list, _ := crossplaneField(xr, "resourceRefs").([]any)
	var refs []string
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		refs = append(refs, fmt.Sprint(m["kind"], "/", m["name"]))
	}

	return refs
}

func controller(u *unstructured.Unstructured) types.UID {
	ref := metav1.GetControllerOf(u)
	if ref == nil {
		return ""
	}

	return ref.UID
}

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
	owners, err := p.listOwn(ctx, c, p.owners()...)

	return len(slices.DeleteFunc(owners, func(u unstructured.Unstructured) bool { return !Held(&u) })), err
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
	external := map[string]string{}
	for _, h := range record.Slots {
		external[h.Name] = h.Kind + " " + h.ExternalName
	}

	return awaitReads(ctx, c, cloud, p.Namespace, external, since)
}

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
	l.Seq, err = LastEntry(ctx, cloud)

	return l, err
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

// CallerUID returns the UID of the MR that a provider has made a call for.
func CallerUID(e api.Entry) string { return e.ManagedBy[strings.LastIndex(e.ManagedBy, " ")+1:] }

// IsManaged reports whether an object is an MR of one of the cloud's providers.
func IsManaged(u *unstructured.Unstructured) bool {
	group := u.GroupVersionKind().Group

	return strings.HasPrefix(group, "cloud.") || strings.HasPrefix(group, "upjet.")
}

// Changes returns the creations for the scene, and the deletions of its resources or of the given
// ones, and other calls if they are asked for, after an entry of the cloud's journal. Crossplane
// removes the labels of resources that it garbage-collects.
func (s Scene) Changes(ctx context.Context, cloud *api.Client, since int64, external map[string]bool, more ...api.Op) ([]api.Entry, error) {
	entries, err := cloud.Journal(ctx, since, append(more, api.Create, api.Delete)...)
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
	external := map[string]string{}
	for id, u := range all.objects {
		if IsManaged(u) && !isPausedByUser(u) {
			external[id.String()] = string(u.GetUID())
		}
	}

	return awaitReads(ctx, c, cloud, s.Name, external, since)
}

// awaitReads waits until a provider has asked the cloud for each external resource, as kind and ID or
// as the UID of its MR, after an entry of the cloud's journal.
func awaitReads(ctx context.Context, c *stack.Cluster, cloud *api.Client, of string, external map[string]string, since int64) error {
	return c.Wait(ctx, stepTimeout, "every MR of "+of+" to be reconciled once more", func(ctx context.Context) error {
		entries, err := cloud.Journal(ctx, since, api.Read)
		if err != nil {
			return err
		}
		read := map[string]bool{}
		for _, e := range entries {
			read[string(e.Kind)+" "+e.ID], read[CallerUID(e)] = true, true
		}
		var missing []error
		for mr, id := range external {
			if !read[id] {
				missing = append(missing, fmt.Errorf("%s (%s) was not", mr, id))
			}
		}

		return summarize(missing)
	})
}
