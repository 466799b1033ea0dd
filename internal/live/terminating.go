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

// definitionsLast is for how long a list of XRDs is believed: a restore takes minutes, and somebody
// may delete one in the meantime.
const definitionsLast = 5 * time.Second

// definitions are the XRDs that are being deleted.
type definitions struct {
	mu          sync.Mutex
	terminating []*unstructured.Unstructured
	read        time.Time
}

// Terminating returns the XRD of an XR's or a claim's kind if that is being deleted, nil if it is
// not. It lists the XRDs at most once in a few seconds.
func (c *Cluster) Terminating(ctx context.Context, gk schema.GroupKind) (*unstructured.Unstructured, error) {
	d := &c.definitions
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read.IsZero() || time.Since(d.read) > definitionsLast {
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

	return nil, nil //nolint:nilnil // None is an answer.
}
