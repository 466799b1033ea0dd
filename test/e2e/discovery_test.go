package e2e

import (
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// testDiscovery backs up instances of an XRD that is younger than Velero's discovery, so that they
// are not in the backup.
func (s *suite) testDiscovery(t *testing.T) {
	ctx := t.Context()
	late := fleets(drill.Platform{Crossplane: s.version}.Dir(), "late", "few", 1)
	const name, file = "Fleet.late.example.org", "resources/fleets.late.example.org/namespaces/late/late-00.json"
	must(t, late.Install(ctx, s.target, ""))
	must(t, late.Make(ctx, s.target))
	must(t, late.AwaitReady(ctx, s.target))

	blind := backupWith(t, s.target, "blind", "--include-namespaces", "late")
	if _, ok := contents(t, s.target, "blind")[file]; ok {
		t.Fatal("Velero knew the kind, so this tests nothing")
	}
	logs, err := s.target.Velero(ctx, "backup", "logs", "blind")
	must(t, err)
	if warnings(blind) == 0 {
		t.Error("the Backup counts no warning, though its instances are missing")
	}
	wantMessage(t, "the log's problems of the backup", problems(logs), name, "[KindTooNew]")

	must(t, s.target.RestartVelero(ctx))
	backupWith(t, s.target, "sighted", "--include-namespaces", "late")
	if _, ok := contents(t, s.target, "sighted")[file]; !ok {
		t.Error("the instance is not in the backup of a Velero that knows its kind")
	}
	logs, err = s.target.Velero(ctx, "backup", "logs", "sighted")
	must(t, err)
	if linesWith(problems(logs), name, "[KindTooNew]") > 0 {
		t.Errorf("the backup still warns of the kind:\n%s", problems(logs))
	}
}
