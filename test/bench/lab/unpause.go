package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// Enough for the API server of one machine.
const (
	unpauseRate     = 1000
	unpauseParallel = 32
)

// unpause pauses all XRs and MRs as a user does. It returns the seconds that it takes to end these
// pauses, until each controller has reported that it works again. It checks nothing, so no promotion
// with the same writes can be faster.
func (l *Lab) unpause(ctx context.Context, trees int) (float64, error) {
	if err := l.pauseAll(ctx, true); err != nil {
		return 0, err
	}
	if err := l.awaitSynced(ctx, trees, "False"); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := l.pauseAll(ctx, false); err != nil {
		return 0, err
	}
	if err := l.awaitSynced(ctx, trees, "True"); err != nil {
		return 0, err
	}
	seconds := time.Since(began).Seconds()
	l.Say("without the plugin %d XRs and what they compose were unpaused in %.1f s", trees, seconds)

	return seconds, nil
}

// pauseAll sets the pause of all MRs and XRs, or removes it.
func (l *Lab) pauseAll(ctx context.Context, paused bool) error {
	var value any
	if paused {
		value = "true"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"crossplane.io/paused": value}}})
	if err != nil {
		return fmt.Errorf("cannot encode a pause: %w", err)
	}
	g, limited := errgroup.WithContext(ctx)
	g.SetLimit(unpauseParallel)
	err = l.eachReconciled(ctx, func(r dynamic.ResourceInterface, u *unstructured.Unstructured) {
		g.Go(func() error {
			_, err := r.Patch(limited, u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})

			return err
		})
	})
	if waitErr := g.Wait(); err == nil {
		err = waitErr
	}
	if err != nil {
		return fmt.Errorf("cannot pause or unpause all: %w", err)
	}

	return nil
}

// awaitSynced waits until the condition Synced of all XRs and MRs has a status.
func (l *Lab) awaitSynced(ctx context.Context, trees int, status string) error {
	return l.wait(ctx, l.timeout(trees), "Synced to be "+status, func(ctx context.Context) error {
		left := 0
		err := l.eachReconciled(ctx, func(_ dynamic.ResourceInterface, u *unstructured.Unstructured) {
			if stack.HasCondition(u, "Synced", status) != nil {
				left++
			}
		})
		if err == nil && left > 0 {
			err = fmt.Errorf("%d objects are left", left)
		}

		return err
	})
}

// eachReconciled passes all MRs, and then all XRs, to do.
func (l *Lab) eachReconciled(ctx context.Context, do func(r dynamic.ResourceInterface, u *unstructured.Unstructured)) error {
	config := l.cluster.REST()
	config.QPS, config.Burst = unpauseRate, unpauseRate
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	var resources []schema.GroupVersionResource
	for _, name := range l.managedResources() {
		resources = append(resources, l.managedGroup().WithResource(name))
	}
	for _, gvr := range append(resources, compositeKind.GroupVersion().WithResource(compositeResource)) {
		r := client.Resource(gvr).Namespace(namespace)
		all, err := r.List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", gvr.Resource, err)
		}
		for i := range all.Items {
			do(r, &all.Items[i])
		}
	}

	return nil
}
