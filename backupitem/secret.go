package backupitem

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// secret adds the Secret in which an object publishes its connection details, if the object
// controls it.
func (res *Resolver) secret(ctx context.Context, f *found, u *unstructured.Unstructured) {
	ref, ok := xp.SecretRef(u)
	if !ok {
		return
	}
	s, err := res.listed(ctx, f, ref, metav1.ListOptions{FieldSelector: "type=" + xp.SecretTypeConnection})
	if err != nil {
		f.addUnreadable(ref, err)

		return
	}
	switch {
	case s == nil && u.GetNamespace() == ref.Namespace: // It is not published yet.
	case s == nil || !xp.Controls(u, s):
		text := xp.String(u) + " does not control it"
		if u.GetNamespace() != ref.Namespace { // This does not reveal whether the Secret exists.
			text = "it does not exist, or " + text
		}
		f.skip(u, ref, reason.NotLinked.Messagef("%s", text))
	default:
		f.takeSecret(u, ref, s)
	}
}

// takesSecret reports whether the filters leave the connection secret of an XR or MR in the backup.
// A claim's is made from its XR's.
func (f *found) takesSecret() bool {
	ref, ok := xp.SecretRef(f.of)
	item := secretItem(ref)

	return ok && !xp.IsClaim(f.of) && f.published[item] && slices.Contains(f.items, item)
}

// takeSecret adds a Secret, unless Velero leaves it out. It may come from any namespace.
func (f *found) takeSecret(of *unstructured.Unstructured, ref xp.Ref, s *unstructured.Unstructured) {
	if why := leavesOut(s); !why.IsZero() {
		f.skip(of, ref, why)

		return
	}
	f.items = append(f.items, secretItem(ref))
	f.published[secretItem(ref)] = true
}
