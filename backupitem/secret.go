package backupitem

import (
	"context"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// secret adds the Secret in which an object publishes its connection details, if the object
// controls it. It does not warn if a Secret in the object's own namespace is not published yet.
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
	if s == nil || !xp.Controls(u, s) {
		f.skipSecret(u, ref, s != nil)

		return
	}
	if why := leavesOut(s); !why.IsZero() {
		f.skip(u, ref, why)

		return
	}
	if item, ok := res.item(f, s); ok {
		f.items = append(f.items, item)
		f.published[item] = true
	}
}

// takesSecret reports whether the filters leave the connection secret of an XR or MR in the backup.
// A claim's is made from its XR's.
func (f *found) takesSecret(backup *velerov1.Backup) bool {
	ref, ok := xp.SecretRef(f.of)
	item := secretItem(ref)

	return ok && !xp.IsClaim(f.of) && f.published[item] && slices.Contains(f.items, item) && takesSecrets(backup)
}

// skipSecret warns of a connection secret that is not the object's own. In another namespace, the
// warning does not reveal whether the Secret exists.
func (f *found) skipSecret(u *unstructured.Unstructured, ref xp.Ref, exists bool) {
	switch {
	case u.GetNamespace() != ref.Namespace:
		f.skip(u, ref, reason.NotLinked.Messagef("it does not exist, or %s does not control it", xp.String(u)))
	case exists:
		f.skip(u, ref, reason.NotLinked.Messagef("%s does not control it", xp.String(u)))
	}
}
