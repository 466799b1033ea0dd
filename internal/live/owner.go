package live

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Owner returns the live object that an owner reference of an object in the namespace means, by
// group, kind and name, whatever its UID is. It reads each existing owner once. The result belongs
// to the caller, and has no status and no managedFields. Errors are those of Get.
func (c *Cluster) Owner(ctx context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error) {
	r := xp.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
	if _, namespaced, err := c.Resource(r.GroupVersionKind()); err != nil {
		return nil, err
	} else if !namespaced {
		r.Namespace = "" // It is the same owner for objects of all namespaces.
	}
	c.mu.Lock()
	kept, ok := c.owners[r.ID()]
	c.mu.Unlock()
	if ok {
		return decodeOwner(kept, r)
	}
	u, err := c.Get(ctx, r)
	if err != nil {
		return nil, err
	}

	return u, c.keepOwner(u, r)
}

// maxOwnersSize is how many bytes of JSON the cache of owners has. Most owners have 2 KiB, and those
// of a tenant can have 1.5 MiB each. What they own mostly follows right after them.
const maxOwnersSize = 32 << 20

// keepOwner caches an owner, and removes from it what Owner does not return.
func (c *Cluster) keepOwner(u *unstructured.Unstructured, r xp.Ref) error {
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

// forgetOwners clears the cache of owners.
func (c *Cluster) forgetOwners() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.owners)
	c.ownersSize = 0
}

func decodeOwner(kept []byte, r xp.Ref) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(kept, &u.Object); err != nil {
		return nil, fmt.Errorf("cannot read what was kept of %s: %w", r, err)
	}

	return u, nil
}
