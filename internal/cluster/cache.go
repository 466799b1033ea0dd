package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A cache keeps what was read for each key.
type cache[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

// get returns the value of a key, else what read returns, which it keeps unless read fails. Readers of
// other keys do not wait for it.
func (c *cache[K, V]) get(key K, read func() (V, error)) (V, error) {
	c.mu.Lock()
	v, ok := c.values[key]
	c.mu.Unlock()
	if ok {
		return v, nil
	}
	v, err := read()
	if err != nil {
		return *new(V), err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, ok := c.values[key]; ok {
		return first, nil
	}
	if c.values == nil {
		c.values = map[K]V{}
	}
	c.values[key] = v

	return v, nil
}

// An inventory lists the objects of a kind. It is made once, when the kind is first asked for.
type inventory struct {
	objects map[xp.ID]inventoried
	// named are the MRs by external-name, or by their provider's id if they have no external-name.
	named map[string][]xp.Managing
}

// An inventoried object existed when the inventory was made. It was being deleted, and
// hold.CanTakeOver was true.
type inventoried struct{ exists, deleting, takeable bool }

// Exists reports whether the object that r names existed when its inventory was made.
func (c *Cluster) Exists(ctx context.Context, r xp.Ref) (bool, error) {
	i, err := c.inventoryOf(ctx, r.GroupVersionKind())

	return i.objects[r.ID()].exists, err
}

// ExistsNow reports whether the object that r names exists.
func (c *Cluster) ExistsNow(ctx context.Context, r xp.Ref) (bool, error) {
	_, err := c.Get(ctx, r)

	return err == nil, IgnoreUnserved(err)
}

// Deleting reports whether the object that r names was being deleted when its inventory was made.
func (c *Cluster) Deleting(ctx context.Context, r xp.Ref) (bool, error) {
	i, err := c.inventoryOf(ctx, r.GroupVersionKind())

	return i.objects[r.ID()].deleting, err
}

// CanTakeOver reports whether hold.CanTakeOver was true for the XR or claim that r names when
// its inventory was made.
func (c *Cluster) CanTakeOver(ctx context.Context, r xp.Ref) (bool, error) {
	i, err := c.inventoryOf(ctx, r.GroupVersionKind())

	return i.objects[r.ID()].takeable, err
}

// Named returns the MRs of a kind that had the external-name when its inventory was made.
func (c *Cluster) Named(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	i, err := c.inventoryOf(ctx, gvk)

	return i.named[externalName], err
}

func (c *Cluster) inventoryOf(ctx context.Context, gvk schema.GroupVersionKind) (inventory, error) {
	return c.inventories.get(gvk.GroupKind(), func() (inventory, error) {
		accounts := map[xp.Ref]xp.Ref{} // Thousands of MRs share one account, and so one copy of its strings.
		i := inventory{objects: map[xp.ID]inventoried{}, named: map[string][]xp.Managing{}}
		err := c.eachConverted(ctx, gvk, "", func(u *unstructured.Unstructured) {
			i.objects[xp.RefTo(u).ID()] = inventoried{exists: true, deleting: u.GetDeletionTimestamp() != nil, takeable: hold.CanTakeOver(u)}
			name := u.GetAnnotations()[xp.AnnotationExternalName]
			if name == "" {
				name, _ = xp.ProviderID(u) // The MR manages that resource, although only its status has the id.
			}
			if name != "" {
				m := xp.ManagingOf(u)
				if _, ok := accounts[m.Account]; !ok {
					accounts[m.Account] = m.Account
				}
				m.Account = accounts[m.Account]
				i.named[name] = append(i.named[name], m)
			}
		})

		return i, err
	})
}

// IsStray reports whether hold.IsStray was true for the object that r names when the objects of
// its kind that restores have created were listed. It lists each kind once and caches the result.
func (c *Cluster) IsStray(ctx context.Context, r xp.Ref) (bool, error) {
	b, err := c.restoredIndexOf(ctx, r.GroupVersionKind())

	return b.strays[r.ID()], err
}

// A restoredIndex lists the objects of a kind that restores have created. It is made once.
type restoredIndex struct {
	// strays are the objects for which hold.IsStray is true.
	strays map[xp.ID]bool
	// named are the namespaced MRs by external-name.
	named map[string][]xp.Managing
}

// Moved returns the namespaced MRs of a kind that restores had created and that have the
// external-name. It lists each kind once and caches the result.
func (c *Cluster) Moved(ctx context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	b, err := c.restoredIndexOf(ctx, gvk)

	return b.named[externalName], err
}

func (c *Cluster) restoredIndexOf(ctx context.Context, gvk schema.GroupVersionKind) (restoredIndex, error) {
	return c.restoredIndexes.get(gvk.GroupKind(), func() (restoredIndex, error) {
		b := restoredIndex{strays: map[xp.ID]bool{}, named: map[string][]xp.Managing{}}
		err := c.eachConverted(ctx, gvk, velerov1.RestoreNameLabel, func(u *unstructured.Unstructured) {
			if hold.IsStray(u) {
				b.strays[xp.RefTo(u).ID()] = true
			}
			if name := xp.Annotation(u, xp.AnnotationExternalName); name != "" && u.GetNamespace() != "" && xp.IsManaged(u) {
				b.named[name] = append(b.named[name], xp.ManagingOf(u))
			}
		})

		return b, err
	})
}

// unconvertedTTL is for how long a kind that could not be converted is not listed again. A restore
// may have thousands of its objects, and a webhook may take 30 s to time out.
const unconvertedTTL = 10 * time.Second

// An unreadableKind is a kind whose conversion failed when it was listed.
type unreadableKind struct {
	err error
	at  time.Time
}

// eachConverted calls do with each object of a kind that has the label, none if the kind is not
// served. It returns the last error if that was a failed conversion a moment ago.
func (c *Cluster) eachConverted(ctx context.Context, gvk schema.GroupVersionKind, label string, do func(u *unstructured.Unstructured)) error {
	c.mu.Lock()
	last, failed := c.conversions[gvk]
	c.mu.Unlock()
	if failed && c.now().Sub(last.at) < unconvertedTTL {
		return last.err
	}
	err := IgnoreUnserved(c.Each(ctx, gvk, "", metav1.ListOptions{LabelSelector: label}, do))
	if xp.IsConversion(err) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conversions[gvk] = unreadableKind{err: err, at: c.now()}
	}

	return err
}

// Versions returns what the CRD of a kind defines as its versions. It reads the CRD of each kind
// once. It returns the zero value if there is no CRD of the kind or the CRD may not be read.
func (c *Cluster) Versions(ctx context.Context, gk schema.GroupKind) (xp.Versions, error) {
	gvk, ok, err := c.Served(gk)
	if err != nil || !ok {
		return xp.Versions{}, err // The kind may be served later.
	}
	gvr, _, err := c.Resource(gvk)
	if err != nil {
		return xp.Versions{}, err
	}

	return c.versions.get(gk, func() (xp.Versions, error) {
		crd, err := c.Get(ctx, xp.Ref{APIVersion: xp.KindCRD.GroupVersion().String(), Kind: xp.KindCRD.Kind, Name: gvr.GroupResource().String()})
		switch {
		case IsUnserved(err), apierrors.IsForbidden(err): // An aggregated API server may serve the kind.
			return xp.Versions{}, nil
		case err != nil:
			return xp.Versions{}, err
		default:
			return xp.VersionsFrom(crd), nil
		}
	})
}

// Owner returns the live object that an owner reference of an object in the namespace means, by
// group, kind and name, whatever its UID is. It reads each existing owner once. The result belongs
// to the caller, and has no status and no managedFields. Errors are those of Get.
func (c *Cluster) Owner(ctx context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error) {
	_, r, err := c.locate(xp.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: namespace, Name: ref.Name})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	kept, ok := c.owners[r.ID()]
	c.mu.Unlock()
	if ok {
		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(kept, &u.Object); err != nil {
			return nil, fmt.Errorf("cannot read what was kept of %s: %w", r, err)
		}

		return u, nil
	}
	u, err := c.Get(ctx, r)
	if err != nil {
		return nil, err
	}

	return u, c.KeepOwner(u, r)
}

// maxOwnersSize is how many bytes of JSON the cache of owners has. Most owners have 2 KiB, and those
// of a tenant can have 1.5 MiB each. What they own mostly follows right after them.
const maxOwnersSize = 32 << 20

// KeepOwner caches an owner, and removes from it what Owner does not return.
func (c *Cluster) KeepOwner(u *unstructured.Unstructured, r xp.Ref) error {
	for _, path := range [][]string{{"status"}, {"metadata", "managedFields"}, {"metadata", "annotations", corev1.LastAppliedConfigAnnotation}} {
		unstructured.RemoveNestedField(u.Object, path...)
	}
	// A restore can have thousands of owners, and they are much smaller encoded.
	kept, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("cannot keep %s: %w", r, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ownersSize += len(kept) - len(c.owners[r.ID()])
	if c.ownersSize > maxOwnersSize {
		clear(c.owners)
		c.ownersSize = len(kept)
	}
	c.owners[r.ID()] = kept

	return nil
}

// ForgetOwners clears the cache of owners.
func (c *Cluster) ForgetOwners() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.owners)
	c.ownersSize = 0
}

// activations finds the kinds of MRs that are not active. It reads the MRD of each kind once. It
// needs the right to list MRDs; without it all kinds count as active.
type activations struct {
	cluster *Cluster
	known   cache[schema.GroupKind, string]
	// names are the names of all MRDs, or those that could be read, if named is set. Discovery has no
	// resource name for a kind that is not served.
	names []string
	named bool
}

// Inactive returns a function that returns the name of a kind's MRD if the MRD is not active, else
// "". The function reads the MRD of each kind once.
func (c *Cluster) Inactive() func(ctx context.Context, gk schema.GroupKind) string {
	return (&activations{cluster: c}).inactive
}

// inactive returns the name of a kind's MRD if the MRD is not active. It returns "" if the MRD is
// active, does not exist or can't be read: no restore depends on it.
func (a *activations) inactive(ctx context.Context, gk schema.GroupKind) string {
	name, _ := a.known.get(gk, func() (string, error) {
		for _, candidate := range a.candidates(ctx, gk) {
			r := xp.Ref{APIVersion: xp.KindManagedDefinition.GroupVersion().String(), Kind: xp.KindManagedDefinition.Kind, Name: candidate}
			mrd, err := a.cluster.Now(ctx, r)
			if err != nil || xp.ManagedKind(mrd) != gk {
				continue
			}
			if xp.IsInactive(mrd) {
				return candidate, nil
			}

			break
		}

		return "", nil
	})

	return name
}

// candidates returns the names that the MRD of a kind may have: group and resource, which is a
// plural of the kind.
func (a *activations) candidates(ctx context.Context, gk schema.GroupKind) []string {
	if _, served, err := a.cluster.Served(xp.KindManagedDefinition.GroupKind()); err != nil || !served {
		return nil
	}
	if gvk, served, err := a.cluster.Served(gk); err == nil && served {
		gvr, _, err := a.cluster.Resource(gvk)
		if err != nil {
			return nil
		}

		return []string{gvr.GroupResource().String()}
	}
	if !a.named {
		a.named = true
		// Providers install a thousand MRDs with long schemas. An error is as good as no MRD.
		in := Collection{GroupVersionKind: xp.KindManagedDefinition}
		_ = a.cluster.EachMetadata(ctx, in, "", func(u *unstructured.Unstructured) { a.names = append(a.names, u.GetName()) })
	}
	stem := strings.ToLower(gk.Kind[:max(0, len(gk.Kind)-irregular)])
	var found []string
	for _, name := range a.names {
		resource, ok := strings.CutSuffix(name, "."+gk.Group)
		if ok && strings.HasPrefix(resource, stem) && len(resource) <= len(gk.Kind)+longestEnding && !strings.Contains(resource, ".") {
			found = append(found, name)
		}
	}

	return found
}

// Plurals differ from their kinds in up to two letters at the end (indices, media), and in what they
// add. It matters for the number of requests, since a tenant can name any kind.
const (
	irregular     = 2
	longestEnding = 3
)
