package live

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// parallelLists is how many kinds are listed at a time: the API server encodes one page while the
// plugin decodes another. It is small, since one page of each kind is in memory.
const parallelLists = 4

// A prefetchResult is the result of a list and how long it took. listing is nil on an error.
type prefetchResult struct {
	*listing

	took time.Duration
	err  error
}

// prefetch lists what the options select in a collection.
func (o *observer) prefetch(ctx context.Context, p collection, options metav1.ListOptions, try func(func() error) error) (a prefetchResult) {
	began, early := time.Now(), false
	l := &listing{collection: p, options: options}
	version, err := o.cluster.eachWithRetry(ctx, p.GroupVersionKind, p.namespace, options, try, func(u *unstructured.Unstructured) {
		u = trim(u)
		o.snapshotMu.Lock()
		defer o.snapshotMu.Unlock()
		o.put(u)
	}, func(version string) {
		if !early && time.Since(began) > shortWatch {
			l.options.ResourceVersion = version
			early = o.followEarly(ctx, l)
		}
	})
	a.took = time.Since(began)
	if err != nil {
		a.err = err

		return a
	}
	if !early {
		l.options.ResourceVersion = version
	}
	a.listing = l

	return a
}

// prefetchList lists in parallel the needed kinds that are not required and were not listed yet,
// and reports whether there were any. Required kinds are listed and watched before.
func (o *observer) prefetchList(ctx context.Context, needs []xp.Ref) (bool, error) {
	labelled, _ := o.due(needs)
	var due []collection
	for _, p := range labelled {
		if o.vital[p.GroupVersionKind] || p.GroupVersionKind == kindSecret {
			continue
		}
		if err := o.discover(p.GroupVersionKind); err != nil {
			return false, err
		}
		if o.cluster.isKnown(p.GroupVersionKind) && (p.namespace == "" || !o.isClusterScoped(p.GroupVersionKind)) {
			due = append(due, p)
		}
	}
	if len(due) < 2 {
		return false, nil
	}
	outcomes := make([]prefetchResult, len(due))
	var group sync.WaitGroup
	slots := make(chan struct{}, parallelLists)
	for n, p := range due {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			outcomes[n] = o.prefetch(ctx, p, metav1.ListOptions{LabelSelector: o.selector}, o.cluster.withFewRetries)
		})
	}
	group.Wait()
	for n, p := range due {
		o.prefetched[p], o.labelled[p] = outcomes[n], true
		if err := o.list(ctx, p, o.selector); err != nil {
			return false, err
		}
	}

	return true, nil
}
