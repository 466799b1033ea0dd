package backupitem

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// secret adds the Secret that an object publishes its connection details in, which must be controlled by it. One that was not published yet
// is nothing to warn of.
func (l *Links) secret(ctx context.Context, f *found, u *unstructured.Unstructured) error {
	ref, ok := xp.SecretRef(u)
	if !ok {
		return nil
	}
	s, err := l.listed(ctx, ref, metav1.ListOptions{FieldSelector: "type=" + xp.SecretTypeConnection})
	if err != nil || s == nil {
		return err
	}
	if !xp.Controls(u, s) {
		f.skip(u, ref, "it is not controlled by it")

		return nil
	}
	item, err := l.item(s)
	if err != nil {
		return err
	}
	f.items = append(f.items, item)
	f.published[item] = true

	return nil
}
