package live

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// MarkKeySecret is the Secret in Velero's namespace that has the key with which the marks of holds
// are signed. Whoever can read it can write marks.
const MarkKeySecret = FieldManager + "-mark-key"

const (
	markKeyField = "key"
	// labelExclude keeps an object out of Velero's backups.
	labelExclude = "velero.io/exclude-from-backup"
)

// MarkKey returns the key with which the marks of holds are signed. It is read once, from a Secret
// in Velero's namespace, which is made if there is none. Backups leave it out: a restore must not
// bring back another than the one that has signed what is held by then.
func (c *Cluster) MarkKey(ctx context.Context, namespace string) (adoption.Key, error) {
	key, err := c.ReadMarkKey(ctx, namespace)
	if !apierrors.IsNotFound(err) {
		return key, err
	}
	secret := make([]byte, adoption.KeySize)
	_, _ = rand.Read(secret) // It never fails.
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"data": map[string]any{markKeyField: base64.StdEncoding.EncodeToString(secret)},
	}}
	u.SetNamespace(namespace)
	u.SetName(MarkKeySecret)
	u.SetLabels(map[string]string{labelExclude: "true", "app.kubernetes.io/managed-by": FieldManager})
	secrets := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	err = c.withRetry(ctx.Done(), apiServerName, func() error {
		_, err := secrets.Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})
		if err != nil {
			return fmt.Errorf("cannot make Secret %s/%s, which has the key that signs the marks of holds: %w", namespace, MarkKeySecret, err)
		}

		return nil
	})
	if apierrors.IsAlreadyExists(err) { // Another process has made it at the same time, or the answer was lost.
		return c.ReadMarkKey(ctx, namespace)
	}
	if err != nil {
		return nil, err
	}
	key, err = adoption.NewKey(secret)
	c.keepMarkKey(namespace, key)

	return key, err
}

func (c *Cluster) keepMarkKey(namespace string, key adoption.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.markKeys[namespace] = key
}

// ReadMarkKey is MarkKey for those who sign only what is signed already: it fails with an error
// that apierrors.IsNotFound knows if there is no key.
func (c *Cluster) ReadMarkKey(ctx context.Context, namespace string) (adoption.Key, error) {
	c.mu.Lock()
	key := c.markKeys[namespace]
	c.mu.Unlock()
	if key != nil {
		return key, nil
	}
	const what = "cannot read the key that signs the marks of holds"
	u, err := c.Get(ctx, xp.Ref{APIVersion: kindSecret.GroupVersion().String(), Kind: kindSecret.Kind, Namespace: namespace, Name: MarkKeySecret})
	if err != nil {
		return nil, fmt.Errorf(what+": %w", err)
	}
	encoded, _, _ := unstructured.NestedString(u.Object, "data", markKeyField)
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil {
		key, err = adoption.NewKey(b)
	}
	if err != nil {
		return nil, fmt.Errorf(what+" in Secret %s/%s: %w; delete the Secret to have another one made, and release what is held by then with --trust-marks",
			namespace, MarkKeySecret, err)
	}
	c.keepMarkKey(namespace, key)

	return key, nil
}
