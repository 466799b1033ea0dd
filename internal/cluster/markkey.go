package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// MarkKeySecret is the name of the Secret in Velero's namespace with the key that signs the marks
// of holds. A user who can read it, or create it before the plugin does, can write valid marks.
const MarkKeySecret = FieldManager + "-mark-key"

const (
	markKeyField = "key"
	// labelExclude keeps an object out of Velero's backups.
	labelExclude = "velero.io/exclude-from-backup"
	// labelManagedBy has the program that creates an object.
	labelManagedBy = "app.kubernetes.io/managed-by"
	secretType     = "Opaque"
)

// MarkKey returns the key that signs the marks of holds. It reads the key once from a Secret in
// Velero's namespace, and creates the Secret if there is none. Backups exclude the Secret: a
// restore must not replace the key that has signed the marks of held objects.
func (c *Cluster) MarkKey(ctx context.Context, namespace string) (hold.Key, error) {
	key, err := c.ReadMarkKey(ctx, namespace)
	if !apierrors.IsNotFound(err) {
		return key, err
	}
	secret := make([]byte, hold.KeySize)
	_, _ = rand.Read(secret) // It never fails.
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": secretType, "immutable": true,
		"data": map[string]any{markKeyField: base64.StdEncoding.EncodeToString(secret)},
	}}
	u.SetNamespace(namespace)
	u.SetName(MarkKeySecret)
	u.SetLabels(map[string]string{labelExclude: "true", labelManagedBy: FieldManager})
	secrets := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	err = c.withRetry(ctx.Done(), apiServerName, func() error {
		_, err := secrets.Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})

		return err //nolint:wrapcheck // It is wrapped below.
	})
	switch {
	case err == nil:
		return c.markKeys.get(namespace, func() (hold.Key, error) { return hold.NewKey(secret) })
	case apierrors.IsAlreadyExists(err): // Another process has created it at the same time, or the answer was lost.
		return c.ReadMarkKey(ctx, namespace)
	default:
		return nil, fmt.Errorf("cannot make Secret %s/%s, which has the key that signs the marks of holds: %w", namespace, MarkKeySecret, err)
	}
}

// MakeMarkKey is MarkKey without the key.
func (c *Cluster) MakeMarkKey(ctx context.Context, namespace string) error {
	_, err := c.MarkKey(ctx, namespace)

	return err
}

// ReadMarkKey is MarkKey without creating the key: it returns an error that apierrors.IsNotFound
// matches if there is none. It is for callers that sign only what has a signature already.
func (c *Cluster) ReadMarkKey(ctx context.Context, namespace string) (hold.Key, error) {
	return c.markKeys.get(namespace, func() (hold.Key, error) {
		const what = "cannot read the key that signs the marks of holds"
		u, err := c.Get(ctx, xp.Ref{APIVersion: KindSecret.GroupVersion().String(), Kind: KindSecret.Kind, Namespace: namespace, Name: MarkKeySecret})
		if err != nil {
			return nil, fmt.Errorf(what+": %w", err)
		}
		key, err := markKeyIn(u)
		if err != nil {
			return nil, reason.MarkKeyForeign.Errorf(what+" in Secret %s/%s: %w; this plugin has not written it so. Find out who did, and delete the Secret to have "+
				"another one made. Release what is held by then with --trust-marks", namespace, MarkKeySecret, err)
		}

		return key, nil
	})
}

// markKeyIn returns the key in the Secret, which must be as MarkKey creates it. So no controller
// fills it, such as that of ServiceAccounts' tokens, no one changes it, and no backup has it.
func markKeyIn(u *unstructured.Unstructured) (hold.Key, error) {
	kind, _, _ := unstructured.NestedString(u.Object, "type")
	immutable, _, _ := unstructured.NestedBool(u.Object, "immutable")
	switch {
	case kind != secretType:
		return nil, fmt.Errorf("its type is %q and not %s", kind, secretType)
	case xp.Label(u, labelExclude) != "true" || xp.Label(u, labelManagedBy) != FieldManager:
		return nil, fmt.Errorf("it lacks the labels %s=true and %s=%s", labelExclude, labelManagedBy, FieldManager)
	case !immutable:
		return nil, errors.New("it is not immutable")
	}
	encoded, _, _ := unstructured.NestedString(u.Object, "data", markKeyField)
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("cannot decode it: %w", err)
	}

	return hold.NewKey(b) // ReadMarkKey adds the Secret.
}
