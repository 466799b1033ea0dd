package live

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

var kindSecret = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// areAllSecrets reports whether the options select all Secrets, whose data must not be read.
func areAllSecrets(gvk schema.GroupVersionKind, options metav1.ListOptions) bool {
	return gvk == kindSecret && options.LabelSelector == "" && options.FieldSelector == ""
}

// eachSecret calls do with the metadata of each Secret that has the label, or of all if label is
// "", in the namespace, or in all if namespace is "". The API server leaves out the data.
// eachSecret removes the copy of the data that kubectl apply keeps in an annotation.
func (c *Cluster) eachSecret(ctx context.Context, namespace, label string, do func(*unstructured.Unstructured)) error {
	options := metav1.ListOptions{LabelSelector: label, Limit: pageSize}
	for {
		var list *metav1.PartialObjectMetadataList
		err := c.withRetry(ctx.Done(), apiServerName, func() (err error) {
			list, err = c.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace).List(ctx, options)
			if err != nil {
				return fmt.Errorf("cannot list secrets: %w", err)
			}

			return nil
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			delete(list.Items[i].Annotations, corev1.LastAppliedConfigAnnotation)
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list.Items[i])
			if err != nil {
				return fmt.Errorf("cannot read the metadata of a Secret: %w", err)
			}
			u := &unstructured.Unstructured{Object: object}
			u.SetGroupVersionKind(kindSecret)
			do(u)
		}
		if list.Continue == "" {
			return nil
		}
		options.Continue = list.Continue
	}
}

// readInputs reads the Secrets that an object waits for and that can have any type and no label.
// They are read from a collection whose other needed objects were listed. It keeps no others.
func (o *observer) readInputs(ctx context.Context, p collection) error {
	missing := map[xp.ID]bool{}
	for _, r := range o.snapshot.Inputs() {
		if (p.namespace == "" || p.namespace == r.Namespace) && !o.snapshot.Has(r) {
			missing[r.ID()] = true
		}
	}
	if len(missing) == 0 {
		return nil
	}

	return o.cluster.Each(ctx, kindSecret, p.namespace, metav1.ListOptions{}, func(u *unstructured.Unstructured) {
		if missing[xp.RefTo(u).ID()] {
			o.put(trim(u))
		}
	})
}
