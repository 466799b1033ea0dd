package restoreitem

import (
	"time"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A definedKind is a kind that an XRD defines.
type definedKind struct {
	xrd  string
	kind schema.GroupVersionKind
}

// awaitKind reports whether Velero must wait until the kind of an XR or claim is served. A restore
// of namespaces brings no CRDs: Crossplane creates them once the XRD is back. Each kind is waited
// for once, for the given time at most, so that a restore ends if Crossplane is down.
func (o *Order) awaitKind(item *unstructured.Unstructured, first []velero.ResourceIdentifier, within time.Duration) bool {
	if !xp.IsComposite(item) && !xp.IsClaim(item) {
		return false
	}
	for _, i := range first {
		if i.GroupResource != xp.ResourceXRD {
			continue
		}
		if _, _, err := o.mapper.Resource(item.GroupVersionKind()); !meta.IsNoMatchError(err) {
			return false // If the lookup fails, Velero reports it when it creates the item.
		}
		if _, before := o.awaited.LoadOrStore(definedKind{i.Name, item.GroupVersionKind()}, true); before {
			return false
		}
		m := reason.AwaitingXRD.Messagef("%s is not served yet, so the restore waits for up to %s. If that is too short, check that Crossplane runs and the XRD "+
			"is Established, and restore again", item.GetKind(), within)
		withCode(o.log, m).WithFields(logrus.Fields{"object": xp.String(item), "definition": i.Name}).Info(m)

		return true
	}

	return false
}

// AreAdditionalItemsReady reports whether the awaited kinds of the XRDs among the items are served.
// It fails if the API server can't be asked.
func (o *Order) AreAdditionalItemsReady(items []velero.ResourceIdentifier, _ *velerov1.Restore) (bool, error) {
	for _, i := range items {
		if i.GroupResource != xp.ResourceXRD {
			continue
		}
		ready, err := o.isServed(i.Name)
		if !ready || err != nil {
			return false, err
		}
	}

	return true, nil
}

func (o *Order) isServed(xrd string) (ready bool, err error) {
	ready = true
	o.awaited.Range(func(key, _ any) bool {
		k, _ := key.(definedKind)
		if k.xrd != xrd {
			return true
		}
		switch _, _, failed := o.mapper.Resource(k.kind); {
		case meta.IsNoMatchError(failed):
			ready = false
		case failed != nil:
			ready, err = false, apiErrorf("cannot find out whether %s of XRD %s is served: %w", k.kind.Kind, xrd, failed)
		}

		return ready
	})

	return ready, err
}
