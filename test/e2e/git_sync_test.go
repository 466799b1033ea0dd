package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// as returns a client of the target for a ServiceAccount.
func (s *suite) as(t *testing.T, namespace, name string) dynamic.Interface {
	t.Helper()
	config := s.target.REST()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	client, err := dynamic.NewForConfig(config)
	must(t, err)

	return client
}

// instancesOf returns a client for instances: claims or, without claims, XRs.
func instancesOf(client dynamic.Interface, n drill.Platform) dynamic.ResourceInterface {
	gvr := n.Manifest(0).GroupVersionKind().GroupVersion().WithResource("environments")

	return client.Resource(gvr).Namespace(n.Namespace)
}

// A gitSync stands for Argo CD: it applies the manifests in Git as fast as it can, server-side and
// with force, whether the objects exist or not.
type gitSync struct {
	stop  context.CancelFunc
	ended chan struct{}

	mu sync.Mutex
	// applied and refused count by name.
	applied, refused map[string]int
	other            error
}

func (s *suite) syncs(t *testing.T, n *tenant) *gitSync {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	to := instancesOf(s.as(t, "argocd", "argocd-application-controller"), n.Platform)
	a := &gitSync{stop: cancel, ended: make(chan struct{}), applied: map[string]int{}, refused: map[string]int{}}
	go func() {
		defer close(a.ended)
		for ctx.Err() == nil {
			for _, m := range n.manifests() {
				_, err := to.Apply(ctx, m.GetName(), m, metav1.ApplyOptions{FieldManager: "argocd-controller", Force: true})
				a.count(m.GetName(), err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(a.end)

	return a
}

func (a *gitSync) end() {
	a.stop()
	<-a.ended
}

func (a *gitSync) count(name string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.applied[name]++
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), guardName):
		a.refused[name]++
	case !errors.Is(err, context.Canceled):
		a.other = err
	}
}

func (a *gitSync) counts() (applied, refused map[string]int, other error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	return maps.Clone(a.applied), maps.Clone(a.refused), a.other
}

// awaitSync waits until the counts that of returns have all instances.
func (s *suite) awaitSync(t *testing.T, n *tenant, a *gitSync, what string, of func(applied, refused map[string]int) map[string]int) {
	t.Helper()
	s.eventually(t, what, func(context.Context) error {
		applied, refused, other := a.counts()
		if len(of(applied, refused)) < n.size {
			return fmt.Errorf("applied %v, refused %v, %w", applied, refused, other)
		}

		return nil
	})
}
