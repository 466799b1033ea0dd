package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// testDeletedWhileObserved deletes an MR that only observes, as a program does that prunes. Its
// external resource stays, which the restore must report. Another restore brings the MR back to it.
func (s *identity) testDeletedWhileObserved(t *testing.T) {
	n := s.scenes["forsaken"]
	var u unstructured.Unstructured
	s.eventually(t, "an MR to observe", func(ctx context.Context) error {
		mrs := s.managed(ctx, t, s.target, n.Name)
		if len(mrs) != 1 || paused(&mrs[0]) || !cmp.Equal([]any{"Observe"}, policies(&mrs[0])) {
			return fmt.Errorf("it does not: %v", mrs)
		}
		u = mrs[0]

		return nil
	})
	remove(t, s.target, u.GroupVersionKind(), n.Name, u.GetName())
	s.wantPhase(t, n.Name, "PartiallyFailed")
	wantMessage(t, "the details of the restore", s.details(t, n.Name), u.GetName(), "DeletedWhileObserved")
	ledger, err := n.Ledger(t.Context(), s.cloud)
	must(t, err)
	if diff := cmp.Diff(n.ledger.External, ledger.External); diff != "" {
		t.Errorf("its external resource must still be there, which is the control: -before, +after:\n%s", diff)
	}

	s.startRestore(t, n.Name+"-again", "all", "--include-namespaces", n.Name, "--annotations", observeFirst)
	s.awaitCompleted(t, n.Name+"-again")
	must(t, n.AwaitReady(t.Context(), s.target))
	for _, u := range s.managed(t.Context(), t, s.target, n.Name) {
		if drill.Held(&u) || !cmp.Equal([]any{"*"}, policies(&u)) {
			t.Errorf("%s %s does not manage its external resource: %v", n.reason, u.GetName(), u)
		}
	}
	s.wantUnwritten(t, n)
}
