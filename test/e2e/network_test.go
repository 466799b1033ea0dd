package e2e

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A faultyRestore is a restore through an API server whose calls fail at random.
type faultyRestore struct {
	name  string
	kinds []stack.Fault
	rate  float64
	// spared is how many calls of a program in a row succeed at most; 0 is any number.
	spared int
	// programs are the only ones whose calls fail.
	programs []string
	hang     time.Duration
	seed     uint64
	// onwards is true if calls also fail after the restore has ended.
	onwards bool
}

func (o faultyRestore) faults() *stack.Faults {
	return &stack.Faults{Kinds: o.kinds, Rate: o.rate, Spared: o.spared, Seed: o.seed, Hang: o.hang, Programs: o.programs}
}

// Velero can't finish a restore whose result it could not write.
const (
	whileFailing = 150 * time.Second
	afterwards   = time.Minute
)

// A sequel is the outcome of a faultyRestore.
type sequel struct {
	phase    string
	injected map[stack.Injection]int
	// restarts is how often a component ended and was started again.
	restarts int
	// after lists the recovery steps after the restore.
	after []string
}

// seed returns the seed of the environment, to repeat a failed run, or else a random one.
func seed(t *testing.T) uint64 {
	t.Helper()
	if s := os.Getenv("NETWORK_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		must(t, err)

		return n
	}

	return rand.Uint64N(1_000_000) //nolint:gosec // Nothing secret about it.
}

// divert makes all writers of a restore call the target's API server through a proxy.
func (s *suite) divert(t *testing.T) *stack.Proxy {
	t.Helper()
	p, err := s.target.Proxy(t.Context())
	must(t, err)
	must(t, s.target.Divert(t.Context(), p, stack.Velero, stack.Crossplane, stack.CloudProvider))

	return p
}

// testNetwork restores a tenant while calls fail, and expects no trace of that in the end. A
// release or a second restore completes it when calls succeed again.
func (s *suite) testNetwork(t *testing.T, p *stack.Proxy, n *tenant, o faultyRestore) {
	t.Helper()
	ctx := t.Context()
	t.Logf("NETWORK_SEED=%d", o.seed)
	must(t, s.target.Wait(ctx, time.Minute, "the backup", func(ctx context.Context) error {
		_, err := s.target.Velero(ctx, "backup", "get", n.Namespace)

		return err
	}))
	p.Set(o.faults())
	t.Cleanup(func() { p.Set(nil) })
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace, "--item-operation-timeout", "1m"))
	q := s.endure(t, p, n.Namespace)
	s.wantInjected(t, o, q)
	s.forgetUnpatched(t, n)
	s.recover(t, p, n, o, q)
	s.settle(t, n)
	s.wantSound(t, n)
	t.Logf("the restore was %s, after %d restarts; then: %v", q.phase, q.restarts, q.after)
}

// endure waits until a restore has ended, which begins while calls fail. It restarts components
// that end, as a kubelet does. When calls succeed again, it restarts a Velero server that can't
// finish the restore.
func (s *suite) endure(t *testing.T, p *stack.Proxy, restore string) *sequel {
	t.Helper()
	q := &sequel{}
	failing := time.Now().Add(whileFailing)
	for {
		err := s.target.Wait(t.Context(), time.Until(failing), "the end of the restore", func(ctx context.Context) (err error) {
			q.phase, err = ended(ctx, s.target, restore)

			return err
		})
		died := s.target.Err()
		if q.injected == nil && (err == nil || died == nil) {
			q.injected = p.Stop()
		}
		switch {
		case err == nil:
			return q
		case died != nil && time.Now().Before(failing):
			q.restarts++
			t.Logf("a component has ended: %v", died)
			for _, name := range []string{stack.Velero, stack.Crossplane, stack.CloudProvider} {
				_ = s.target.Start(t.Context(), name) // One that ends again is started again.
			}
		case len(q.after) == 0:
			t.Logf("no call fails any more, and %v", err)
			q.after, failing = append(q.after, "waited"), time.Now().Add(afterwards)
		case len(q.after) == 1:
			q.after, failing = append(q.after, "Velero restarted"), time.Now().Add(afterwards)
			must(t, s.target.RestartVelero(t.Context()))
		default:
			t.Fatal(err)
		}
	}
}

// ended returns the phase of a restore, and an error until that is its last one.
func ended(ctx context.Context, c *stack.Cluster, name string) (phase string, err error) {
	r, err := get(ctx, c, veleroRestore, "velero", name)
	if err != nil {
		return "", err
	}
	if phase = drill.Phase(r); !slices.Contains([]string{"Completed", "PartiallyFailed", "Failed", "FailedValidation"}, phase) {
		err = errors.New("it is " + phase)
	}

	return phase, err
}

// forgetUnpatched expects no managers of the objects whose managedFields Velero has not written back:
// that call failed, or Velero found an object there whose creation had no answer. Its log names them.
// A second restore leaves them as they are, and only marks have these fields.
func (s *suite) forgetUnpatched(t *testing.T, n *tenant) {
	t.Helper()
	problems := drill.Problems(t.Context(), s.target, n.Namespace)
	maps.DeleteFunc(n.managers, func(object string, _ drill.Managers) bool {
		kind, name, _ := strings.Cut(object, "/")
		for _, message := range []string{
			"managed fields " + n.Namespace + "/" + name + ":", "managed fields " + name + ":", kind + ":" + name + " already exists",
		} {
			if strings.Contains(problems, message) {
				return true
			}
		}

		return false
	})
}

// recover does what a user does after a restore that is not Completed: release, while calls fail
// and again when they succeed, and if that is not enough, another restore.
func (s *suite) recover(t *testing.T, p *stack.Proxy, n *tenant, o faultyRestore, q *sequel) {
	t.Helper()
	if q.phase == "Completed" {
		return
	}
	t.Logf("%s", drill.Problems(t.Context(), s.target, n.Namespace))
	for _, failing := range []bool{true, false} {
		if failing && !o.onwards {
			continue
		}
		var faults *stack.Faults
		if failing {
			faults = o.faults()
		}
		p.Set(faults)
		r := commandAs(t, s.target, p.Kubeconfig(), "release", "--restore", n.Namespace, "--timeout", "1m")
		failed := 0
		for _, times := range p.Stop() {
			failed += times
		}
		got, err := n.Compare(t.Context(), s.target, s.cloud, n.before)
		must(t, err)
		t.Logf("after release, of whose calls %d failed and which exits with %d: %+v\n%s", failed, r.code, got, r.stderr)
		if got.Creates+got.Deletes > 0 {
			t.Errorf("release did damage: %+v", got)
		}
		instances, err := n.Instances(t.Context(), s.target)
		must(t, err)
		if got.Sound() && len(instances) == n.size { // Nothing waits for a claim that is not back.
			q.after = append(q.after, "release")

			return
		}
	}
	q.after = append(q.after, "second restore")
	s.restore(t, n, n.Namespace+"-again")
}

// wantInjected checks that the plugin's calls had faults, of its kind if it has only one.
func (s *suite) wantInjected(t *testing.T, o faultyRestore, q *sequel) {
	t.Helper()
	all, ofPlugin := 0, 0
	for i, times := range q.injected {
		all += times
		if i.Program == plugin {
			ofPlugin += times
		}
	}
	// The plugin watches only during a poll, which can be over before a watch of its own is drawn.
	if watched := len(o.kinds) == 1 && o.kinds[0] == stack.WatchClosed; all == 0 || ofPlugin == 0 && !watched {
		t.Errorf("%d calls have failed, %d of the plugin, so the test proves nothing", all, ofPlugin)
	}
	t.Logf("calls that failed: %v", q.injected)
}

// ofAnswers returns the quick faults that happen to clients without watches.
func ofAnswers() []stack.Fault {
	return slices.DeleteFunc(quick(), func(f stack.Fault) bool { return f == stack.WatchClosed })
}

// quick returns the faults that take no time.
func quick() []stack.Fault {
	return slices.DeleteFunc(stack.AllFaults(), func(f stack.Fault) bool { return f == stack.Hang })
}
