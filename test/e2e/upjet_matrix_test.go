//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// TestMatrixUpjetV1 is TestUpjetV2 with cluster-scoped MRs, of a claim or selected in the backup.
func TestMatrixUpjetV1(t *testing.T) {
	t.Parallel()
	alone, with := upjetScenes("v1.20")
	for _, n := range slices.Concat(alone, []*shape{with[0], with[2]}) {
		n.BackupArgs = selected(n.Name)
	}
	testUpjet(t, newUpjet(t, stack.V1), alone, with)
}

// always is more calls than a test makes.
const always = 1 << 20

func TestMatrixUpjetLagV1(t *testing.T) { testUpjetLag(t, stack.V1, "v1.20") }

func TestMatrixUpjetLagV2(t *testing.T) { testUpjetLag(t, stack.V2, "v2") }

// testUpjetLag loses a cluster. When upjet observes the restored MRs, the cloud does not show their
// external resources for a while, or refuses all calls.
func testUpjetLag(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	single, fleet := filepath.Join("testdata", dir, "upjet", "single"), filepath.Join("testdata", dir, "upjet", "fleet")
	lost := &shape{reason: "After a restore by Velero alone, upjet creates again what the cloud does not show yet.", Scene: drill.Scene{Name: "lost", Dir: single}}
	throttled := &shape{reason: "After a restore by Velero alone, upjet creates again what its status would find.", Scene: drill.Scene{Name: "throttled", Dir: single}}
	with := []*shape{
		{reason: "An external resource that the cloud does not show yet must not be created again.", Scene: drill.Scene{Name: "unseen", Dir: single}},
		{reason: "Nor must it be if an XR composes it.", Scene: drill.Scene{Name: "hidden", Dir: fleet, Count: 2}},
		{reason: "An MR must wait while the cloud refuses its calls.", Scene: drill.Scene{Name: "limited", Dir: single}},
	}
	if version.IsV1() {
		for _, n := range []*shape{lost, throttled, with[0], with[2]} {
			n.BackupArgs = selected(n.Name)
		}
	}
	answers := map[string]int{"lost": http.StatusNotFound, "unseen": http.StatusNotFound, "hidden": http.StatusNotFound, "limited": http.StatusTooManyRequests}
	s := newUpjet(t, version)
	s.source = s.upjet(t, "source", with)
	for _, n := range slices.Concat([]*shape{lost, throttled}, with) {
		must(t, n.Make(ctx, s.source))
	}
	must(t, s.source.RestartVelero(ctx))
	s.storeUpjet(t, lost)
	s.storeUpjet(t, throttled)
	must(t, s.source.UsePlugin(ctx, true))
	for _, n := range with {
		s.storeUpjet(t, n)
	}
	must(t, s.source.Destroy())

	s.target = s.upjet(t, "target", with)
	must(t, s.target.RestartVelero(ctx))
	s.refuse(t, lost, answers[lost.Name])
	t.Run("VeleroAlone", func(t *testing.T) {
		s.testMadeUnseen(t, lost)
		must(t, s.cloud.Recover(ctx))
		s.refuse(t, throttled, http.StatusTooManyRequests)
		s.testMadeLimited(t, throttled)
	})
	must(t, s.cloud.Recover(ctx))

	must(t, s.target.UsePlugin(ctx, true))
	for _, n := range with {
		s.refuse(t, n, answers[n.Name])
		must(t, n.StartRestore(ctx, s.target))
	}
	t.Run("Refused", func(t *testing.T) {
		for _, n := range with {
			t.Run(n.Name, func(t *testing.T) { s.testRefused(t, n, answers[n.Name]) })
		}
	})
	must(t, s.cloud.Recover(ctx))
	for _, n := range with {
		t.Run(n.Name, func(t *testing.T) { s.testUpjetRestored(t, n) })
	}
}

// refuse makes the cloud answer all calls for a scene with status; with 404 only reads.
func (s *suite) refuse(t *testing.T, n *shape, status int) {
	t.Helper()
	f := api.Fault{By: n.Name + "-", Status: status, Times: always}
	if status == http.StatusNotFound {
		f.Op = api.Read
	}
	must(t, s.cloud.Fail(t.Context(), f))
}

// testMadeUnseen is the control: after a restore by Velero alone upjet at once creates all that it
// does not find, unless the cloud knows it by its name.
func (s *suite) testMadeUnseen(t *testing.T, n *shape) {
	must(t, n.StartRestore(t.Context(), s.target))
	s.awaitCompleted(t, n.Name)
	s.wantRecreated(t, n, hideable()...)
}

// testMadeLimited is the control of the refused scene: upjet observes MRs that have an
// external-name, and tries to create those that have none. When the cloud answers, it creates
// those, and those that only their status would find.
func (s *suite) testMadeLimited(t *testing.T, n *shape) {
	ctx := t.Context()
	must(t, n.StartRestore(ctx, s.target))
	s.awaitCompleted(t, n.Name)
	s.eventually(t, "the cloud to refuse each MR twice", func(ctx context.Context) error { return s.refused(ctx, n, http.StatusTooManyRequests, "nameless") })
	s.wantUntried(t, n, "nameless")
	must(t, s.cloud.Recover(ctx))
	s.wantRecreated(t, n, "cluster", "nameless")
}

// wantUntried expects the provider to have made only reads, except for some MRs.
func (s *suite) wantUntried(t *testing.T, n *shape, save ...string) {
	t.Helper()
	tries, err := s.cloud.Journal(t.Context(), n.ledger.Seq, api.Create, api.Update, api.Delete)
	must(t, err)
	for _, e := range tries {
		isOf := func(mr string) bool { return strings.Contains(e.ManagedBy, n.Name+"-"+mr) }
		if isOf("") && !slices.ContainsFunc(save, isOf) {
			t.Errorf("%s In the cloud: %v", n.reason, e)
		}
	}
}

// testRefused expects two refused calls for each MR of a scene, only reads, and held MRs.
func (s *suite) testRefused(t *testing.T, n *shape, status int) {
	s.eventually(t, "the cloud to refuse each MR twice", func(ctx context.Context) error { return s.refused(ctx, n, status) })
	s.wantUntried(t, n)
	mrs, err := s.upjets(t.Context(), s.target, n)
	must(t, err)
	for _, u := range mrs {
		if !drill.Held(&u) || !slices.Equal(policies(&u), []any{"Observe"}) {
			t.Errorf("%s %s %s has the policies %v, annotations %v", n.reason, u.GetKind(), u.GetName(), policies(&u), u.GetAnnotations())
		}
	}
}

// refused returns an error until two calls for each MR of a scene, except save, were refused.
func (s *suite) refused(ctx context.Context, n *shape, status int, save ...string) error {
	entries, err := s.cloud.Journal(ctx, n.ledger.Seq, api.Read)
	if err != nil {
		return err
	}
	times := map[string]int{}
	for _, e := range entries {
		if e.Status == status {
			times[e.ManagedBy[strings.LastIndex(e.ManagedBy, " ")+1:]]++
		}
	}
	mrs, err := s.upjets(ctx, s.target, n)
	if err != nil {
		return err
	}
	var missing []error
	if len(mrs) == 0 {
		missing = append(missing, errors.New("there are no MRs"))
	}
	for _, u := range mrs {
		if got := times[string(u.GetUID())]; got < 2 && !slices.Contains(save, strings.TrimPrefix(u.GetName(), n.Name+"-")) {
			missing = append(missing, fmt.Errorf("%s %s: %d times", u.GetKind(), u.GetName(), got))
		}
	}

	return errors.Join(missing...)
}

// unansweredCreates is a scene for which the cloud does not answer some creates.
type unansweredCreates struct {
	shape

	stalled int
	// unnamed are the MRs whose external resource is unknown, without the name of the scene.
	unnamed []string
}

func TestMatrixUpjetFlightV1(t *testing.T) { testUpjetFlight(t, stack.V1, "v1.20") }

func TestMatrixUpjetFlightV2(t *testing.T) { testUpjetFlight(t, stack.V2, "v2") }

// testUpjetFlight backs a cluster up, and loses it, while upjet creates a hundred external
// resources and was answered for half of them.
func testUpjetFlight(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	dir = filepath.Join("testdata", dir, "upjet", "flight")
	alone := &unansweredCreates{stalled: 5, shape: shape{
		reason: "After a restore by Velero alone, upjet creates again what it was creating.", Scene: drill.Scene{Name: "alone", Dir: dir, Count: 10},
	}}
	midway := &unansweredCreates{stalled: 50, shape: shape{
		reason: "An external resource that upjet was creating must not be created again.",
		Scene:  drill.Scene{Name: "midway", Dir: dir, Count: 100, RestoreArgs: []string{"--item-operation-timeout", "90s"}},
	}}
	s := newUpjet(t, version)
	s.source = s.upjet(t, "source", nil)
	for _, n := range []*unansweredCreates{alone, midway} {
		if version.IsV1() {
			n.BackupArgs = selected(n.Name)
		}
		must(t, s.cloud.Fail(ctx, api.Fault{Op: api.Create, By: n.Name + "-", Stall: true, Times: n.stalled}))
		must(t, n.Make(ctx, s.source))
	}
	must(t, s.source.RestartVelero(ctx))
	s.storeFlight(t, alone)
	must(t, s.source.UsePlugin(ctx, true))
	s.storeFlight(t, midway)
	must(t, s.source.Kill(stack.UpjetProvider))
	must(t, s.source.Destroy())

	s.target = s.upjet(t, "target", nil)
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) { s.testUpjetAlone(t, &alone.shape, alone.unnamed...) })
	must(t, s.target.UsePlugin(ctx, true))
	must(t, midway.StartRestore(ctx, s.target))
	t.Run("Restored", func(t *testing.T) { s.testFlight(t, midway) })
}

// storeFlight backs a scene up when all is in the cloud, and upjet knows only the external
// resources that the cloud has answered for.
func (s *suite) storeFlight(t *testing.T, n *unansweredCreates) {
	t.Helper()
	ctx := t.Context()
	must(t, s.source.Wait(ctx, patience, "the creates of "+n.Name, func(ctx context.Context) (err error) {
		if n.ledger, err = n.Ledger(ctx, s.cloud); err != nil {
			return err
		}
		mrs, err := s.upjets(ctx, s.source, &n.shape)
		if err != nil {
			return err
		}
		ready := 0
		for _, u := range mrs {
			if u.GetAnnotations()[createSucceeded] == "" {
				return fmt.Errorf("upjet does not report that it created %s", u.GetName())
			}
			if stack.HasCondition(&u, "Ready", "True") == nil {
				ready++
			}
		}
		n.unnamed = n.withoutName(mrs)
		if len(n.ledger.External) != n.Count || ready != n.Count-n.stalled || len(n.unnamed) != n.stalled {
			return fmt.Errorf("there are %d in the cloud, and %d are Ready, %d without a name", len(n.ledger.External), ready, len(n.unnamed))
		}

		return nil
	}))
	must(t, n.BackUp(ctx, s.source))
}

// withoutName returns the MRs that have no external-name.
func (n *unansweredCreates) withoutName(mrs []unstructured.Unstructured) []string {
	var unnamed []string
	for _, u := range mrs {
		if u.GetAnnotations()[externalName] == "" {
			unnamed = append(unnamed, strings.TrimPrefix(u.GetName(), n.Name+"-"))
		}
	}
	slices.Sort(unnamed)

	return unnamed
}

// testFlight expects adopted known MRs, held and named other MRs, and no creates or deletes.
func (s *suite) testFlight(t *testing.T, n *unansweredCreates) {
	ctx := t.Context()
	r, err := drill.AwaitRestore(ctx, s.target, n.Name)
	must(t, err)
	if phase := drill.Phase(r); phase != "PartiallyFailed" {
		t.Errorf("%s The restore is %s", n.reason, phase)
	}
	mrs, err := s.upjets(ctx, s.target, &n.shape)
	must(t, err)
	if got := n.withoutName(mrs); len(mrs) != n.Count || !slices.Equal(got, n.unnamed) {
		t.Errorf("%s There are %d MRs, of which %v have no name, not %v", n.reason, len(mrs), got, n.unnamed)
	}
	details := s.details(t, n.Name)
	for _, u := range mrs {
		unknown := slices.Contains(n.unnamed, strings.TrimPrefix(u.GetName(), n.Name+"-"))
		if unknown != drill.Held(&u) || unknown != paused(&u) {
			t.Errorf("%s %s has the annotations %v", n.reason, u.GetName(), u.GetAnnotations())
		}
		if unknown {
			wantMessage(t, "the details of the restore", details, u.GetName(), "no external-name")
		} else if err := stack.HasCondition(&u, "Ready", "True"); err != nil {
			t.Errorf("%s %s: %v", n.reason, u.GetName(), err)
		}
	}
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	if t.Failed() {
		t.Log(drill.Problems(ctx, s.target, n.Name))
	}
}
