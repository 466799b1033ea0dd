package backupitem

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// secret adds the Secret that an object publishes its connection details in, which must be controlled by it. One that was not published yet
// is nothing to warn of.
func (l *Links) secret(ctx context.Context, f *found, u *unstructured.Unstructured) {
	ref, ok := xp.SecretRef(u)
	if !ok {
		return
	}
	s, err := l.listed(ctx, ref, metav1.ListOptions{FieldSelector: "type=" + xp.SecretTypeConnection})
	if err != nil {
		f.lose(ref, err)

		return
	}
	if s == nil || !xp.Controls(u, s) {
		f.skipSecret(u, ref, s != nil)

		return
	}
	if why := leavesOut(s); why != "" {
		f.skip(u, ref, why)

		return
	}
	if item, ok := l.item(f, s); ok {
		f.items = append(f.items, item)
		f.published[item] = true
	}
}

// skipSecret warns of a connection secret that is not there, or not the object's own. Of another namespace it does not tell one from the other, and so warns of
// both if the object says that it is ready, and has published by then, and of none otherwise.
func (f *found) skipSecret(u *unstructured.Unstructured, ref xp.Ref, exists bool) {
	if u.GetNamespace() == ref.Namespace {
		if exists {
			f.skip(u, ref, "it is not controlled by it")
		}

		return
	}
	if ready, _ := xp.ConditionOf(u, xp.ConditionReady); ready.Status == "True" {
		f.skip(u, ref, "it does not exist, or is not controlled by it")
	}
}
