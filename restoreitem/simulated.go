package restoreitem

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A DryRunCluster is the cluster that a rehearsal is before. Nothing is written to it.
type DryRunCluster interface {
	Cluster
	ResourceMapper
	ClaimKinds
	XRDReader
	Obstacles
}

// Obstacles are what keeps something from coming back though the cluster has it, or what defines
// it.
type Obstacles interface {
	// Deleting reports whether the object that r names is being deleted.
	Deleting(ctx context.Context, r xp.Ref) (bool, error)
	// Inactive returns a function that returns the name of the ManagedResourceDefinition of a kind
	// if that is not active, and "" of any other.
	Inactive() func(ctx context.Context, gk schema.GroupKind) string
}

// A cluster is a cluster as it would be after the part of a restore that was rehearsed: what is
// live, and what would have been restored by then.
type simulatedCluster struct {
	live     DryRunCluster
	packer   *pack.Packer
	restored map[xp.ID]pack.Object
	// recent are those of the restored that were looked at last: what an XR composes comes one
	// after the other, and each looks at it.
	recent map[xp.ID]*unstructured.Unstructured
	// served are the kinds that the backup brings the CRDs of; if there is no scenery, all that it
	// has.
	served map[schema.GroupVersionKind]servedAs
	// inactive returns the name of the ManagedResourceDefinition of a kind that is not active.
	inactive func(ctx context.Context, gk schema.GroupKind) string
	// failed is why the cluster can't be read. An action gives it a form of its own.
	failed error
}

type servedAs struct {
	schema.GroupVersionResource

	namespaced bool
	// categories are those of the CRD.
	categories []string
}

func newSimulatedCluster(b *archive.Backup, scenery DryRunCluster) *simulatedCluster {
	s := &simulatedCluster{
		live: scenery, packer: pack.New(), restored: make(map[xp.ID]pack.Object, len(b.Items)), recent: map[xp.ID]*unstructured.Unstructured{},
		served: map[schema.GroupVersionKind]servedAs{}, inactive: func(context.Context, schema.GroupKind) string { return "" },
	}
	if scenery != nil {
		s.inactive = scenery.Inactive()
	}
	for _, i := range b.Items {
		if i.GroupResource == resourceCRDs {
			s.serve(i.Object())
		}
		gvk := i.Ref().GroupVersionKind()
		if _, ok := s.served[gvk]; !ok && scenery == nil {
			s.served[gvk] = servedAs{GroupVersionResource: i.WithVersion(gvk.Version), namespaced: i.Namespace != ""}
		}
	}

	return s
}

// serve has the kind of a CRD be served.
func (c *simulatedCluster) serve(crd *unstructured.Unstructured) {
	text := func(fields ...string) string {
		t, _, _ := unstructured.NestedString(crd.Object, append([]string{"spec"}, fields...)...)

		return t
	}
	categories, _, _ := unstructured.NestedStringSlice(crd.Object, "spec", "names", "categories")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		m, _ := v.(map[string]any)
		if m["served"] != true {
			continue
		}
		gv := schema.GroupVersion{Group: text("group")}
		gv.Version, _ = m["name"].(string)
		c.served[gv.WithKind(text("names", "kind"))] = servedAs{
			GroupVersionResource: gv.WithResource(text("names", "plural")), namespaced: text("scope") == "Namespaced", categories: categories,
		}
	}
}

// add has an object be there as if it had been created, and gives it a UID.
func (c *simulatedCluster) add(u *unstructured.Unstructured) {
	u.SetUID(types.UID(fmt.Sprintf("rehearsed-%d", len(c.restored)+1)))
	id := xp.RefTo(u).ID()
	c.restored[id] = c.packer.Pack(u.Object)
	delete(c.recent, id)
}

// find returns what was restored, which is not to be changed; nil if it was not.
func (c *simulatedCluster) find(id xp.ID) *unstructured.Unstructured {
	const enough = 64
	if u, ok := c.recent[id]; ok {
		return u
	}
	o, ok := c.restored[id]
	if !ok {
		return nil
	}
	if len(c.recent) >= enough {
		clear(c.recent)
	}
	u := &unstructured.Unstructured{Object: o.Unpack(nil)}
	c.recent[id] = u

	return u
}

// note remembers why the cluster can't be read. That a kind can't be converted is for the items of
// that kind to say.
func (c *simulatedCluster) note(err error) error {
	if err != nil && !isAbsent(err) && !xp.IsConversion(err) && c.failed == nil {
		c.failed = err
	}

	return err
}

// Resource makes it a ResourceMapper.
func (c *simulatedCluster) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	if c.live != nil {
		gvr, namespaced, err := c.live.Resource(gvk)
		if !meta.IsNoMatchError(err) {
			return gvr, namespaced, c.note(err)
		}
	}
	if r, ok := c.served[gvk]; ok {
		return r.GroupVersionResource, r.namespaced, nil
	}

	return schema.GroupVersionResource{}, false, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// Owner, Exists, Named, Settings, IsReconciled and RaiseRevision make it a Cluster. What existed is
// what is live, since what is restored did not.
func (c *simulatedCluster) Owner(ctx context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error) {
	r := xp.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
	for _, in := range []string{namespace, ""} {
		r.Namespace = in
		if u := c.find(r.ID()); u != nil {
			return u, nil
		}
	}
	if c.live == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: r.GroupVersionKind().Group, Resource: ref.Kind}, ref.Name) //nolint:wrapcheck // It is ours.
	}
	u, err := c.live.Owner(ctx, ref, namespace)

	return u, c.note(err)
}

// Exists reports whether something is live. It is first asked about Secrets when they are restored,
// so those count.
func (c *simulatedCluster) Exists(ctx context.Context, r xp.Ref) (bool, error) {
	if r.Kind == "Secret" && c.find(r.ID()) != nil {
		return true, nil
	}
	exists, err := c.exists(ctx, r)
	if r.Kind == "Secret" && apierrors.IsForbidden(err) {
		return exists, err // Who rehearses a restore need not be let read Secrets.
	}

	return exists, c.note(err)
}

func (c *simulatedCluster) exists(ctx context.Context, r xp.Ref) (bool, error) {
	if c.live == nil {
		return false, nil
	}

	return c.live.Exists(ctx, r)
}

// Deleting reports whether something is live and being deleted.
func (c *simulatedCluster) Deleting(ctx context.Context, r xp.Ref) (bool, error) {
	if c.live == nil {
		return false, nil
	}
	deleting, err := c.live.Deleting(ctx, r)

	return deleting, c.note(err)
}

// Named returns what is live and has an external-name.
func (c *simulatedCluster) Named(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	if c.live == nil {
		return nil, nil
	}
	named, err := c.live.Named(ctx, gvk, externalName)

	return named, c.note(err)
}

// Moved returns what restores have created and has an external-name.
func (c *simulatedCluster) Moved(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	if c.live == nil {
		return nil, nil
	}
	moved, err := c.live.Moved(ctx, gvk, externalName)

	return moved, c.note(err)
}

// Settings returns the settings of the cluster.
func (c *simulatedCluster) Settings(ctx context.Context, namespace string) (map[string]string, error) {
	if c.live == nil {
		return nil, nil //nolint:nilnil // No settings are settings.
	}
	settings, err := c.live.Settings(ctx, namespace)

	return settings, c.note(err)
}

// ConfigMap returns the data of a ConfigMap of the cluster.
func (c *simulatedCluster) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	if c.live == nil {
		return nil, nil //nolint:nilnil // There is none.
	}
	data, err := c.live.ConfigMap(ctx, namespace, name)

	return data, c.note(err)
}

// Restore is the one that is rehearsed, which no server has.
func (c *simulatedCluster) Restore(context.Context, string, string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{}, nil
}

// IsReconciled reports whether Crossplane or a provider reconciles a kind.
func (c *simulatedCluster) IsReconciled(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	if r, ok := c.served[gvk]; ok && xp.AreReconciled(r.categories) {
		return true, nil
	}
	if c.live == nil {
		return false, nil
	}
	reconciled, err := c.live.IsReconciled(ctx, gvk)

	return reconciled, c.note(err)
}

// IsClaimKind reports whether claims are of a kind.
func (c *simulatedCluster) IsClaimKind(gvk schema.GroupVersionKind) (bool, error) {
	if r, ok := c.served[gvk]; ok && slices.Contains(r.categories, xp.CategoryClaim) {
		return true, nil
	}
	if c.live == nil {
		return false, nil
	}
	claims, err := c.live.IsClaimKind(gvk)

	return claims, c.note(err)
}

// MarkKey returns one that signs nothing: what is rehearsed is in no cluster.
func (*simulatedCluster) MarkKey(context.Context, string) (adoption.Key, error) {
	return adoption.Unverified, nil
}

// RaiseRevision would write.
func (*simulatedCluster) RaiseRevision(context.Context, *unstructured.Unstructured) error { return nil }

// ReturnStatus would write too.
func (*simulatedCluster) ReturnStatus(context.Context, adoption.Key, xp.Ref, map[string]any) error {
	return nil
}

// Terminating makes it a Definer.
func (c *simulatedCluster) Terminating(ctx context.Context, gk schema.GroupKind) (*unstructured.Unstructured, error) {
	if c.live == nil {
		return nil, nil //nolint:nilnil // None is an answer.
	}
	u, err := c.live.Terminating(ctx, gk)

	return u, c.note(err)
}

// ReturnManagers would write.
func (*simulatedCluster) ReturnManagers(context.Context, *unstructured.Unstructured, xp.Ref) error {
	return nil
}

// TakeOver would write.
func (*simulatedCluster) TakeOver(
	context.Context, adoption.Key, *unstructured.Unstructured, xp.Ref, adoption.Hold, map[string]string,
) (*unstructured.Unstructured, error) {
	return nil, nil //nolint:nilnil // Nothing is taken over.
}

// CanTakeOver finds nothing: nobody else makes anything here.
func (*simulatedCluster) CanTakeOver(context.Context, xp.Ref) (bool, error) { return false, nil }
