package drill

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// A History has every state of watched objects, as the API server reported it.
type History struct {
	mu     sync.Mutex
	states []*unstructured.Unstructured
}

func (h *History) collect(w watch.Interface, prefix string) {
	for e := range w.ResultChan() {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok || !strings.HasPrefix(u.GetName(), prefix) {
			continue
		}
		h.mu.Lock()
		h.states = append(h.states, u)
		h.mu.Unlock()
	}
}

// Of returns the states of the objects of a kind by name, each in the order of the changes.
func (h *History) Of(kind string) map[string][]*unstructured.Unstructured {
	h.mu.Lock()
	defer h.mu.Unlock()
	states := map[string][]*unstructured.Unstructured{}
	for _, u := range h.states {
		if u.GetKind() == kind {
			states[u.GetName()] = append(states[u.GetName()], u)
		}
	}
	for _, list := range states {
		slices.SortFunc(list, func(a, b *unstructured.Unstructured) int { return cmp.Compare(Version(a), Version(b)) })
	}

	return states
}

// Version returns the resource version as a number. etcd numbers all changes of a cluster in
// sequence, so the versions of two objects show which change came first.
func Version(u *unstructured.Unstructured) int64 {
	n, err := strconv.ParseInt(u.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}

	return n
}
