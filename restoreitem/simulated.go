package restoreitem

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A DryRunCluster is the cluster that a dry run reads. Nothing is written to it.
type DryRunCluster interface { //nolint:interfacebloat // One dry run asks one cluster all of this.
	Cluster
	Kinds
	XRDReader

	// WithoutShortNames returns resource filters with full names in place of short ones.
	WithoutShortNames(filters []string) ([]string, error)
	// Deleting reports whether r is being deleted.
	Deleting(ctx context.Context, r xp.Ref) (bool, error)
	// Inactive returns a function that returns the name of a kind's ManagedResourceDefinition if
	// that is not active, else "".
	Inactive() func(ctx context.Context, gk schema.GroupKind) string
}

// A simulatedCluster is what is live and what would have been restored so far.
type simulatedCluster struct {
	live     DryRunCluster
	packer   *pack.Packer
	restored map[xp.ID]pack.Object
	// last is the restored object that was read last, with its ID. Each composed resource of an XR
	// reads the XR.
	last   *unstructured.Unstructured
	lastID xp.ID
	// served are the kinds of the backup's CRDs; without a live cluster, all kinds of the backup.
	served map[schema.GroupVersionKind]servedAs
	// inactive is what Inactive returns.
	inactive func(ctx context.Context, gk schema.GroupKind) string
	// failed is why the live cluster can't be read. Actions don't return that error as it is.
	failed error
}

type servedAs struct {
	schema.GroupVersionResource

	namespaced bool
	// categories are the categories of the CRD.
	categories []string
}

func newSimulatedCluster(b *archive.Backup, live DryRunCluster) *simulatedCluster {
	s := &simulatedCluster{
		live: live, packer: pack.New(), restored: make(map[xp.ID]pack.Object, len(b.Items)), served: map[schema.GroupVersionKind]servedAs{},
		inactive: func(context.Context, schema.GroupKind) string { return "" },
	}
	if live != nil {
		s.inactive = live.Inactive()
	}
	for _, i := range b.Items {
		if i.GroupResource == resourceCRDs {
			s.serve(i.Object())
		}
		gvks := []schema.GroupVersionKind{i.Ref().GroupVersionKind()}
		if i.GroupResource == xp.ResourceXRD {
			gvks = append(gvks, xp.KindDefinition) // Some are not created in the version of the backup.
		}
		for _, gvk := range gvks {
			if _, ok := s.served[gvk]; !ok && live == nil {
				s.served[gvk] = servedAs{GroupVersionResource: i.WithVersion(gvk.Version), namespaced: i.Namespace != ""}
			}
		}
	}

	return s
}

func (c *simulatedCluster) serve(crd *unstructured.Unstructured) {
	var of struct {
		Spec struct {
			Group, Scope string
			Names        struct {
				Kind, Plural string
				Categories   []string
			}
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &of) != nil {
		return // No server has such a CRD.
	}
	for _, v := range of.Spec.Versions {
		if gv := (schema.GroupVersion{Group: of.Spec.Group, Version: v.Name}); v.Served {
			c.served[gv.WithKind(of.Spec.Names.Kind)] = servedAs{
				GroupVersionResource: gv.WithResource(of.Spec.Names.Plural), namespaced: of.Spec.Scope == "Namespaced", categories: of.Spec.Names.Categories,
			}
		}
	}
}

// add adds an object as if it had been created, with a new UID.
func (c *simulatedCluster) add(u *unstructured.Unstructured) {
	u.SetUID(types.UID(fmt.Sprintf("rehearsed-%d", len(c.restored)+1)))
	id := xp.RefTo(u).ID()
	if c.restored[id] = c.packer.Pack(u.Object); id == c.lastID {
		c.last = nil
	}
}

// find returns a restored object, which must not be changed, nil if there is none.
func (c *simulatedCluster) find(id xp.ID) *unstructured.Unstructured {
	o, ok := c.restored[id]
	if !ok {
		return nil
	}
	if c.last == nil || c.lastID != id {
		c.last, c.lastID = &unstructured.Unstructured{Object: o.Unpack(nil)}, id
	}

	return c.last
}

// keepError keeps the first error that does not only concern the items of one kind.
func (c *simulatedCluster) keepError(err error) error {
	if err != nil && !isAbsent(err) && !xp.IsConversion(err) && c.failed == nil {
		c.failed = err
	}

	return err
}

// asked returns what the live cluster answers, or nothing without one.
func asked[T any](c *simulatedCluster, question func(live DryRunCluster) (T, error)) (answer T, err error) {
	if c.live != nil {
		answer, err = question(c.live)
	}

	return answer, c.keepError(err)
}

func (c *simulatedCluster) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	if c.live != nil {
		gvr, namespaced, err := c.live.Resource(gvk)
		if !meta.IsNoMatchError(err) {
			return gvr, namespaced, c.keepError(err)
		}
	}
	if r, ok := c.served[gvk]; ok {
		return r.GroupVersionResource, r.namespaced, nil
	}

	return schema.GroupVersionResource{}, false, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// Owner returns a restored object, else a live one.
func (c *simulatedCluster) Owner(ctx context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error) {
	for _, in := range []string{namespace, ""} {
		r := xp.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: in, Name: ref.Name}
		if u := c.find(r.ID()); u != nil {
			return u, nil
		}
	}
	if c.live == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: ref.Kind}, ref.Name) //nolint:wrapcheck // It is new.
	}
	u, err := c.live.Owner(ctx, ref, namespace)

	return u, c.keepError(err)
}

// Exists reports whether an object is live. Secrets are first read when they have been restored.
func (c *simulatedCluster) Exists(ctx context.Context, r xp.Ref) (bool, error) {
	if r.Kind == "Secret" && c.find(r.ID()) != nil {
		return true, nil
	}
	exists, err := c.exists(ctx, r)
	if r.Kind == "Secret" && apierrors.IsForbidden(err) {
		return false, err // A user who plans a restore may lack the right to read Secrets.
	}

	return exists, c.keepError(err)
}

// ExistsNow is Exists: a dry run looks at the cluster at one time.
func (c *simulatedCluster) ExistsNow(ctx context.Context, r xp.Ref) (bool, error) {
	return c.Exists(ctx, r)
}

func (c *simulatedCluster) exists(ctx context.Context, r xp.Ref) (bool, error) {
	if c.live == nil {
		return false, nil
	}

	return c.live.Exists(ctx, r)
}

// The live cluster answers the questions that follow; without one nothing is live.

func (c *simulatedCluster) Deleting(ctx context.Context, r xp.Ref) (bool, error) {
	return asked(c, func(live DryRunCluster) (bool, error) { return live.Deleting(ctx, r) })
}

func (c *simulatedCluster) Composing(ctx context.Context, key hold.Key, gvk schema.GroupVersionKind, composition string) ([]xp.Ref, error) {
	return asked(c, func(live DryRunCluster) ([]xp.Ref, error) { return live.Composing(ctx, key, gvk, composition) })
}

func (c *simulatedCluster) Named(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	return asked(c, func(live DryRunCluster) ([]xp.Managing, error) { return live.Named(ctx, gvk, externalName) })
}

func (c *simulatedCluster) Moved(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	return asked(c, func(live DryRunCluster) ([]xp.Managing, error) { return live.Moved(ctx, gvk, externalName) })
}

func (c *simulatedCluster) Settings(ctx context.Context, namespace string) (map[string]string, error) {
	return asked(c, func(live DryRunCluster) (map[string]string, error) { return live.Settings(ctx, namespace) })
}

func (c *simulatedCluster) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	return asked(c, func(live DryRunCluster) (map[string]string, error) { return live.ConfigMap(ctx, namespace, name) })
}

func (c *simulatedCluster) Terminating(ctx context.Context, gk schema.GroupKind) (*unstructured.Unstructured, error) {
	return asked(c, func(live DryRunCluster) (*unstructured.Unstructured, error) { return live.Terminating(ctx, gk) })
}

func (c *simulatedCluster) IsReconciled(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	if xp.AreReconciled(c.served[gvk].categories) {
		return true, nil
	}

	return asked(c, func(live DryRunCluster) (bool, error) { return live.IsReconciled(ctx, gvk) })
}

func (c *simulatedCluster) IsClaimKind(gvk schema.GroupVersionKind) (bool, error) {
	if slices.Contains(c.served[gvk].categories, xp.CategoryClaim) {
		return true, nil
	}

	return asked(c, func(live DryRunCluster) (bool, error) { return live.IsClaimKind(gvk) })
}

// Restore is not called: only a Velero server has resource modifiers for all Restores.
func (*simulatedCluster) Restore(context.Context, string, string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{}, nil
}

// MarkKey returns a key that signs nothing, since no cluster gets the marks.
func (*simulatedCluster) MarkKey(context.Context, string) (hold.Key, error) {
	return hold.Unverified, nil
}

// ServerTime returns own: nothing is compared with times of the cluster.
func (*simulatedCluster) ServerTime(own time.Time) time.Time { return own }

// What follows would write, so it does nothing. No other writer creates anything here that the
// restore could take over.

func (*simulatedCluster) ReturnStatus(context.Context, hold.Key, xp.Ref, map[string]any) error {
	return nil
}

func (*simulatedCluster) ReturnManagers(context.Context, *unstructured.Unstructured, xp.Ref) error {
	return nil
}

func (*simulatedCluster) TakeOver(
	context.Context, hold.Key, *unstructured.Unstructured, xp.Ref, hold.Hold, map[string]string,
) (*unstructured.Unstructured, error) {
	return nil, nil //nolint:nilnil // Nothing is taken over.
}

func (*simulatedCluster) CanTakeOver(context.Context, xp.Ref) (bool, error) { return false, nil }
