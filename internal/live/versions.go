package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Versions returns what the CRD of a kind defines as its versions. It reads the CRD of each kind
// once. It returns the zero value if there is no CRD of the kind or the CRD may not be read.
func (c *Cluster) Versions(ctx context.Context, gk schema.GroupKind) (xp.Versions, error) {
	c.mu.Lock()
	v, known := c.versions[gk]
	c.mu.Unlock()
	if known {
		return v, nil
	}
	gvk, ok, err := c.Served(gk)
	if err != nil || !ok {
		return xp.Versions{}, err // The kind may be served later.
	}
	gvr, _, err := c.Resource(gvk)
	if err != nil {
		return xp.Versions{}, err
	}
	crd, err := c.Get(ctx, xp.Ref{APIVersion: xp.KindCRD.GroupVersion().String(), Kind: xp.KindCRD.Kind, Name: gvr.GroupResource().String()})
	switch {
	case isUnserved(err), apierrors.IsForbidden(err): // An aggregated API server may serve the kind.
	case err != nil:
		return xp.Versions{}, err
	default:
		v = xp.VersionsFrom(crd)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions[gk] = v

	return v, nil
}

// Convert makes the API server convert an object to the storage version of its kind, with a dry run
// that creates it in the namespace. It fails only if the conversion fails or times out.
func (c *Cluster) Convert(ctx context.Context, u *unstructured.Unstructured, namespace string) error {
	gvr, namespaced, err := c.Resource(u.GroupVersionKind())
	if err != nil {
		return nil // The create request returns this error.
	}
	if !namespaced {
		namespace = ""
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	began := time.Now()
	_, err = c.client.Resource(gvr).Namespace(namespace).Create(ctx, creatable(u, namespace), metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: FieldManager,
	})
	switch {
	case xp.IsConversion(err):
		return err //nolint:wrapcheck // The caller adds the object.
	case isTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("there was no answer for %s", time.Since(began).Round(time.Second))
	default:
		return nil
	}
}

// creatable returns the part of a backed-up object that can be created.
func creatable(u *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	object := maps.Clone(u.Object)
	delete(object, "status")
	object["metadata"] = map[string]any{}
	b := &unstructured.Unstructured{Object: object}
	b.SetName(u.GetName())
	b.SetNamespace(namespace)
	b.SetLabels(u.GetLabels())
	b.SetAnnotations(u.GetAnnotations())

	return b
}

// unconvertedTTL is for how long a kind that could not be converted is not listed again. A restore
// may have thousands of its objects, and a webhook may take 30 s to time out.
const unconvertedTTL = 10 * time.Second

// An unreadableKind is a kind whose conversion failed when it was listed.
type unreadableKind struct {
	err error
	at  time.Time
}

// recordUnreadable records the error of a list if it is a failed conversion, and returns the error.
func (c *Cluster) recordUnreadable(gvk schema.GroupVersionKind, err error) error {
	if xp.IsConversion(err) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.conversions[gvk] = unreadableKind{err: err, at: c.now()}
	}

	return err
}

// conversionError returns the error of a kind that could not be listed a moment ago.
func (c *Cluster) conversionError(gvk schema.GroupVersionKind) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u, ok := c.conversions[gvk]; ok && c.now().Sub(u.at) < unconvertedTTL {
		return u.err
	}

	return nil
}
