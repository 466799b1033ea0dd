package live

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// beside is how many kinds are listed at a time: while one page is decoded here the API server encodes another. It is little, since a page of each is in
// memory.
const beside = 4

// An outcome is what has come of a list: as of when it is, and how long it took. There is no listing if there is an error.
type outcome struct {
	*listing

	took time.Duration
	err  error
}

// ask lists what the options select in a collection.
func (o *observer) ask(ctx context.Context, p collection, options metav1.ListOptions, try func(func() error) error) (a outcome) {
	began, early := time.Now(), false
	l := &listing{collection: p, options: options}
	version, err := o.cluster.eachTrying(ctx, p.GroupVersionKind, p.namespace, options, try, func(u *unstructured.Unstructured) {
		u = slim(u)
		o.adding.Lock()
		defer o.adding.Unlock()
		o.put(u)
	}, func(version string) {
		if !early && time.Since(began) > soon {
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

// listBeside lists side by side those kinds of what is needed that are to be listed for the first time, and tells whether there were any. What is vital comes
// first, and is followed as soon as it is listed.
func (o *observer) listBeside(ctx context.Context, needs []xp.Ref) (bool, error) {
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
	outcomes := make([]outcome, len(due))
	var asking sync.WaitGroup
	tickets := make(chan struct{}, beside)
	for n, p := range due {
		tickets <- struct{}{}
		asking.Go(func() {
			defer func() { <-tickets }()
			outcomes[n] = o.ask(ctx, p, metav1.ListOptions{LabelSelector: o.selector}, o.cluster.briefly)
		})
	}
	asking.Wait()
	for n, p := range due {
		o.ahead[p], o.labelled[p] = outcomes[n], true
		if err := o.list(ctx, p, o.selector); err != nil {
			return false, err
		}
	}

	return true, nil
}
