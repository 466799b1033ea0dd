package restoreitem

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Converter knows the versions of the cluster's kinds, and whether it can convert between them.
type Converter interface {
	setting.Source

	// Versions returns the versions of a kind's CRD, the zero value if there is none.
	Versions(ctx context.Context, gk schema.GroupKind) (xp.Versions, error)
	// Convert has an object converted to the stored version of its kind, as if it were created in
	// the namespace, and creates nothing. It fails if that can't be done.
	Convert(ctx context.Context, u *unstructured.Unstructured, namespace string) error
}

// A Readiness makes a restore wait for the conversion webhooks of providers that do not run yet.
type Readiness struct {
	converter Converter
	settings  func(of metav1.Object) (setting.Settings, error)
	sleep     func(time.Duration)
	now       func() time.Time

	mu sync.Mutex
	// webhooks are those that were called.
	webhooks map[string]*webhook
}

// A webhook is the state of one webhook.
type webhook struct {
	// asked is when it was last called, and failure why that failed.
	asked   time.Time
	failure error
	// awaited means that the restore has waited for it.
	awaited bool
}

const (
	// webhookTTL is how long a result counts, so that a webhook is not called for each item.
	webhookTTL = 10 * time.Second
	// retryInterval is the time between two calls of a webhook.
	retryInterval = time.Second
)

// NewReadiness returns a Readiness that has called no webhook yet.
func NewReadiness(c Converter) *Readiness {
	sleep := func(d time.Duration) { <-time.After(d) } // Velero gives actions no context.

	return &Readiness{converter: c, settings: setting.Of(c), sleep: sleep, now: time.Now, webhooks: map[string]*webhook{}}
}

// timeout returns how long a restore waits for a kind.
func (r *Readiness) timeout(restore *velerov1.Restore) time.Duration {
	if r == nil {
		return setting.DefaultKindTimeout
	}
	s, err := r.settings(restore)
	if err != nil {
		return setting.DefaultKindTimeout // Adopt reports it.
	}

	return s.KindTimeout
}

// check fails if an item can't be created in its version, after it has waited for the webhook. A nil
// Readiness accepts everything.
func (r *Readiness) check(i *item) error {
	gvk := xp.CreatedAs(i.original)
	if r == nil || !xp.IsCustomGroup(gvk.Group) {
		return nil
	}
	v, err := r.converter.Versions(context.Background(), gvk.GroupKind())
	if err != nil || len(v.Served) == 0 {
		return nil //nolint:nilerr // Velero reports it when it creates the item.
	}
	if !v.Serves(gvk.Version) {
		return reason.BackupVersionNotServed.Errorf("cannot restore %s: the backup has it in %s, and this cluster serves %s only in %s. Install a version of %s "+
			"that serves both, restore again, then upgrade", xp.String(i.original), gvk.Version, gvk.GroupKind(), strings.Join(v.Served, " and "), v.Server())
	}
	if !v.Converts(gvk.Version) {
		return nil
	}
	within := r.timeout(i.restore)
	if err := r.await(v, i, within); err != nil {
		return reason.ConversionWebhookDown.Errorf("cannot restore %s: %s is stored in %s, and its conversion from %s (%s) does not answer: %w. Start %s (kubectl "+
			"get providers.pkg.crossplane.io), then restore again. A restore waits for %s, the setting %s", xp.String(i.original),
			gvk.GroupKind(), v.Stored, gvk.Version, v.Webhook, err, v.Server(), within, setting.NameKind)
	}

	return nil
}

// await waits until a webhook answers, once in a restore and for the given time at most.
func (r *Readiness) await(v xp.Versions, i *item, within time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.webhooks[v.Webhook]
	if w == nil {
		w = &webhook{}
		r.webhooks[v.Webhook] = w
	}
	if !w.asked.IsZero() && r.now().Sub(w.asked) < webhookTTL {
		return w.failure
	}
	ask := func() bool {
		w.failure = r.converter.Convert(context.Background(), i.original, i.namespace)
		w.asked = r.now()

		return w.failure == nil
	}
	if ask() || w.awaited {
		return w.failure
	}
	w.awaited = true
	m := reason.ConversionWebhookDown.Messagef("The restore waits for up to %s until %s of %s converts %s. When you start that, the restore continues", within,
		v.Webhook, v.Server(), v.Kind)
	withCode(i.log, m).WithError(w.failure).Warn(m)
	for until := r.now().Add(within); r.now().Before(until); {
		r.sleep(retryInterval)
		if ask() {
			i.log.Info(v.Webhook + " answers, so the restore continues")

			return nil
		}
	}

	return w.failure
}

// awaitKind reports whether Velero must wait until the kind of an XR or claim is served. A restore
// of namespaces brings no CRDs: Crossplane creates them once the XRD is back. Each kind is waited
// for once, for the given time at most, so that a restore ends if Crossplane is down.
func (o *Order) awaitKind(i *item, first []xp.Item, within time.Duration) bool {
	n := slices.IndexFunc(first, func(e xp.Item) bool { return e.GroupResource == xp.ResourceXRD })
	if n < 0 || !i.isHeld() {
		return false
	}
	if _, _, err := o.kinds.Resource(i.GroupVersionKind()); !meta.IsNoMatchError(err) {
		return false // If the lookup fails, Velero reports it when it creates the item.
	}
	if !o.awaited.add(i.GroupVersionKind(), first[n].Name) {
		return false
	}
	m := reason.AwaitingXRD.Messagef("%s is not served yet, so the restore waits for up to %s. If that is too short, check that Crossplane runs and the XRD "+
		"is Established, and restore again", i.GetKind(), within)
	withCode(i.log, m).WithField("definition", first[n].Name).Info(m)

	return true
}

// AreAdditionalItemsReady reports whether the awaited kinds of the XRDs among the items are served.
func (o *Order) AreAdditionalItemsReady(items []velero.ResourceIdentifier, _ *velerov1.Restore) (bool, error) {
	for kind, xrd := range o.awaited.all() {
		if !slices.Contains(items, velero.ResourceIdentifier{GroupResource: xp.ResourceXRD, Name: xrd}) {
			continue
		}
		switch _, _, err := o.kinds.Resource(kind); {
		case meta.IsNoMatchError(err):
			return false, nil
		case err != nil:
			return false, apiErrorf("cannot find out whether %s of XRD %s is served: %w", kind.Kind, xrd, err)
		}
	}

	return true, nil
}
