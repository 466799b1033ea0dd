package backupitem

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// warnOfStore warns of claims, XRs and MRs that publish with an External Secret Store, an alpha
// feature of Crossplane up to v1.20. One warning names those of a kind in a namespace.
func (t *Tree) warnOfStore(ctx context.Context, u *unstructured.Unstructured) {
	if !xp.UsesSecretStore(u) {
		return
	}
	gvk := u.GroupVersionKind()
	if _, warned := t.inStores.LoadOrStore(gvk.GroupKind().String()+" "+u.GetNamespace(), true); warned {
		return
	}
	var names []string
	err := t.resolver.each(ctx, gvk, u.GetNamespace(), metav1.ListOptions{}, func(o *unstructured.Unstructured) {
		if xp.UsesSecretStore(o) {
			names = append(names, xp.String(o))
		}
	})
	slices.Sort(names)
	if more := len(names) - mostAtRisk; more > 0 {
		names = append(names[:mostAtRisk], fmt.Sprintf("%d more", more))
	}
	if err != nil || len(names) == 0 {
		names = []string{xp.String(u) + " and maybe others of its kind"}
	}
	warn(t.log, logrus.Fields{"object": xp.String(u)}, reason.SecretStoreNotCovered.Messagef("The plugin does not cover External Secret Stores "+
		"(spec.publishConnectionDetailsTo). A restore leaves what these publish there as it is, and the store then refuses them: %s. Let them use "+
		"spec.writeConnectionSecretToRef, then back up again", strings.Join(names, ", ")))
}
