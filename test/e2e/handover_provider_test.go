package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testHoldUntouched holds a namespace with a new instance while no provider runs. Its MRs can't be
// held before the provider runs again and creates their external resources.
func (s *suite) testHoldUntouched(t *testing.T, n *tenant) {
	ctx := t.Context()
	since := s.last(t)
	each := len(s.managedOf(t, n, n.Name(0)))
	must(t, s.source.Kill(stack.CloudProvider))
	n.size++
	must(t, n.Make(ctx, s.source, n.size))
	name := n.Name(n.size - 1)
	s.eventually(t, "Crossplane to compose "+name, func(context.Context) error {
		if got := len(s.managedOf(t, n, name)); got < each {
			return fmt.Errorf("%d of %d MRs are there", got, each)
		}

		return nil
	})

	got := command(t, s.source, "hold", "-n", n.Namespace, "--timeout", "20s")
	if got.code == 0 {
		t.Errorf("hold says that all is quiet: %s\n%s", got.stderr, got.stdout)
	}
	for _, u := range s.managedOf(t, n, name) {
		wantMessage(t, "the output of hold", got.stdout+got.stderr, "AwaitingProvider", u.GetName())
		if drill.Held(u) {
			t.Errorf("%s %s is held, so its provider would not record the external resource", u.GetKind(), u.GetName())
		}
	}

	must(t, s.source.Start(ctx, stack.CloudProvider))
	s.hold(t, n)
	calls, err := s.calls(ctx, s.source, n, since, api.Create)
	must(t, err)
	if len(calls) != each {
		t.Errorf("%d external resources are created for %d MRs: %v", len(calls), each, calls)
	}
	for _, u := range s.managedOf(t, n, name) {
		if !drill.Held(u) || u.GetAnnotations()["crossplane.io/external-name"] == "" {
			t.Errorf("%s %s is not held with its external-name: %v", u.GetKind(), u.GetName(), u.GetAnnotations())
		}
	}
}

// managedOf returns the MRs of an instance in the source.
func (s *suite) managedOf(t *testing.T, n *tenant, instance string) []*unstructured.Unstructured {
	t.Helper()
	all, err := n.Managed(t.Context(), s.source)
	must(t, err)
	var mrs []*unstructured.Unstructured
	for i := range all {
		if strings.HasPrefix(all[i].GetLabels()["crossplane.io/composite"], instance) {
			mrs = append(mrs, &all[i])
		}
	}

	return mrs
}
