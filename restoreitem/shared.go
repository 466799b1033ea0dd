package restoreitem

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Shared is what the actions of one restore share. Of what is nil, an action lacks the feature.
type Shared struct {
	// Requested is what Order has requested, for Adopt. It is empty if it is nil.
	Requested *RequestedItems
	// XRDs refuses XRs and claims whose XRD is being deleted.
	XRDs *XRDCheck
	// Ready has Order wait until its items can be converted.
	Ready *Readiness
	// Features returns the features of the Velero server.
	Features func() []string
	// Modifiers returns the name of the ConfigMap with resource modifiers for all Restores, if any.
	Modifiers func() string

	// remarks receives the remarks about each item, for a dry run.
	remarks func([]remark)
}

func (s Shared) complete() Shared {
	if s.Requested == nil {
		s.Requested = &RequestedItems{}
	}
	if s.remarks == nil {
		s.remarks = func([]remark) {}
	}

	return s
}

// A table is a map that the actions of one process share. Its zero value is empty.
type table[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]V
}

func (t *table[K, V]) get(key K) (value V, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, ok = t.entries[key]

	return value, ok
}

func (t *table[K, V]) has(key K) bool {
	_, ok := t.get(key)

	return ok
}

func (t *table[K, V]) put(key K, value V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries == nil {
		t.entries = map[K]V{}
	}
	t.entries[key] = value
}

// add is put, unless the key has a value. It reports whether it had none.
func (t *table[K, V]) add(key K, value V) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, before := t.entries[key]; before {
		return false
	}
	if t.entries == nil {
		t.entries = map[K]V{}
	}
	t.entries[key] = value

	return true
}

func (t *table[K, V]) remove(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.entries, key)
}

// all returns a copy of the entries.
func (t *table[K, V]) all() map[K]V {
	t.mu.Lock()
	defer t.mu.Unlock()

	return maps.Clone(t.entries)
}

// ofOwner returns the value of the object that an owner reference in the namespace means.
func ofOwner[V any](t *table[xp.ID, V], o metav1.OwnerReference, namespace string) (value V, ok bool) {
	r := xp.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: namespace, Name: o.Name}
	if value, ok = t.get(r.ID()); ok {
		return value, true
	}
	r.Namespace = ""

	return t.get(r.ID())
}
