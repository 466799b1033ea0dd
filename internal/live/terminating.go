package live

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// definitionsTTL is for how long a list of XRDs is cached. A user may delete one during a restore.
const definitionsTTL = 5 * time.Second

// definitions caches the XRDs that are being deleted.
type definitions struct {
	mu          sync.Mutex
	terminating []*unstructured.Unstructured
	read        time.Time
}

// Terminating returns the XRD that defines the kind of an XR or claim if that XRD is being deleted,
// else nil. It lists the XRDs at most once per definitionsTTL.
func (c *Cluster) Terminating(ctx context.Context, gk schema.GroupKind) (*unstructured.Unstructured, error) {
	d := &c.definitions
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read.IsZero() || time.Since(d.read) > definitionsTTL {
		var terminating []*unstructured.Unstructured
		err := c.Each(ctx, xp.KindDefinition, "", metav1.ListOptions{}, func(u *unstructured.Unstructured) {
			if u.GetDeletionTimestamp() != nil {
				terminating = append(terminating, u)
			}
		})
		if err != nil && !isUnserved(err) {
			return nil, err
		}
		d.terminating, d.read = terminating, time.Now()
	}
	for _, u := range d.terminating {
		if xp.Defines(u, gk) {
			return u, nil
		}
	}

	return nil, nil //nolint:nilnil // nil means that no XRD is terminating.
}
