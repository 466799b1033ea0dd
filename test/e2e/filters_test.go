package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// split are tenants whose databases are excluded by a filter on resources.
type split struct {
	// narrowed has a backup without them. sifted is first restored without them.
	narrowed, sifted *tenant
	// alone has a backup without them, of Velero alone.
	alone *tenant
}

func (s *suite) fillSplit(t *testing.T) *split {
	t.Helper()
	of := func(namespace string) *tenant { return s.few(t, s.source, drill.Platform{Namespace: namespace}, 2) }

	return &split{narrowed: of("narrowed"), sifted: of("sifted"), alone: of("unsaid")}
}

// databasesOf is the resource of the databases that instances compose.
func databasesOf(version stack.Version) string {
	if version == stack.V1 {
		return "databases.cloud.example.org"
	}

	return "databases.cloud.m.example.org"
}

// backUpNarrowed backs a tenant up without its databases. It returns the number of the Backup's
// warnings and the number of log lines that name the databases.
func (s *suite) backUpNarrowed(t *testing.T, n *tenant) (counted int64, said int) {
	t.Helper()
	s.remember(t, s.source, n)
	b := backupWith(t, s.source, n.Namespace, "--include-namespaces", n.Namespace, "--exclude-resources", databasesOf(s.version))
	logs, err := s.source.Velero(t.Context(), "backup", "logs", n.Namespace)
	must(t, err)

	return warnings(b), linesWith(problems(logs), "level=warning", databasesOf(s.version), "[ExcludedByFilter]")
}

func (s *suite) backUpSplit(t *testing.T, p *split) {
	t.Helper()
	if counted, said := s.backUpNarrowed(t, p.narrowed); counted < int64(p.narrowed.size) || said < p.narrowed.size {
		t.Errorf("A backup that leaves out what XRs compose must warn: the Backup counts %d warnings, and %d lines of its log name a database", counted, said)
	}
	s.backUp(t, s.source, p.sifted)
}

// backUpSplitAlone is the control.
func (s *suite) backUpSplitAlone(t *testing.T, p *split) {
	t.Helper()
	if counted, said := s.backUpNarrowed(t, p.alone); counted > 0 || said > 0 {
		t.Errorf("Velero alone warns of what a backup leaves out %d times, so the other tests prove nothing", counted)
	}
}

// testSplitAlone is the control: Velero alone does not warn, and Crossplane creates a second time
// what was left out.
func (s *suite) testSplitAlone(t *testing.T, p *split) {
	n := p.alone
	s.restore(t, n, n.Namespace)
	s.eventually(t, "databases to be made a second time, without which the other tests prove nothing", func(ctx context.Context) error {
		got, err := n.Compare(ctx, s.target, s.cloud, n.before)
		if err == nil && got.Creates < n.size {
			err = fmt.Errorf("%+v", got)
		}

		return err
	})
	logs, err := s.target.Velero(t.Context(), "restore", "logs", n.Namespace)
	must(t, err)
	if said := linesWith(problems(logs), databasesOf(s.version)); said > 0 {
		t.Errorf("Velero alone warns of what is left out %d times, so the other tests prove nothing:\n%s", said, problems(logs))
	}
}

// testSplit checks that XRs are held if a backup or a restore has left out their databases, and
// that the restore names these as soon as its items are back. A restore with the databases adopts
// all.
func (s *suite) testSplit(t *testing.T, p *split) {
	ctx := t.Context()
	const soon = "--item-operation-timeout=15s"
	s.start(t, p.sifted, "sifted", "--exclude-resources", databasesOf(s.version), soon)
	must(t, drill.AwaitItems(ctx, s.target, "sifted"))
	logs, err := s.target.Velero(ctx, "restore", "logs", "sifted")
	must(t, err)
	wantMessage(t, "the log's problems of the restore", problems(logs), "level=warning", "[LeftOutByFilters]", databasesOf(s.version))
	s.start(t, p.narrowed, "narrowed", soon)
	for _, n := range []*tenant{p.sifted, p.narrowed} {
		s.wantPhase(t, n.Namespace, "PartiallyFailed")
		got, err := n.Compare(ctx, s.target, s.cloud, n.before)
		must(t, err)
		if got.Creates+got.Deletes+got.Duplicates > 0 || got.Holds < n.size {
			t.Errorf("What XRs in %s compose is not all there, so they must be held, and nothing made: %+v", n.Namespace, got)
		}
	}
	wantMessage(t, "the details of the restore", s.details(t, "sifted"), "[LeftOutByFilters]", databasesOf(s.version))
	s.restore(t, p.sifted, "sifted-again")
	s.settle(t, p.sifted)
	s.wantSound(t, p.sifted)
	s.wantNothingLeft(t, p.sifted)
}

// testSplitWhole checks that XRs that were held for their databases are adopted after a restore of
// another backup has created them.
func (s *suite) testSplitWhole(t *testing.T, p *split) {
	s.settle(t, p.narrowed)
	s.wantSound(t, p.narrowed)
	s.wantNothingLeft(t, p.narrowed)
}
