package live

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// observePlatform lists the objects that XRs of all kinds share, such as Compositions, as far as
// the observed XRs need them. A cluster has few of these.
func (o *observer) observePlatform(ctx context.Context) error {
	for _, gvk := range o.snapshot.PlatformNeeds() {
		everywhere := collection{GroupVersionKind: gvk}
		if o.whole[everywhere] {
			continue
		}
		err := o.listAndRecord(ctx, everywhere, metav1.ListOptions{}, o.cluster.retryForever(ctx))
		if isUnserved(err) {
			continue // This Crossplane is older than the kind, or is not installed; other code notices that.
		}
		if err != nil {
			return err
		}
		o.whole[everywhere] = true
		o.snapshot.AddedAll(gvk.GroupKind())
	}

	return nil
}
