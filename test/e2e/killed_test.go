package e2e

import (
	"context"
	"errors"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testVeleroKilled kills Velero, with the plugin's process, as soon as the first XR is back. Velero fails such a restore and never polls it, so
// the XRs stay held, and a second restore brings the rest back and adopts all.
func (s *suite) testVeleroKilled(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	s.eventually(t, "the first XR", func(ctx context.Context) error {
		xrs, err := n.Composites(ctx, s.target)
		if err == nil && len(xrs) == 0 {
			err = errors.New("there is none")
		}

		return err
	})
	must(t, s.target.Kill(stack.Velero))
	xrs, err := n.Composites(ctx, s.target)
	must(t, err)
	held := 0
	for _, u := range xrs {
		if drill.Held(&u) {
			held++
		}
	}
	must(t, s.target.Start(ctx, stack.Velero))
	r, err := drill.AwaitRestore(ctx, s.target, n.Namespace)
	must(t, err)
	t.Logf("Velero was killed with %d of %d XRs back, %d of them held; it says %s", len(xrs), count, held, drill.Phase(r))
	s.restore(t, n, n.Namespace+"-again")
	s.settle(t, n)
	s.wantSound(t, n)
}
