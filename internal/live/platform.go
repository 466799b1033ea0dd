package live

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// observePlatform lists what XRs of all kinds share, as far as it matters for those that were
// observed. Whoever has XRs has few of these.
func (o *observer) observePlatform(ctx context.Context) error {
	for _, gvk := range o.snapshot.PlatformNeeds() {
		everywhere := collection{GroupVersionKind: gvk}
		if o.whole[everywhere] {
			continue
		}
		err := o.listed(ctx, everywhere, metav1.ListOptions{}, o.cluster.retryForever(ctx))
		if isUnserved(err) {
			continue // Crossplane is older than the kind, or not there, which is noticed without it.
		}
		if err != nil {
			return err
		}
		o.whole[everywhere] = true
		o.snapshot.AddedAll(gvk.GroupKind())
	}

	return nil
}
