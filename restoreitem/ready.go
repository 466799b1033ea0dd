package restoreitem

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Converter knows in which versions the cluster has kinds, and whether it can convert between
// them.
type Converter interface {
	setting.Source

	// Versions returns what the CRD of a kind says of its versions, the zero value if there is
	// none.
	Versions(ctx context.Context, gk schema.GroupKind) (xp.Versions, error)
	// Convert has an object converted to the version in which its kind is stored, as if it were
	// created in the namespace, and creates nothing. It fails if that can't be done.
	Convert(ctx context.Context, u *unstructured.Unstructured, namespace string) error
}

// A Readiness has the restore wait for webhooks that convert what it brings, which providers have
// and which may have no Pod yet. All actions of a restore share one.
type Readiness struct {
	converter Converter
	settings  func(of metav1.Object) (setting.Settings, error)
	// sleep waits for a while.
	sleep func(time.Duration)
	now   func() time.Time

	mu sync.Mutex
	// webhooks are those that were asked.
	webhooks map[string]*webhook
}

// A webhook is what is known of one.
type webhook struct {
	// isRequested is when it last had an answer or none, and failure why it had none.
	asked   time.Time
	failure error
	// missingInput says that it was waited for.
	awaited bool
}

const (
	// webhookTTL is for how long what is known of a webhook is believed, so that it is not asked
	// for each item.
	webhookTTL = 10 * time.Second
	// retryInterval is how long to wait for a webhook before it is asked again.
	retryInterval = time.Second
)

// NewReadiness returns a Readiness that has asked nothing yet.
func NewReadiness(c Converter) *Readiness {
	return &Readiness{converter: c, settings: setting.Of(c), sleep: pause, now: time.Now, webhooks: map[string]*webhook{}}
}

// pause waits, as an action of Velero's does: it gets no context.
func pause(d time.Duration) { <-time.After(d) }

// timeout returns for how long a restore waits for a kind.
func (r *Readiness) timeout(restore *velerov1.Restore) time.Duration {
	if r == nil || restore == nil {
		return setting.DefaultKindTimeout
	}
	s, err := r.settings(restore)
	if err != nil {
		return setting.DefaultKindTimeout // Adopt says what is wrong with them.
	}

	return s.KindTimeout
}

// check fails if an item can't be created in the version that it has in the backup, after it has
// waited for what converts it. A nil Readiness lets everything pass.
func (r *Readiness) check(item *unstructured.Unstructured, restore *velerov1.Restore, log logrus.FieldLogger) error {
	gvk := item.GroupVersionKind()
	if r == nil || !xp.IsCustomGroup(gvk.Group) {
		return nil
	}
	v, err := r.converter.Versions(context.Background(), gvk.GroupKind())
	if err != nil || len(v.Served) == 0 {
		return nil //nolint:nilerr // Whoever creates the item is told.
	}
	if !v.Serves(gvk.Version) {
		return fmt.Errorf("cannot restore %s: the backup has it in %s, and this cluster serves %s only in %s; install a version of %s that serves both, restore "+
			"again, and upgrade after that", xp.String(item), gvk.Version, gvk.GroupKind(), strings.Join(v.Served, " and "), v.Server())
	}
	if !v.Converts(gvk.Version) {
		return nil
	}
	within := r.timeout(restore)
	if err := r.await(v, item, restore, within, log); err != nil {
		return fmt.Errorf("cannot restore %s: %s is stored in %s, and what converts it from %s (%s) does not answer: %w. What composes it stays held; start %s "+
			"(kubectl get providers.pkg.crossplane.io), then restore again. The setting %s (%s) says for how long a restore waits", xp.String(item),
			gvk.GroupKind(), v.Stored, gvk.Version, v.Webhook, err, v.Server(), setting.NameKind, within)
	}

	return nil
}

// await waits until a webhook answers, once in a restore and for the given time at most.
func (r *Readiness) await(
	v xp.Versions, item *unstructured.Unstructured, restore *velerov1.Restore, within time.Duration, log logrus.FieldLogger,
) error {
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
	namespace := targetNamespace(item.GetNamespace(), restore)
	ask := func() bool {
		w.failure = r.converter.Convert(context.Background(), item, namespace)
		w.asked = r.now()

		return w.failure == nil
	}
	if ask() || w.awaited {
		return w.failure
	}
	w.awaited = true
	log.WithError(w.failure).Warn("Waiting for up to " + within.String() + " until " + v.Webhook + " of " + v.Server() + " converts " + v.Kind.String() +
		"; start that, and the restore goes on by itself")
	for until := r.now().Add(within); r.now().Before(until); {
		r.sleep(retryInterval)
		if ask() {
			log.Info(v.Webhook + " answers, so the restore goes on")

			return nil
		}
	}

	return w.failure
}
