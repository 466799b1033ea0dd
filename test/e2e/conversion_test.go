package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// Scenes in which a webhook converts the networks.
const (
	aloneConverted = "alone-converted"
	converted      = "converted"
	awaited        = "awaited"
	slowly         = "slowly"
	movedOn        = "moved-on"
	unknown        = "unknown"
	withdrawn      = "withdrawn"
	// plain has no network.
	plain = "plain"
)

const (
	first  = "v1alpha1"
	second = "v1alpha2"
)

// cloudGroup is the group of the MRs in the scenes of conversions and activations.
func (s *suite) cloudGroup() string {
	if s.version == stack.V1 {
		return "cloud.example.org"
	}

	return "cloud.m.example.org"
}

func (s *suite) networksCRD() string { return "networks." + s.cloudGroup() }

func (s *suite) databasesCRD() string { return "databases." + s.cloudGroup() }

func (s *suite) conversionScenes() map[string]*shape {
	claims := 0
	if s.version == stack.V1 {
		claims = few
	}
	network := func(reason string) *shape {
		return &shape{reason: reason, Scene: drill.Scene{Dir: "definitions-network", Count: few, Size: 3*few + claims, RestoreArgs: withoutCRDs}}
	}

	all := map[string]*shape{
		aloneConverted: network("Velero alone loses what can't be converted, and Crossplane creates it again."),
		converted:      network("What can't be converted in time is named, its XR stays held, and a second restore brings it."),
		awaited:        network("A restore waits for a webhook."),
		slowly:         network("A webhook may be slow."),
		movedOn:        network("The version that is stored may have moved."),
		unknown: {
			reason: "An object that can't be listed is not reported as missing.",
			Scene:  drill.Scene{Dir: "definitions-database", Count: few, Size: 3*few + claims, RestoreArgs: withoutCRDs},
		},
		retired:   s.sceneRetired(claims),
		withdrawn: network("A version that is not served any more is an error with its cure."),
		plain: {
			reason: "A restore without objects of a kind that can't be converted goes on.",
			Scene:  drill.Scene{Dir: "definitions", Count: few, Size: 2*few + claims, RestoreArgs: withoutCRDs},
		},
	}

	return all
}

// testConversion restores into a cluster in which the webhook that converts a kind between its
// versions is broken or slow.
func testConversion(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	s := newStage(t, version)
	scenes := s.conversionScenes()
	hook := newConverter(t)
	s.fillConverted(t, dir, hook, scenes)

	s.target = s.bare(t, "target")
	hook.convert(t, s.target, s.networksCRD(), first, second)
	for name, n := range scenes {
		s.installFunction(t, s.target, name, true)
		must(t, n.Install(ctx, s.target, "target.yaml"))
	}
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) { s.testConvertedAlone(t, hook, scenes[aloneConverted]) })
	must(t, s.target.UsePlugin(ctx, true))

	for _, m := range []webhookMode{down, broken, expired, silent} {
		t.Run("Never/"+string(m), func(t *testing.T) { s.testNeverConverted(t, hook, scenes[converted], m) })
	}
	t.Run("Again", func(t *testing.T) {
		hook.be(up)
		s.again(t, scenes[converted])
		must(t, scenes[converted].AwaitReady(ctx, s.target))
	})
	t.Run("Slow", func(t *testing.T) {
		hook.be(slow)
		must(t, scenes[slowly].StartRestore(ctx, s.target))
		s.awaitCompleted(t, slowly)
		hook.be(up)
	})
	t.Run("Late", func(t *testing.T) { s.testConvertedLate(t, hook, scenes[awaited]) })
	t.Run("Withdrawn", func(t *testing.T) { s.testWithdrawn(t, hook, scenes[withdrawn]) })
	t.Run("Retired", func(t *testing.T) { s.testRetired(t, scenes[retired]) })
	hook.convert(t, s.target, s.networksCRD(), second, first)
	t.Run("Moved", func(t *testing.T) {
		must(t, scenes[movedOn].StartRestore(ctx, s.target))
		s.awaitCompleted(t, movedOn)
	})
	t.Run("Unlisted", func(t *testing.T) { s.testUnlisted(t, newConverter(t), scenes) })
	now, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	t.Run("Settled", func(t *testing.T) {
		for _, name := range []string{converted, awaited, slowly, movedOn, unknown, withdrawn, retired, plain} {
			t.Run(name, func(t *testing.T) { s.testSettled(t, scenes[name], now[len(now)-1].Seq) })
		}
	})
}

// fillConverted creates the scenes in a source whose networks have two versions. It backs them up
// in the version that is not the storage version, backs up again while the webhook is broken, and
// loses the source.
func (s *suite) fillConverted(t *testing.T, dir string, hook *converter, scenes map[string]*shape) {
	t.Helper()
	ctx := t.Context()
	s.source = s.bare(t, "source")
	hook.convert(t, s.source, s.networksCRD(), first, second)
	hook.convert(t, s.source, s.databasesCRD(), first, second)
	newConverter(t).convert(t, s.source, "buckets."+s.cloudGroup(), first, zeroth)
	names := slices.Sorted(maps.Keys(scenes))
	for _, name := range names {
		n := scenes[name]
		n.Name, n.Dir = name, filepath.Join("testdata", dir, n.Dir)
		s.installFunction(t, s.source, name, true)
		must(t, n.Install(ctx, s.source, "source.yaml"))
		must(t, n.Make(ctx, s.source))
	}
	must(t, s.source.RestartVelero(ctx))
	if s.version == stack.V1 {
		must(t, s.source.UsePlugin(ctx, true)) // Velero alone backs up nothing cluster-scoped of a namespace, so it could lose nothing.
	}
	s.store(t, scenes[aloneConverted])
	must(t, s.source.UsePlugin(ctx, true))
	for _, name := range names {
		if name != aloneConverted {
			s.store(t, scenes[name])
		}
	}
	for _, m := range []webhookMode{down, broken, expired} {
		t.Run("Backup/"+string(m), func(t *testing.T) { s.testBackUpUnconverted(t, hook, m) })
	}
	hook.be(up)
	must(t, s.source.Destroy())
}

// testBackUpUnconverted checks that a backup has all but unreadable objects, and names those.
func (s *suite) testBackUpUnconverted(t *testing.T, hook *converter, m webhookMode) {
	ctx := t.Context()
	hook.be(m)
	hook.convert(t, s.source, s.networksCRD(), first, second)
	name := "backup-" + string(m)
	_, err := s.source.Velero(ctx, "backup", "create", name, "--include-namespaces", converted+","+plain)
	must(t, err)
	must(t, s.source.Wait(ctx, patience, "the backup "+name, func(ctx context.Context) error {
		u, err := get(ctx, s.source, schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Backup"}, "velero", name)
		if err != nil {
			return err
		}
		if p := drill.Phase(u); p != "PartiallyFailed" {
			return fmt.Errorf("it is %s", p)
		}

		return nil
	}))
	logs, err := s.source.Velero(ctx, "backup", "logs", name)
	must(t, err)
	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	_, err = s.source.Velero(ctx, "backup", "download", name, "-o", file)
	must(t, err)
	r := run{}
	r.stdout, r.stderr, _, err = s.source.Plugin(ctx, s.source.Kubeconfig(), "inspect", file, "-o", "wide")
	must(t, err)
	for i := range few {
		for _, want := range []string{fmt.Sprintf("Order.%[1]s.example.org/%[1]s-%02[2]d", converted, i), fmt.Sprintf("Order.%[1]s.example.org/%[1]s-%02[2]d", plain, i)} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("the backup lacks the XR %s:\n%s%s", want, r.stdout, r.stderr)
			}
		}
	}
	wantMessage(t, "the log of the backup", logs, "level=error", "conversion webhook for", "RelatedNotRead")
}

// restoreArgs returns the arguments of velero that restore a scene.
func (s *suite) restoreArgs(n *shape, name string, args ...string) []string {
	return append(append([]string{"restore", "create", name, "--from-backup", n.Name}, withoutCRDs...), args...)
}

// testNeverConverted checks that an error for each network names the webhook, and its XR is held.
func (s *suite) testNeverConverted(t *testing.T, hook *converter, n *shape, m webhookMode) {
	ctx := t.Context()
	hook.be(up)
	s.listConverted(t)
	hook.be(m)
	must(t, s.target.Wait(ctx, patience, "the backup "+n.Name, func(ctx context.Context) error {
		_, err := get(ctx, s.target, schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Backup"}, "velero", n.Name)

		return err
	}))
	name := n.Name + "-" + string(m)
	_, err := s.target.Velero(ctx, s.restoreArgs(n, name, "--item-operation-timeout", "1s", "--annotations", "velero.crossplane.io/kind-timeout=1s")...)
	must(t, err)
	s.wantPhase(t, name, "PartiallyFailed")
	problems := drill.Problems(ctx, s.target, name)
	if found := linesWith(problems, "level=error", "cannot restore Network", "stored in "+first, "conversion from "+second, "https://"+hook.address, "[ConversionWebhookDown]"); found < few {
		t.Errorf("%d of %d networks are named with the webhook:\n%s", found, few, problems)
	}
	for _, u := range s.orders(t, n, few) {
		if !paused(&u) || !drill.Held(&u) {
			t.Errorf("XR %s is not held: %v", u.GetName(), u.GetAnnotations())
		}
	}
	changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("In the cloud: %v", changes)
	}
}

// testConvertedLate starts the webhook while a restore waits for it. Velero itself also waits for
// it first, if there are objects of the kind.
func (s *suite) testConvertedLate(t *testing.T, hook *converter, n *shape) {
	ctx := t.Context()
	s.listConverted(t)
	before := hook.asked()
	hook.be(down)
	must(t, n.StartRestore(ctx, s.target))
	s.eventually(t, "the webhook to be asked again and again", func(context.Context) error {
		const often = 3
		if hook.asked() < before+often {
			return errors.New("it was not")
		}

		return nil
	})
	hook.be(up)
	s.awaitCompleted(t, n.Name)
}

// testWithdrawn restores networks in a version that is not served, and again when it is served.
func (s *suite) testWithdrawn(t *testing.T, hook *converter, n *shape) {
	ctx := t.Context()
	hook.convert(t, s.target, s.networksCRD(), first)
	must(t, s.target.RestartVelero(ctx))
	_, err := s.target.Velero(ctx, s.restoreArgs(n, n.Name+"-first", "--item-operation-timeout", "1s")...)
	must(t, err)
	s.wantPhase(t, n.Name+"-first", "PartiallyFailed")
	problems := drill.Problems(ctx, s.target, n.Name+"-first")
	if found := linesWith(problems, "level=error", "cannot restore Network", "the backup has it in "+second, "only in "+first, "[BackupVersionNotServed]"); found < few {
		t.Errorf("%d of %d networks are named with the cure:\n%s", found, few, problems)
	}
	hook.convert(t, s.target, s.networksCRD(), first, second)
	must(t, s.target.RestartVelero(ctx))
	s.again(t, n)
}

// testUnlisted restores while databases can't be listed in the version in which XRs refer to them.
// They must not be reported as missing, and other restores must go on.
func (s *suite) testUnlisted(t *testing.T, hook *converter, scenes map[string]*shape) {
	ctx := t.Context()
	hook.be(broken)
	hook.convert(t, s.target, s.databasesCRD(), second, first)
	must(t, scenes[unknown].StartRestore(ctx, s.target))
	must(t, drill.AwaitOperations(ctx, s.target, unknown))
	s.eventually(t, "the XRs to report that databases can't be read", func(context.Context) error {
		for _, u := range s.orders(t, scenes[unknown], few) {
			if !paused(&u) || !drill.Held(&u) {
				return fmt.Errorf("%s is not held", u.GetName())
			}
			if why := u.GetAnnotations()[annotationHold]; !strings.Contains(why, "[NotRead]") {
				return fmt.Errorf("%s is held for %s", u.GetName(), why)
			}
		}

		return nil
	})
	must(t, scenes[plain].StartRestore(ctx, s.target))
	s.awaitCompleted(t, plain)
	for _, args := range [][]string{{"validate", "-n", unknown}, {"release", "--dry-run", "-n", unknown}, {"wait", "-n", plain, "--timeout", "1m"}} {
		r := s.runAs(ctx, s.target.Kubeconfig(), args)
		t.Logf("%v: %d\n%s%s", args, r.code, r.stdout, r.stderr)
		if strings.Contains(r.stdout, "was not restored") {
			t.Errorf("%v takes for missing what can't be read:\n%s", args, r.stdout)
		}
	}
	hook.be(up)
	s.awaitCompleted(t, unknown)
	for name := range scenes[unknown].picture {
		if strings.Contains(name, "Database.") {
			scenes[unknown].mended = append(scenes[unknown].mended, name)
		}
	}
}

// testConvertedAlone is the control: Velero loses the networks, and Crossplane, which writes the
// storage version, creates others.
func (s *suite) testConvertedAlone(t *testing.T, hook *converter, n *shape) {
	ctx := t.Context()
	hook.be(down)
	must(t, n.StartRestore(ctx, s.target))
	s.eventually(t, "Crossplane to create again what was not restored, without which the other tests prove nothing", func(ctx context.Context) error {
		return s.changed(ctx, n, api.Create, api.Network, few)
	})
	hook.be(up)
	s.awaitEnd(t, n.Name)
}

// listConverted makes the API server read the networks in the version of the backups. Then it can
// list them as long as none of them changes.
func (s *suite) listConverted(t *testing.T) {
	t.Helper()
	_, err := list(t.Context(), s.target, schema.GroupVersionKind{Group: s.cloudGroup(), Version: second, Kind: "Network"}, "", "")
	must(t, err)
}
