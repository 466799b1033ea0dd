package e2e

import (
	"strings"
	"sync"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// testAbortRace restores a handover in the target and aborts it in the source at once. At most one of
// the two goes on, and each that does not names the reason.
func (s *suite) testAbortRace(t *testing.T, n *tenant) {
	ctx := t.Context()
	s.hold(t, n)
	must(t, n.Backup(ctx, s.source, n.Namespace))
	since := s.last(t)
	var abort run
	var wg sync.WaitGroup
	wg.Go(func() { abort = command(t, s.source, "release", "--handover", "-n", n.Namespace) })
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	must(t, drill.AwaitItems(ctx, s.target, n.Namespace))
	wg.Wait()

	here, there := s.held(t, s.source, n) == 0, len(s.all(t, s.target, n)) > 0
	if here && there {
		t.Errorf("both clusters manage the resources: the abort exits with %d: %s\n%s", abort.code, abort.stdout, abort.stderr)
	}
	if !here && (abort.code != 3 || !strings.Contains(abort.stdout, "AdoptedElsewhere")) {
		t.Errorf("the abort does not name the reason: exit %d: %s\n%s", abort.code, abort.stdout, abort.stderr)
	}
	if problems := drill.Problems(ctx, s.target, n.Namespace); !there && !strings.Contains(problems, "HandoverAborted") {
		t.Errorf("the restore does not name the reason: %s", problems)
	}
	t.Logf("the source goes on: %t, the target: %t", here, there)
	s.wantNoChanges(t, n, since)
}
