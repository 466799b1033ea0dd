package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testTimedOut expects a restore to give up before the provider runs: the XRs stay held with the
// cause, and a second restore adopts them.
func (s *suite) testTimedOut(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, s.target.Stop(stack.CloudProvider))
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace, "--item-operation-timeout", "1s"))
	r, err := drill.AwaitRestore(ctx, s.target, n.Namespace)
	must(t, err)
	if drill.Phase(r) != "PartiallyFailed" {
		t.Errorf("a restore that gave up is %s", drill.Phase(r))
	}
	xrs, err := n.Composites(ctx, s.target)
	must(t, err)
	for _, u := range xrs {
		if why := u.GetAnnotations()[annotationHold]; !paused(&u) || !strings.Contains(why, "its provider has not observed it yet") {
			t.Errorf("XR %s is not held with the reason: %s", u.GetName(), why)
		}
	}
	s.eventually(t, "an Event for each XR", func(ctx context.Context) error { return s.explained(ctx, n) })

	must(t, s.target.Start(ctx, stack.CloudProvider))
	s.restore(t, n, n.Namespace+"-again")
	s.settle(t, n)
	s.wantSound(t, n)
}

// explained returns an error unless every XR of the namespace has an Event about its hold.
func (s *suite) explained(ctx context.Context, n *tenant) error {
	namespace := n.Namespace
	if s.version == stack.V1 {
		namespace = metav1.NamespaceDefault
	}
	events, err := s.target.Resource(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, namespace)
	if err != nil {
		return err
	}
	list, err := events.List(ctx, metav1.ListOptions{FieldSelector: "reason=AdoptionStopped"})
	if err != nil {
		return fmt.Errorf("cannot list Events: %w", err)
	}
	if len(list.Items) < n.size {
		return fmt.Errorf("there are %d", len(list.Items))
	}

	return nil
}
