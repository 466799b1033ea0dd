package drill

import (
	"context"
	"fmt"
	"regexp"
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
	journal, err := cloud.Journal(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read the cloud's journal: %w", err)
	}
	if len(journal) > 0 {
		r.Seq = journal[len(journal)-1].Seq
	}

	return r, nil
}

// caused reports whether a call to the cloud was made for this namespace's instances.
func (p Platform) caused(by api.Caller) bool {
	return strings.HasPrefix(by.Composite, p.prefix()+"-")
}

// Refs returns the resource references of an XR, as Kind/name.
func (p Platform) Refs(xr *unstructured.Unstructured) []string {
	path := []string{"spec", "crossplane", "resourceRefs"}
	if p.v1() {
		path = []string{"spec", "resourceRefs"}
	}
	list, _, _ := unstructured.NestedSlice(xr.Object, path...)
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
